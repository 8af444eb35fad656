// SPDX-License-Identifier: BSD-3-Clause
// `gpushmem topo`: a machine, its GPUs, the ports of its NICs and what is between them, and the
// ways in which it is shown.
#ifndef GPSH_TOPO_TOPO_H
#define GPSH_TOPO_TOPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/topology.h"

enum {
    GPSH_TOPO_GPUS = 64,
    GPSH_TOPO_PORTS = 64, // as many as the verbs transport looks at
    GPSH_TOPO_PCI_BYTES = 32,
    GPSH_TOPO_NAME_BYTES = 80,
};

struct gpsh_topo_device {
    char pci[GPSH_TOPO_PCI_BYTES];   // "" for a NIC in software
    char name[GPSH_TOPO_NAME_BYTES]; // "NVIDIA H200", "mlx5_0"; "" if not known
    char cpus[128], nodes[32];       // near it, as lists; "" if not known
};

struct gpsh_topo_port {
    struct gpsh_topo_device device;
    int number; // 0 if it has no verbs device
    int rate;   // Mb/s, 0: not known
    int state;  // enum ibv_port_state; 0 if the device could not be opened, or is a recorded one
    bool ethernet;
    char why_not[96]; // the reason why a PE cannot use it; "" if it can
};

struct gpsh_topo {
    struct gpsh_topology *topology;
    const char *file; // the topology was recorded there; NULL: this machine
    int n_gpus, n_ports;
    bool without_driver; // GPUs are numbered by their PCI addresses, since no driver has told
    struct gpsh_topo_gpu {
        struct gpsh_topo_device device;
    } gpus[GPSH_TOPO_GPUS];
    struct gpsh_topo_port ports[GPSH_TOPO_PORTS];
    uint8_t nvlinks[GPSH_TOPO_GPUS][GPSH_TOPO_GPUS]; // how many, direct or through a switch
};

// Reads this machine, or what lstopo has recorded in `xml_file`. GPUSHMEM_ERR_* with a sentence.
int gpsh_topo_read(const char *xml_file, struct gpsh_topo *topo);
// Only what drivers tell of this machine, GPUs and ports: no topology.
void gpsh_topo_ask(struct gpsh_topo *topo);
void gpsh_topo_clear(struct gpsh_topo *topo);

// Whether the port before this one is of the same device: the matrix has one row for both.
bool gpsh_topo_port_repeats(const struct gpsh_topo *topo, int port);

// "0000:3b:00.0"
struct hwloc_pcidev_attr_s;
void gpsh_topo_pci(const struct hwloc_pcidev_attr_s *pci, char text[GPSH_TOPO_PCI_BYTES]);

// "mlx5_0:1"; a NIC without a verbs device has its PCI address.
void gpsh_topo_port_name(const struct gpsh_topo_port *port, char *name, size_t bytes);

// "PIX", "NV18", "X" for a device and itself. Devices are numbered: GPUs, then ports.
void gpsh_topo_between(const struct gpsh_topo *topo, int a, int b, char *word, size_t bytes);
const struct gpsh_topo_device *gpsh_topo_device(const struct gpsh_topo *topo, int number);

// Which ports the PE of a GPU uses, and a sentence that says why.
struct gpsh_topo_choice {
    int n;
    int ports[8];
    char why[256];
};

// How many NVLinks lead from each GPU to each other one: of this machine by the library of
// nvidia-smi (NVML), if it is there; of a recorded one from its file. Zeros where nobody knows.
void gpsh_nvlinks_read(struct gpsh_topo *topo);

// A machine and what each GPU uses of it.
struct gpsh_topo_view {
    struct gpsh_topo machine;
    struct gpsh_topo_choice choices[GPSH_TOPO_GPUS];
};

// The matrix and the lists below it, on standard output.
void gpsh_topo_print(const struct gpsh_topo_view *view);
void gpsh_topo_print_json(const struct gpsh_topo_view *view);
void gpsh_topo_draw(const struct gpsh_topo_view *view, FILE *out);

#endif
