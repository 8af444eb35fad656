// SPDX-License-Identifier: BSD-3-Clause
// A machine as boxes in boxes: the smaller the box that holds two devices, the nearer they are.
#ifndef GPSH_TOPO_SCENE_H
#define GPSH_TOPO_SCENE_H

#include "topo/machine.h"

enum { GPSH_SCENE_BOXES = 512, GPSH_SCENE_INSIDE = 64 };

enum gpsh_box_kind {
    GPSH_BOX_MACHINE,
    GPSH_BOX_SOCKET,
    GPSH_BOX_HOST_BRIDGE,
    GPSH_BOX_SWITCH,
    GPSH_BOX_GPU,
    GPSH_BOX_NIC,
};

struct gpsh_box {
    enum gpsh_box_kind kind;
    char title[GPSH_TOPO_NAME_BYTES], text[192];
    int device;  // number of gpsh_topo_device; of GPUs and NICs
    int bridges; // above it without a box of their own
    int n;
    struct gpsh_box *inside[GPSH_SCENE_INSIDE];
    double x, y, width, height;
};

struct gpsh_scene {
    int n;
    struct gpsh_box boxes[GPSH_SCENE_BOXES]; // the first one is the machine
};

// Finds the boxes and gives each its place.
void gpsh_scene_make(const struct gpsh_topo *topo, struct gpsh_scene *scene);

#endif
