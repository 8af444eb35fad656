// SPDX-License-Identifier: BSD-3-Clause
// Atomics and barriers issued by the host.
#include "bench.h"
#include "tests.h"

enum { WARM = 32, WINDOW = 512 };

static int fetch_add_run(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    // A failure shows in the last error only: 0 is a legal value of a word.
    for (uint64_t i = 0; i < n; i++)
        gpushmem_uint64_atomic_fetch_add(b->word, 1, b->peer);
    return gpushmem_last_error_code();
}

static int fetch_add_window_run(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    static uint64_t fetched[WINDOW];
    int status = 0;
    for (uint64_t i = 0; i < n && !status; i++) {
        for (uint64_t k = 0; k < c->window && !status; k++)
            status = gpushmem_uint64_atomic_fetch_add_nbi(&fetched[k], b->word, 1, b->peer);
        if (!status)
            status = gpushmem_quiet();
    }
    return status;
}

static int add_window_run(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    int status = 0;
    for (uint64_t i = 0; i < n && !status; i++) {
        for (uint64_t k = 0; k < c->window && !status; k++)
            status = gpushmem_uint64_atomic_add(b->word, 1, b->peer);
        if (!status)
            status = gpushmem_quiet();
    }
    return status;
}

int perf_host_atomics(struct perf_bench *b)
{
    gpushmem_clear_error();
    int status = perf_measure(b, &(struct perf_case){
        .test = "fetch-add", .issuer = "host", .size = 8, .warm = WARM, .run = fetch_add_run});
    if (!status)
        status = perf_measure(b, &(struct perf_case){
            .test = "fetch-add-rate", .issuer = "host", .size = 8, .window = WINDOW, .warm = 2,
            .run = fetch_add_window_run, .bandwidth = true});
    if (!status)
        status = perf_measure(b, &(struct perf_case){
            .test = "add-rate", .issuer = "host", .size = 8, .window = WINDOW, .warm = 2,
            .run = add_window_run, .bandwidth = true});
    return status;
}

static int barrier_run(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    int status = 0;
    for (uint64_t i = 0; i < n && !status; i++)
        status = gpushmem_barrier_all();
    return status;
}

static int sync_run(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    int status = 0;
    for (uint64_t i = 0; i < n && !status; i++)
        status = gpushmem_sync_all();
    return status;
}

int perf_host_barrier(struct perf_bench *b)
{
    int status = perf_measure(b, &(struct perf_case){
        .test = "barrier_all", .issuer = "host", .warm = WARM, .run = barrier_run, .serve = barrier_run});
    if (!status)
        status = perf_measure(b, &(struct perf_case){
            .test = "sync_all", .issuer = "host", .warm = WARM, .run = sync_run, .serve = sync_run});
    return status;
}
