// SPDX-License-Identifier: BSD-3-Clause
#include "memory/heap.h"

#include "gpu/gpu.h"

struct gpsh_heap gpsh_heap_state;

void gpsh_heap_serve(int pes)
{
    gpsh_heap_state.quick_pes = pes;
}

void gpsh_heap_allow_growth(bool grows)
{
    gpsh_heap_state.grows = grows;
}

void gpsh_heap_has_grown(uint64_t more)
{
    atomic_fetch_add(&gpsh_heap_state.bytes, more);
}

void gpsh_heap_flush_writes(bool flush)
{
    gpsh_heap_state.flush_writes = flush;
}

static _Thread_local int unread;

void gpsh_flush_remote(void)
{
    gpsh_gpu_flush();
}

uint64_t gpsh_word_fetch(const void *word, size_t bytes)
{
    uint64_t raw = 0;
    if (gpsh_offset(word) >= gpsh_heap_bytes()) { // in a segment, which is host memory
        unread = 0;
        raw = gpsh_word_load_host(word, bytes);
        gpsh_acquire_remote(); // what it tells of may be in the heap
        return raw;
    }
    unread = gpsh_heap()->copy(&raw, word, bytes);
    gpsh_acquire_remote();
    return raw;
}

int gpsh_word_unread(void)
{
    return unread;
}
