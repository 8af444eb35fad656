// SPDX-License-Identifier: BSD-3-Clause
// How many NVLinks lead from each GPU to each other one.
#ifndef GPSH_TOPO_NVLINK_H
#define GPSH_TOPO_NVLINK_H

struct gpsh_topo;

// Of this machine by the library of nvidia-smi (NVML), if it is there; of a recorded one from its
// file. Zeros where nobody knows.
void gpsh_nvlinks_read(struct gpsh_topo *topo);

#endif
