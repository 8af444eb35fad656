// SPDX-License-Identifier: BSD-3-Clause
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "reach.h"

// A batch lasts so long that reading the clock twice (25 ns each, 0.7 us under emulation) does not
// count. threads of a kernel need a while to get going
static const double batch_us = 20, kernel_batch_us = 200;
// Until then the scheduler has given the PEs processors of their own, if there are enough.
static const uint64_t settle_ns = 100000000;
enum { MIN_ROUNDS = 5, MAX_ROUNDS = 100000, MIN_BYTES = 16 << 20 };

static int allocate(struct perf_bench *b)
{
    b->source = perf_memory_take(b->memory[0], b->max_bytes);
    b->target = b->source ? perf_memory_take(b->memory[2], b->max_bytes) : NULL;
    // Cache lines of their own, so that a flag, a word and the plan do not disturb one another.
    char *words = b->target ? perf_memory_take(b->memory[2], 1024) : NULL;
    b->program = calloc(b->max_bytes, 1);
    if (!words || !b->program)
        return GPUSHMEM_ERR_NO_MEMORY;
    b->flag = (uint64_t *)words;
    b->word = (uint64_t *)(words + 256);
    b->plan_word = (struct perf_plan *)(words + 512);
    b->kernel_ns = (uint64_t *)(words + 768);
    b->lacking = (uint64_t *)(words + 512 + 128); // behind the plan
    return 0;
}

static int announce_plan(struct perf_bench *b, const struct perf_plan *plan)
{
    int status = 0;
    for (int pe = 0; pe < b->n_pes && !status; pe++)
        status = gpushmem_putmem(b->plan_word, plan, sizeof *plan, pe);
    return status;
}

// The heap may be GPU memory: get from oneself.
static int read_plan(struct perf_bench *b)
{
    return gpushmem_getmem(&b->plan, b->plan_word, sizeof b->plan, b->my_pe);
}

// PE 0 tells everybody which barrier is the last one, so that a PE which learns it early goes on as
// long as the others.
static int settle(struct perf_bench *b)
{
    uint64_t begin = perf_now_ns();
    struct perf_plan plan = {.rounds = 0};
    int status = 0;
    for (uint64_t i = 1; !status && (!b->plan.rounds || i <= b->plan.rounds); i++) {
        if (b->initiator && !plan.rounds && perf_now_ns() - begin > settle_ns) {
            plan.rounds = i;
            status = announce_plan(b, &plan);
        }
        if (!status)
            status = gpushmem_barrier_all();
        if (!status)
            status = read_plan(b);
    }
    return status;
}

// PE i and PE i + pairs; in a job of one PE, it and itself.
static void find_pair(struct perf_bench *b)
{
    int pairs = b->options->pairs;
    b->initiator = b->my_pe == 0;
    b->issues = b->my_pe < pairs;
    b->answers = b->my_pe >= pairs && b->my_pe < 2 * pairs;
    b->peer = b->n_pes == 1 ? 0 : b->answers ? b->my_pe - pairs : b->issues ? b->my_pe + pairs : 0;
}

uint64_t perf_bench_bytes(const struct perf_options *o)
{
    uint64_t largest = o->n_sizes ? o->sizes[o->n_sizes - 1] : 0;
    return largest > MIN_BYTES ? largest : MIN_BYTES;
}

int perf_bench_open(struct perf_bench *b, const struct perf_options *options,
                    struct perf_report *report)
{
    *b = (struct perf_bench){
        .options = options, .report = report, .my_pe = gpushmem_my_pe(), .n_pes = gpushmem_n_pes()};
    find_pair(b);
    b->max_bytes = perf_bench_bytes(options);
    int status = perf_memory_choose(options, b->initiator, b->memory);
    if (!status)
        status = allocate(b);
    if (!status)
        status = perf_reach_agree(b);
    return status ? status : settle(b);
}

void perf_bench_close(struct perf_bench *b)
{
    free(b->program);
    if (b->flag)
        gpushmem_free(b->flag);
    if (b->target)
        gpushmem_free(b->target);
    if (b->source)
        gpushmem_free(b->source);
}

int perf_bench_sizes(const struct perf_bench *b, const uint64_t *standard, int n,
                     const uint64_t **sizes)
{
    *sizes = b->options->n_sizes ? b->options->sizes : standard;
    return b->options->n_sizes ? b->options->n_sizes : n;
}

uint64_t perf_window(uint64_t size)
{
    uint64_t n = (UINT64_C(8) << 20) / size;
    return n < 16 ? 16 : n > 512 ? 512 : n;
}

static double us_of(struct perf_bench *b, const struct perf_case *c, perf_run_fn run, uint64_t n,
                    int *status)
{
    uint64_t begin = perf_now_ns();
    *status = run(b, c, n);
    return c->in_kernel ? b->kernel_us : (double)(perf_now_ns() - begin) / 1e3;
}

