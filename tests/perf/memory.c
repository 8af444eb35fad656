// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // setenv
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushmem/gpushmem.h"
#include "options.h"

static char heap_kind(void)
{
    struct gpushmem_heap_info heap;
    return gpushmem_heap_info(&heap) == 0 && !strcmp(heap.kind, "device") ? 'D' : 'H';
}

bool perf_memory_is_for_processors(void)
{
    return heap_kind() == 'H';
}

void perf_memory_prepare(const struct perf_options *o, size_t bytes)
{
    enum { BUFFERS = 2, WORDS = 1 << 20 };
    char text[32];
    snprintf(text, sizeof text, "%zu", BUFFERS * bytes + WORDS);
    if (strchr(o->memory, 'H'))
        setenv("GPUSHMEM_HOST_HEAP_SIZE", text, 0);
}

int perf_memory_choose(const struct perf_options *o, bool speak, char *memory)
{
    char heap = heap_kind();
    snprintf(memory, sizeof o->memory, "%c %c", heap, heap);
    if (o->memory[0])
        memcpy(memory, o->memory, sizeof o->memory);
    if (heap == 'D' || !strchr(memory, 'D'))
        return 0;
    if (speak)
        fprintf(stderr,
                "gpushmem perf: -d %s needs a heap in GPU memory, but it is in host memory here "
                "(no GPU, or GPUSHMEM_HEAP_KIND=host): only -d H H can be measured\n",
                memory);
    gpushmem_barrier_all(); // a PE that returned first would end the one that speaks
    return GPUSHMEM_ERR_UNSUPPORTED;
}

bool perf_memory_is_heap(const char *memory)
{
    char heap = heap_kind();
    return memory[0] == heap && memory[2] == heap;
}

void *perf_memory_take(char kind, size_t bytes)
{
    if (kind == heap_kind())
        return gpushmem_calloc(bytes, 1);
    void *memory = gpushmem_malloc_with_hints(bytes, GPUSHMEM_MALLOC_HOST);
    if (memory)
        memset(memory, 0, bytes);
    if (memory && gpushmem_barrier_all()) // nobody writes before it is zero
        return NULL;
    return memory;
}
