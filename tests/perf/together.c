// SPDX-License-Identifier: BSD-3-Clause
// Windows that several PEs issue at the same time: of several pairs, or in both directions. All
// meet before a batch and after it, and the time between is that of the slowest. A batch lasts so
// long that meeting does not count, nor launching a kernel.
#include <stdio.h>

#include "bench.h"

static const double batch_us = 2000, kernel_batch_us = 5000;

static bool takes_part(const struct perf_bench *b)
{
    return b->issues || (b->answers && b->options->bidirectional);
}

static int issuing(const struct perf_bench *b)
{
    return b->options->pairs * (b->options->bidirectional ? 2 : 1);
}

static int lap(struct perf_bench *b, const struct perf_case *c, perf_run_fn run, uint64_t n,
               double *us)
{
    int status = gpushmem_barrier_all();
    uint64_t begin = perf_now_ns();
    if (!status && takes_part(b))
        status = run(b, c, n);
    if (!status)
        status = gpushmem_barrier_all();
    *us = (double)(perf_now_ns() - begin) / 1e3;
    return status;
}

static int prepare(struct perf_bench *b, const struct perf_case *c)
{
    double us;
    int status = lap(b, c, c->run, c->warm, &us);
    if (!status)
        status = lap(b, c, c->run, c->warm, &us);
    double least = c->in_kernel ? kernel_batch_us : batch_us;
    return status ? status : perf_bench_agree(b, us / (double)c->warm, least);
}

static int sample(struct perf_bench *b, const struct perf_case *c, perf_run_fn run,
                  struct perf_samples *samples)
{
    double us, operations = (double)b->plan.batch * (double)c->window * issuing(b);
    int status = lap(b, c, run, b->plan.batch, &us);
    if (!status)
        perf_samples_add(samples, us / operations);
    return status;
}

int perf_measure_together(struct perf_bench *b, const struct perf_case *one)
{
    struct perf_case c = *one;
    struct perf_samples own = {.values = NULL}, reference = {.values = NULL};
    uint64_t sequence = b->sequence; // of all PEs, some of which do not take part
    c.lead = 0;
    int status = prepare(b, &c);
    for (uint64_t i = 0; i < b->plan.rounds && !status; i++) {
        status = sample(b, &c, c.run, &own);
        if (c.reference && !status)
            status = sample(b, &c, c.reference, &reference);
    }
    b->sequence = sequence;
    if (!status && b->initiator) {
        perf_bench_report(b, &c, c.test, &own);
        if (c.reference)
            perf_bench_report(b, &c, c.reference_test, &reference);
    }
    perf_samples_clear(&own);
    perf_samples_clear(&reference);
    return status;
}
