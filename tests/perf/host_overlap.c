// SPDX-License-Identifier: BSD-3-Clause
// How much of a transfer hides behind work of the PE that issued it: a non-blocking put and its
// quiet, work that takes as long, and the work between the put and its quiet, timed in turn.
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "tests.h"

static const uint64_t standard_sizes[] = {4096, 65536, 1 << 20, 4 << 20};
static const double lap_us = 50;
enum { N_STANDARD = sizeof standard_sizes / sizeof standard_sizes[0], MIN_ROUNDS = 5, WARM = 16 };
enum part { PUT, WORK, BOTH, PARTS };

struct overlap {
    uint64_t size, turns; // timed together
    uint64_t work;        // steps in each turn
};

// Steps that no compiler leaves out and that touch no memory.
static void work(uint64_t steps)
{
    for (uint64_t i = 0, x = 1; i < steps; i++) {
        x = x * UINT64_C(6364136223846793005) + 1;
        __asm__ volatile("" : "+r"(x));
    }
}

// Microseconds of a turn.
static double lap(struct perf_bench *b, const struct overlap *o, enum part part, int *status)
{
    uint64_t begin = perf_now_ns();
    for (uint64_t i = 0; i < o->turns && !*status; i++) {
        if (part != WORK)
            *status = gpushmem_putmem_nbi(b->target, b->source, o->size, b->peer);
        if (part != PUT)
            work(o->work);
        if (part != WORK && !*status)
            *status = gpushmem_quiet();
    }
    return (double)(perf_now_ns() - begin) / 1e3 / (double)o->turns;
}

// The least of a few: what else the processor did meanwhile does not count.
static double least(struct perf_bench *b, const struct overlap *o, enum part part, int *status)
{
    enum { LAPS = 5 };
    double us = lap(b, o, part, status);
    for (int i = 1; i < LAPS; i++) {
        double again = lap(b, o, part, status);
        us = again < us ? again : us;
    }
    return us;
}

// As much work as the put takes, and so many turns that reading the clock does not count.
static int calibrate(struct perf_bench *b, struct overlap *o)
{
    enum { TRIES = 3, FIRST = 100 };
    int status = 0;
    double put_us = least(b, o, PUT, &status);
    o->turns = put_us >= lap_us ? 1 : (uint64_t)(lap_us / (put_us > 0.001 ? put_us : 0.001)) + 1;
    o->work = FIRST;
    for (int i = 0; i < TRIES && !status; i++) {
        double us = least(b, o, WORK, &status), wanted = (double)o->work * put_us / us;
        o->work = us > 0 && wanted >= 1 ? (uint64_t)wanted : 1;
    }
    return status;
}

static int take_samples(struct perf_bench *b, const struct overlap *o, struct perf_samples *samples)
{
    const struct perf_options *options = b->options;
    uint64_t begin = perf_now_ns();
    int status = 0;
    for (int i = 0; !status; i++) {
        double passed = (double)(perf_now_ns() - begin) / 1e9;
        if (options->rounds ? i >= options->rounds : i >= MIN_ROUNDS && passed >= options->seconds)
            break;
        for (int part = 0; part < PARTS && !status; part++)
            perf_samples_add(&samples[part], lap(b, o, (enum part)part, &status));
    }
    return status;
}

static double overlap_percent(double put_us, double work_us, double both_us)
{
    double shorter = put_us < work_us ? put_us : work_us;
    double hidden = shorter > 0 ? (put_us + work_us - both_us) / shorter * 100 : 0;
    return hidden < 0 ? 0 : hidden > 100 ? 100 : hidden;
}

static void report(struct perf_bench *b, uint64_t size, struct perf_samples *samples)
{
    static const char *const names[PARTS] = {"overlap-put", "overlap-work", "overlap-both"};
    for (int part = 0; part < PARTS; part++) {
        struct perf_case c = {.issuer = "host", .size = size, .overlap = part == BOTH};
        if (part == BOTH)
            c.overlap_percent = overlap_percent(perf_samples_percentile(&samples[PUT], 50),
                                                perf_samples_percentile(&samples[WORK], 50),
                                                perf_samples_percentile(&samples[BOTH], 50));
        perf_bench_report(b, &c, names[part], &samples[part]);
    }
}

// PE 0 alone is busy; the others wait in the barrier.
static int measure(struct perf_bench *b, uint64_t size)
{
    struct perf_samples samples[PARTS] = {{.values = NULL}};
    struct overlap o = {.size = size, .turns = WARM};
    int status = gpushmem_barrier_all();
    if (!status && b->initiator) {
        perf_report_progress(b->report, "overlap", "host", size);
        status = calibrate(b, &o);
        if (!status)
            status = take_samples(b, &o, samples);
        if (!status)
            report(b, size, samples);
    }
    for (int part = 0; part < PARTS; part++)
        perf_samples_clear(&samples[part]);
    return status ? status : gpushmem_barrier_all();
}

int perf_host_overlap(struct perf_bench *b)
{
    const uint64_t *sizes;
    int n = perf_bench_sizes(b, standard_sizes, N_STANDARD, &sizes), status = 0;
    for (int i = 0; i < n && !status; i++)
        status = measure(b, sizes[i]);
    return status;
}
