// SPDX-License-Identifier: BSD-3-Clause
// The ways in which `gpushmem topo` shows a machine.
#ifndef GPSH_TOPO_TOPO_H
#define GPSH_TOPO_TOPO_H

#include <stdio.h>

#include "topo/machine.h"

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
