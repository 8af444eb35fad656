// SPDX-License-Identifier: BSD-3-Clause
// gpushmem-perf: the program behind `gpushmem perf`. Run under a launcher; PE 0 measures, the others take part.
#define _GNU_SOURCE // isatty
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "launch.h"
#include "tests.h"

const struct perf_test perf_tests[] = {
    {"put-lat", "latency of puts: ping-pong", perf_host_put_latency, NULL, 2},
    {"put-bw", "bandwidth and rate of puts, beside memcpy", perf_host_put_bandwidth, NULL, 2},
    {"get-lat", "latency of gets", perf_host_get_latency, NULL, 2},
    {"get-bw", "bandwidth and rate of gets, beside memcpy", perf_host_get_bandwidth, NULL, 2},
    {"amo", "latency and rate of atomics", perf_host_atomics, NULL, 2},
    {"barrier", "latency of barrier_all and sync_all over all PEs", perf_host_barrier, NULL, 2},
    {NULL, NULL, NULL, NULL, 0},
};

static const struct perf_test *find(const char *name)
{
    const struct perf_test *test = perf_tests;
    while (strcmp(test->name, name))
        test++;
    return test;
}

static int run_one(struct perf_bench *b, const struct perf_test *test)
{
    if (b->n_pes < test->min_pes) {
        if (b->initiator)
            fprintf(stderr, "gpushmem perf: %s needs %d PEs, this job has %d\n", test->name, test->min_pes, b->n_pes);
        return GPUSHMEM_ERR_INVALID;
    }
    int status = 0;
    if (test->host && (b->options->issuers & PERF_HOST))
        status = test->host(b);
    if (!status && test->device && (b->options->issuers & PERF_DEVICE))
        status = test->device(b);
    return status;
}

static int run_all(const struct perf_options *options, struct perf_report *report)
{
    struct perf_bench bench;
    int status = perf_bench_open(&bench, options, report);
    for (int i = 0; options->tests[i] && !status; i++)
        status = run_one(&bench, find(options->tests[i]));
    if (!status)
        perf_bench_close(&bench);
    return status;
}

static int fail(const char *doing)
{
    if (gpushmem_last_error_code())
        fprintf(stderr, "gpushmem perf: %s failed: %s\n", doing, gpushmem_last_error());
    return 1;
}

static int pes_needed(const struct perf_options *options)
{
    int most = 1;
    for (int i = 0; options->tests[i]; i++) {
        int min_pes = find(options->tests[i])->min_pes;
        most = min_pes > most ? min_pes : most;
    }
    return options->pes ? options->pes : most;
}

int main(int argc, char **argv)
{
    struct perf_options options;
    int exit_status;
    if (!perf_options_parse(&options, argc, argv, &exit_status))
        return exit_status;
    if (!perf_is_launched())
        return perf_launch(pes_needed(&options), argv);
    if (gpushmem_init())
        return fail("init");
    bool first = gpushmem_my_pe() == 0, to_stdout = options.json && !strcmp(options.json, "-");
    struct perf_report report = {.table = first && !to_stdout, .markdown = options.markdown,
                                 .progress = first && !options.quiet && isatty(STDERR_FILENO)};
    if (run_all(&options, &report))
        gpushmem_global_exit(fail("the benchmark")); // the other PEs may be waiting in a ping-pong
    exit_status = first && options.json && !perf_report_write_json(&report, options.json);
    perf_report_clear(&report);
    return gpushmem_finalize() ? fail("finalize") : exit_status;
}
