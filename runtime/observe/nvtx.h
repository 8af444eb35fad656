// SPDX-License-Identifier: BSD-3-Clause
// Ranges for tools such as Nsight Systems, by NVTX. A tool is injected by NVTX_INJECTION64_PATH, or
// not at all.
#ifndef GPSH_NVTX_H
#define GPSH_NVTX_H

#include <stdbool.h>
#include <stdint.h>

// False: there is no tool, or NVTX's headers were not there when the library was built.
bool gpsh_nvtx_open(void);
// A range of the calling thread. Only after gpsh_nvtx_open returned true.
void gpsh_nvtx_push(const char *name, uint64_t bytes);
void gpsh_nvtx_pop(void);

#endif
