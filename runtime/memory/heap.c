// SPDX-License-Identifier: BSD-3-Clause
#include "memory/heap.h"

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
