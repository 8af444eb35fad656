// SPDX-License-Identifier: BSD-3-Clause
// Whether the PEs of this node have a core each.
#ifndef GPSH_CORES_H
#define GPSH_CORES_H

#include <stdbool.h>

// For `n` PEs, each of which may run on the CPUs of its mask (cpu_set_t, declared with
// _GNU_SOURCE): there are fewer CPUs than PEs, or than PEs that are confined to the same CPUs.
bool gpsh_cores_are_few(const void *masks, int n);

// The same for this node, or what GPUSHMEM_WAIT says instead.
bool gpsh_cores_are_shared(void);

#endif
