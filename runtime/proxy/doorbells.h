// SPDX-License-Identifier: BSD-3-Clause
// Doorbells of NICs that a thread of the host rings for kernels, where a GPU cannot store to the
// NIC's register: kernels store to a word of host memory instead, and the thread hands on what it
// finds there. docs/design/nic_posts.md.
#ifndef GPSH_DOORBELLS_H
#define GPSH_DOORBELLS_H

#include <stdint.h>

#include "gpu/device_memory.h"

// A word for that register, which kernels may store to until gpsh_doorbells_stop; the first one
// starts the thread. One caller at a time. NULL with a sentence.
uint64_t *gpsh_doorbells_add(const struct gpsh_device_memory *memory, void *doorbell);

// No kernel runs any more. Legal if there are none.
void gpsh_doorbells_stop(void);

#endif
