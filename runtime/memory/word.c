// SPDX-License-Identifier: BSD-3-Clause
#include "memory/word.h"

#include "gpu/gpu.h"
#include "memory/heap.h"

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
