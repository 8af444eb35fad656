// SPDX-License-Identifier: BSD-3-Clause
// Where the memory of a run lies: 'D' GPU memory, 'H' host memory.
#ifndef PERF_MEMORY_H
#define PERF_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct perf_options;

// Before init: makes room for host memory beside a heap on GPUs, if `-d` asks for it.
void perf_memory_prepare(const struct perf_options *options, size_t bytes);
// Fills memory[4] with what -d says, or with the heap's kind twice. A negative status where there
// is no GPU memory, with a sentence on stderr if `speak`.
int perf_memory_choose(const struct perf_options *options, bool speak, char *memory);
// Whether processors load and store in the heap.
bool perf_memory_is_for_processors(void);
// Whether both ends are in the heap.
bool perf_memory_is_heap(const char *memory);
// Collective: zeroed symmetric memory of that kind; NULL if there is none left.
void *perf_memory_take(char kind, size_t bytes);

#endif
