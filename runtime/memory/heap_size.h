// SPDX-License-Identifier: BSD-3-Clause
// How large the heap is if nobody chose its size.
#ifndef GPSH_HEAP_SIZE_H
#define GPSH_HEAP_SIZE_H

#include <stdint.h>

// Bytes: `standard` if that and `reserved`, which is the library's, fit into `room`: what a PE may
// have of its node's memory or of its GPU's. Else half of the room, for the program needs memory
// too, or what `reserved` leaves of it: in whole MiB, and at least one, which is the smallest heap
// that there is.
uint64_t gpsh_heap_size_fitting(uint64_t standard, uint64_t reserved, uint64_t room);

#endif
