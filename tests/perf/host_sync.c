// SPDX-License-Identifier: BSD-3-Clause
// Atomics and barriers issued by the host.
#include "bench.h"
#include "loops.h"
#include "tests.h"

enum { WARM = 32, WINDOW = 512 };

static int fetch_add_run(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    // A failure shows in the last error only: 0 is a legal value of a word.
    for (uint64_t i = 0; i < n; i++)
        gpushmem_uint64_atomic_fetch_add(b->word, 1, b->peer);
    return gpushmem_last_error_code();
}

static uint64_t fetched[WINDOW];
PERF_WINDOWS(fetch_add_window_run,
             gpushmem_uint64_atomic_fetch_add_nbi(&fetched[k], b->word, 1, b->peer))
PERF_WINDOWS(add_window_run, gpushmem_uint64_atomic_add(b->word, 1, b->peer))

int perf_host_atomics(struct perf_bench *b)
{
    gpushmem_clear_error();
    int status = perf_measure(
        b,
        &(struct perf_case){
            .test = "fetch-add", .issuer = "host", .size = 8, .warm = WARM, .run = fetch_add_run});
    if (!status)
        status = perf_measure(b, &(struct perf_case){.test = "fetch-add-rate",
                                                     .issuer = "host",
                                                     .size = 8,
                                                     .window = WINDOW,
                                                     .warm = 2,
                                                     .run = fetch_add_window_run,
                                                     .bandwidth = true});
    if (!status)
        status = perf_measure(b, &(struct perf_case){.test = "add-rate",
                                                     .issuer = "host",
                                                     .size = 8,
                                                     .window = WINDOW,
                                                     .warm = 2,
                                                     .run = add_window_run,
                                                     .bandwidth = true});
    return status;
}

PERF_REPEAT(barrier_run, gpushmem_barrier_all())
PERF_REPEAT(sync_run, gpushmem_sync_all())

int perf_host_barrier(struct perf_bench *b)
{
    int status = perf_measure(b, &(struct perf_case){.test = "barrier_all",
                                                     .issuer = "host",
                                                     .warm = WARM,
                                                     .run = barrier_run,
                                                     .serve = barrier_run});
    if (!status)
        status = perf_measure(b, &(struct perf_case){.test = "sync_all",
                                                     .issuer = "host",
                                                     .warm = WARM,
                                                     .run = sync_run,
                                                     .serve = sync_run});
    return status;
}
