// SPDX-License-Identifier: BSD-3-Clause
// Bandwidth and message rate of puts and gets issued by the host, beside memcpy where the peer's
// memory is mapped.
#include <string.h>

#include "bench.h"
#include "loops.h"
#include "tests.h"

static const uint64_t standard_sizes[] = {8, 64, 512, 4096, 65536, 1 << 20, 4 << 20};
enum {
    N_STANDARD = sizeof standard_sizes / sizeof standard_sizes[0],
    WARM = 2,
    MEMCPY_FROM = 4096
};

PERF_WINDOWS(put_run, gpushmem_putmem_nbi(b->target, b->source, c->size, b->peer))
PERF_WINDOWS(get_run, gpushmem_getmem_nbi(b->source, b->target, c->size, b->peer))

// The compiler must not merge copies of the same bytes.
static void copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
}

static int memcpy_to_run(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    char *target = gpushmem_ptr(b->target, b->peer);
    for (uint64_t i = 0; i < n * c->window; i++)
        copy(target, b->source, c->size);
    return 0;
}

static int memcpy_from_run(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    const char *target = gpushmem_ptr(b->target, b->peer);
    for (uint64_t i = 0; i < n * c->window; i++)
        copy(b->source, target, c->size);
    return 0;
}

static int bandwidth(struct perf_bench *b, const char *test, perf_run_fn run, perf_run_fn reference)
{
    const uint64_t *sizes;
    int n = perf_bench_sizes(b, standard_sizes, N_STANDARD, &sizes), status = 0;
    for (int i = 0; i < n && !status; i++)
        status = perf_measure(
            b, &(struct perf_case){.test = test,
                                   .issuer = "host",
                                   .size = sizes[i],
                                   .window = perf_window(sizes[i]),
                                   .warm = WARM,
                                   .run = run,
                                   .reference =
                                       b->mapped && sizes[i] >= MEMCPY_FROM ? reference : NULL,
                                   .reference_test = "memcpy",
                                   .bandwidth = true});
    return status;
}

int perf_host_put_bandwidth(struct perf_bench *b)
{
    return bandwidth(b, "put-bw", put_run, memcpy_to_run);
}

int perf_host_get_bandwidth(struct perf_bench *b)
{
    return bandwidth(b, "get-bw", get_run, memcpy_from_run);
}