static void make_plan(const struct perf_options *o, double us_each, double least_us,
                      struct perf_plan *plan)
{
    plan->batch = (uint64_t)o->iterations;
    if (!plan->batch)
        plan->batch = us_each >= least_us ? 1 : (uint64_t)(least_us / us_each) + 1;
    plan->rounds = (uint64_t)o->rounds;
    if (!plan->rounds) {
        double rounds = o->seconds * 1e6 / ((double)plan->batch * us_each);
        plan->rounds = rounds < MIN_ROUNDS   ? MIN_ROUNDS
                       : rounds > MAX_ROUNDS ? MAX_ROUNDS
                                             : (uint64_t)rounds;
    }
}

int perf_bench_agree(struct perf_bench *b, double us_each, double least_us)
{
    int status = 0;
    if (b->initiator) {
        struct perf_plan plan;
        make_plan(b->options, us_each, least_us, &plan);
        status = announce_plan(b, &plan);
    }
    if (!status)
        status = gpushmem_barrier_all();
    return status ? status : read_plan(b);
}

// The others' share of `n` operations, if this PE has one.
static int serve(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    return c->serve && (b->answers || !c->paired) ? c->serve(b, c, n) : 0;
}

// Warms up twice, the second time by the clock, and tells everybody what follows.
static int prepare(struct perf_bench *b, const struct perf_case *c)
{
    int status = 0;
    double us = 0;
    for (int i = 0; i < 2 && !status; i++) {
        if (b->issues)
            us = us_of(b, c, c->run, c->warm, &status) / (double)c->warm;
        else
            status = serve(b, c, c->lead + c->warm);
    }
    double least_us = c->in_kernel ? kernel_batch_us : batch_us;
    return status ? status : perf_bench_agree(b, us, least_us);
}

static int sample(struct perf_bench *b, const struct perf_case *c, struct perf_samples *own,
                  struct perf_samples *reference)
{
    double operations = (double)b->plan.batch * (double)(c->window ? c->window : 1);
    double factor = (c->share > 0 ? c->share : 1) / operations;
    int status = 0;
    for (uint64_t i = 0; i < b->plan.rounds && !status; i++) {
        perf_samples_add(own, us_of(b, c, c->run, b->plan.batch, &status) * factor);
        if (reference && !status)
            perf_samples_add(reference, us_of(b, c, c->reference, b->plan.batch, &status) * factor);
    }
    return status;
}

int perf_measure(struct perf_bench *b, const struct perf_case *c)
{
    struct perf_samples own = {.values = NULL}, reference = {.values = NULL};
    if (b->initiator)
        perf_report_progress(b->report, c->test, c->issuer, c->size);
    if ((b->options->pairs > 1 || b->options->bidirectional) && c->window && c->bandwidth)
        return perf_measure_together(b, c);
    int status = gpushmem_barrier_all();
    if (!status)
        status = prepare(b, c);
    if (!status)
        status = b->issues ? sample(b, c, &own, c->reference ? &reference : NULL)
                           : serve(b, c, (c->lead + b->plan.batch) * b->plan.rounds);
    if (!status)
        status = gpushmem_barrier_all();
    if (!status && b->initiator) {
        perf_bench_report(b, c, c->test, &own);
        if (c->reference)
            perf_bench_report(b, c, c->reference_test, &reference);
    }
    perf_samples_clear(&own);
    perf_samples_clear(&reference);
    return status;
}

static const char *path_of(const struct perf_bench *b, const struct perf_case *c)
{
    if (c->in_kernel || c->by_gpu)
        return b->info.device_direct ? "direct" : "ring";
    return b->mapped ? "direct" : "channel";
}

void perf_bench_report(struct perf_bench *b, const struct perf_case *c, const char *test,
                       struct perf_samples *us)
{
    struct perf_row row = {.n_pes = b->n_pes,
                           .pairs = b->options->pairs,
                           .bidirectional = b->options->bidirectional,
                           .size_bytes = c->size,
                           .overlap = c->overlap,
                           .overlap_percent = c->overlap_percent,
                           .samples = us->count};
    snprintf(row.test, sizeof row.test, "%s", test);
    snprintf(row.issuer, sizeof row.issuer, "%s", c->issuer);
    snprintf(row.path, sizeof row.path, "%s", path_of(b, c));
    snprintf(row.memory, sizeof row.memory, "%s", b->memory);
    snprintf(row.transport, sizeof row.transport, "%s", b->info.transport);
    perf_samples_interval(us, &row.us_low, &row.us_high);
    double p50 = perf_samples_percentile(us, 50);
    row.us_p50 = p50;
    if (c->bandwidth || c->both) {
        row.bandwidth_gb_s = p50 > 0 ? (double)c->size / (p50 * 1e3) : 0;
        row.rate_m_s = p50 > 0 ? 1 / p50 : 0;
    }
    if (!c->bandwidth) {
        row.latency_us_p50 = p50;
        row.latency_us_p99 = perf_samples_percentile(us, 99);
        row.latency_us_p99_9 = perf_samples_percentile(us, 99.9);
        row.latency_us_max = perf_samples_percentile(us, 100);
    }
    perf_report_add(b->report, &row);
}
