// SPDX-License-Identifier: BSD-3-Clause
// Collectives issued by the host, over all PEs. A row's size is the largest buffer of a PE, as in
// coll.cu: what is reduced, scanned or broadcast, all that collect, fcollect and alltoall move, and
// the source of reducescatter. memcpy is the floor: so many bytes of the next PE's, by all PEs at
// once.
#include <string.h>

#include "bench.h"
#include "loops.h"
#include "tests.h"

static const gpushmem_team_t world = GPUSHMEM_TEAM_WORLD;

// ---- Operations: `b` and `c` as in perf_run_fn ----

static size_t elements(const struct perf_case *c)
{
    return c->size / sizeof(float);
}

// Of a part, where there is one for each PE.
static size_t part(const struct perf_bench *b, const struct perf_case *c)
{
    return elements(c) / (size_t)b->n_pes;
}

#define TO   ((float *)(void *)b->target)
#define FROM ((float *)(void *)b->source)
PERF_REPEAT(team_sync_run, gpushmem_team_sync(world))
PERF_REPEAT(barrier_run, gpushmem_barrier(world))
PERF_REPEAT(broadcast_run, gpushmem_float_broadcast(world, TO, FROM, elements(c), 0))
PERF_REPEAT(collect_run, gpushmem_float_collect(world, TO, FROM, part(b, c)))
PERF_REPEAT(fcollect_run, gpushmem_float_fcollect(world, TO, FROM, part(b, c)))
PERF_REPEAT(alltoall_run, gpushmem_float_alltoall(world, TO, FROM, part(b, c)))
PERF_REPEAT(alltoalls_run, gpushmem_float_alltoalls(world, TO, FROM, 2, 2, part(b, c) / 2))
PERF_REPEAT(reduce_run, gpushmem_float_sum_reduce(world, TO, FROM, elements(c)))
PERF_REPEAT(reducescatter_run, gpushmem_float_sum_reducescatter(world, TO, FROM, part(b, c)))
PERF_REPEAT(inscan_run, gpushmem_float_sum_inscan(world, TO, FROM, elements(c)))
PERF_REPEAT(exscan_run, gpushmem_float_sum_exscan(world, TO, FROM, elements(c)))

static int memcpy_run(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    const char *from = gpushmem_ptr(b->source, (b->my_pe + 1) % b->n_pes);
    for (uint64_t i = 0; i < n; i++)
        memcpy(b->target, from, c->size);
    return 0;
}

// ---- Rows ----

static const struct {
    const char *name;
    perf_run_fn run;
    size_t divided; // the least size is so many elements for each PE; 0: one element
} operations[] = {
    {"broadcast", broadcast_run, 0},
    {"collect", collect_run, 1},
    {"fcollect", fcollect_run, 1},
    {"alltoall", alltoall_run, 1},
    {"alltoalls", alltoalls_run, 2},
    {"reduce", reduce_run, 0},
    {"reducescatter", reducescatter_run, 1},
    {"inscan", inscan_run, 0},
    {"exscan", exscan_run, 0},
    {"memcpy", memcpy_run, 0},
};

static int measure(struct perf_bench *b, const char *name, perf_run_fn run, uint64_t size)
{
    enum { FEW = 2, MANY = 32, LARGE = 1 << 20 };
    return perf_measure(b, &(struct perf_case){.test = name,
                                               .issuer = "host",
                                               .size = size,
                                               .warm = size < LARGE ? MANY : FEW,
                                               .run = run,
                                               .serve = run,
                                               .both = size != 0});
}

// The same on all PEs.
static bool all_are_mapped(const struct perf_bench *b)
{
    struct gpushmem_heap_info heap;
    return gpushmem_heap_info(&heap) == 0 && strcmp(heap.kind, "host") == 0 &&
           gpushmem_team_n_pes(GPUSHMEM_TEAM_SHARED) == b->n_pes;
}

int perf_host_coll(struct perf_bench *b)
{
    static const uint64_t standard[] = {64, 1024, 16384, 65536, 1 << 20, 16 << 20};
    const uint64_t *sizes;
    int n = perf_bench_sizes(b, standard, sizeof standard / sizeof standard[0], &sizes);
    bool mapped = all_are_mapped(b);
    int status = measure(b, "team_sync", team_sync_run, 0);
    if (!status)
        status = measure(b, "barrier", barrier_run, 0);
    for (size_t o = 0; o < sizeof operations / sizeof operations[0]; o++)
        for (int i = 0; i < n && !status; i++) {
            size_t least = operations[o].divided * (size_t)b->n_pes * sizeof(float);
            bool floor = operations[o].run == memcpy_run;
            if (sizes[i] >= (least ? least : sizeof(float)) && (mapped || !floor))
                status = measure(b, operations[o].name, operations[o].run, sizes[i]);
        }
    return status;
}
