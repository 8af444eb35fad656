// SPDX-License-Identifier: BSD-3-Clause
#include "reach.h"

#include "bench.h"
#include "memory.h"

enum { MAPPED, DIRECT, WAYS };

// 1 into everybody's word of each way that this PE's pair lacks.
static int tell(const struct perf_bench *b, const bool *lacks)
{
    const uint64_t one = 1;
    int status = 0;
    for (int way = 0; way < WAYS; way++)
        for (int pe = 0; pe < b->n_pes && lacks[way] && !status; pe++)
            status = gpushmem_putmem(&b->lacking[way], &one, sizeof one, pe);
    return status;
}

int perf_reach_agree(struct perf_bench *b)
{
    uint64_t lacking[WAYS];
    int status = gpushmem_peer_info(b->peer, &b->info);
    bool in_a_pair = b->issues || b->answers;
    bool mapped = perf_memory_is_for_processors() && gpushmem_ptr(b->target, b->peer);
    const bool lacks[WAYS] = {
        [MAPPED] = in_a_pair && !mapped, [DIRECT] = in_a_pair && !b->info.device_direct};
    if (!status)
        status = tell(b, lacks);
    if (!status)
        status = gpushmem_barrier_all();
    if (!status) // the heap may be GPU memory: get from oneself
        status = gpushmem_getmem(lacking, b->lacking, sizeof lacking, b->my_pe);
    b->mapped = !status && !lacking[MAPPED];
    b->info.device_direct = !status && !lacking[DIRECT];
    return status;
}
