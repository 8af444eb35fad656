// SPDX-License-Identifier: BSD-3-Clause
// What a heap has beside the program's part, and how large it is if nobody chose the size.
#ifndef GPSH_HEAP_SIZE_H
#define GPSH_HEAP_SIZE_H

#include <stdint.h>

// The device barrier's words, at the end of the heap and beyond what GPUSHMEM_HEAP_SIZE gives the
// program.
enum { GPSH_DEVICE_RESERVED = 4096 };

// Bytes: `standard` if that fits into `room`, which is what a PE may have of its node's memory or
// of its GPU's. Else half of the room, for the program needs memory too: in whole MiB, and at least
// one, which is the smallest heap that there is.
uint64_t gpsh_heap_size_fitting(uint64_t standard, uint64_t room);

#endif
