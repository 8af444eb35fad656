// SPDX-License-Identifier: BSD-3-Clause
// gpushmem-perf: the program behind `gpushmem perf`. Run under a launcher; PE 0 measures, the
// others take part.
#define _GNU_SOURCE // isatty, setenv
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "document.h"
#include "launch.h"
#include "memory.h"
#include "outcome.h"
#include "tests.h"

const struct perf_test perf_tests[] = {
    {"put-lat", "latency of puts: ping-pong", perf_host_put_latency, perf_device_put_latency,
     perf_stream_put, 2, false, PERF_FITS_PAIRS | PERF_FITS_MEMORY},
    {"put-bw", "bandwidth and rate of puts, beside memcpy", perf_host_put_bandwidth,
     perf_device_put_bandwidth, NULL, 2, false,
     PERF_FITS_PAIRS | PERF_FITS_BOTH_WAYS | PERF_FITS_MEMORY},
    {"get-lat", "latency of gets", perf_host_get_latency, perf_device_get_latency, perf_stream_get,
     2, false, PERF_FITS_PAIRS | PERF_FITS_MEMORY},
    {"get-bw", "bandwidth and rate of gets, beside memcpy", perf_host_get_bandwidth,
     perf_device_get_bandwidth, NULL, 2, false,
     PERF_FITS_PAIRS | PERF_FITS_BOTH_WAYS | PERF_FITS_MEMORY},
    {"amo", "latency and rate of atomics", perf_host_atomics, perf_device_atomics, NULL, 2, false,
     PERF_FITS_PAIRS},
    {"overlap", "how much of a put hides behind work of the PE that issued it", perf_host_overlap,
     NULL, NULL, 2, false, PERF_FITS_MEMORY},
    {"barrier", "latency of barrier_all and sync_all over all PEs", perf_host_barrier,
     perf_device_barrier, perf_stream_barrier, 2, false, 0},
    {"coll", "collectives; those of streams beside NCCL with --nccl", perf_host_coll,
     perf_device_coll, perf_stream_coll, 2, false, 0},
    {"ring", "the command ring alone: commands per second, round trip", NULL, perf_device_ring,
     NULL, 1, true, 0},
    {NULL, NULL, NULL, NULL, NULL, 0, false, 0},
};

static const struct perf_test *find(const char *name)
{
    const struct perf_test *test = perf_tests;
    while (strcmp(test->name, name) != 0)
        test++;
    return test;
}

static int pes_of(const struct perf_options *o, const struct perf_test *test)
{
    bool pairs = (test->fits & PERF_FITS_PAIRS) && 2 * o->pairs > test->min_pes;
    return pairs ? 2 * o->pairs : test->min_pes;
}

static int check_pes(const struct perf_options *o)
{
    for (int i = 0; o->tests[i]; i++) {
        const struct perf_test *test = find(o->tests[i]);
        if (gpushmem_n_pes() >= pes_of(o, test))
            continue;
        if (gpushmem_my_pe() == 0)
            fprintf(stderr, "gpushmem perf: %s%s needs %d PEs, this job has %d\n", test->name,
                    o->pairs > 1 ? " with so many --pairs" : "", pes_of(o, test), gpushmem_n_pes());
        gpushmem_barrier_all(); // a PE that returned first would end the one that speaks
        return GPUSHMEM_ERR_INVALID;
    }
    return 0;
}

// Device operations take the path that the settings and the machine give. Where that is loads and
// stores, a second session sends them through ring and proxy.
enum { EXIT_USAGE = 2 };
enum session { AS_SET, FORCED_RING };

// One test, issued in one way; a sentence instead if it cannot be measured so.
static int run_issued(struct perf_bench *b, const struct perf_test *test, perf_test_fn measure,
                      unsigned issuer)
{
    if (!measure || !(b->options->issuers & issuer))
        return 0;
    const char *unfit = perf_unfit(b, test, issuer);
    if (!unfit)
        return measure(b);
    if (b->initiator)
        perf_report_leave_out(b->report, test->name, issuer, unfit);
    return 0;
}

static int run_one(struct perf_bench *b, const struct perf_test *test, enum session session)
{
    bool device = !(test->ring && b->info.device_direct);
    int status = session == AS_SET ? run_issued(b, test, test->host, PERF_HOST) : 0;
    if (!status && device)
        status = run_issued(b, test, test->device, PERF_DEVICE);
    return status ? status : run_issued(b, test, test->stream, PERF_STREAM);
}

// *direct: device operations went by loads and stores.
static int run_session(const struct perf_options *o, struct perf_report *report,
                       enum session session, bool *direct)
{
    struct perf_bench bench;
    int status = check_pes(o);
    if (!status)
        status = perf_bench_open(&bench, o, report);
    for (int i = 0; o->tests[i] && !status; i++)
        status = run_one(&bench, find(o->tests[i]), session);
    if (!status) {
        *direct = bench.info.device_direct;
        perf_bench_close(&bench);
    }
    return status;
}

// A failed session ends the whole job: the other PEs may be waiting in a ping-pong.
static int run_all(const struct perf_options *o, struct perf_report *report)
{
    bool direct = false;
    if (run_session(o, report, AS_SET, &direct))
        return 1;
    if (!direct || !(o->issuers & (PERF_DEVICE | PERF_STREAM)))
        return 0;
    setenv("GPUSHMEM_P2P", "0", 1);
    int status = gpushmem_finalize();
    if (!status)
        status = gpushmem_init();
    return status ? status : run_session(o, report, FORCED_RING, &direct);
}

static int fail(const char *doing)
{
    if (gpushmem_last_error_code())
        fprintf(stderr, "gpushmem perf: %s failed: %s\n", doing, gpushmem_last_error());
    return 1;
}

// What was printed may still be on its way to a full disk.
static int output_check(int exit_status)
{
    if (!fflush(stdout) && !ferror(stdout))
        return exit_status;
    fprintf(stderr, "gpushmem perf: cannot write the output: %s\n", strerror(errno));
    return exit_status ? exit_status : 1;
}

static int pes_needed(const struct perf_options *options)
{
    int most = 1;
    for (int i = 0; options->tests[i]; i++) {
        int pes = pes_of(options, find(options->tests[i]));
        most = pes > most ? pes : most;
    }
    return options->pes ? options->pes : most;
}

// On PE 0, with the rows: what the options want of them. The exit status.
static int finish(const struct perf_options *o, const struct perf_report *report,
                  const struct perf_about *about)
{
    struct perf_recorded run;
    char *text = perf_document_text(report, about);
    int status = text && report->n_rows ? 0 : 1;
    if (text && o->json && !perf_document_write(text, o->json))
        status = 1;
    if (!status && (o->plot || o->n_compare)) {
        bool good = perf_recorded_parse(&run, "this run", text);
        status = good ? perf_outcome(o, &run) : 1;
        perf_recorded_clear(&run);
    }
    free(text);
    return status;
}

// All PEs are inside. PE 0 has the figures.
static int measure(const struct perf_options *options, const struct perf_about *about)
{
    bool first = gpushmem_my_pe() == 0, to_stdout = options->json && !strcmp(options->json, "-");
    struct perf_report report = {.table = first && !to_stdout,
                                 .markdown = options->markdown,
                                 .progress = first && !options->quiet && isatty(STDERR_FILENO)};
    if (first && !perf_outcome_is_possible(options)) // where an external launcher started this
        gpushmem_global_exit(EXIT_USAGE);
    if (report.table && !options->markdown)
        printf("# load: %.1f on %d cores\n", about->machine.load, about->machine.cores);
    if (run_all(options, &report))
        gpushmem_global_exit(fail("the benchmark"));
    int exit_status = first ? finish(options, &report, about) : 0;
    perf_tell_result(exit_status);
    perf_report_clear(&report);
    return exit_status;
}

int main(int argc, char **argv)
{
    struct perf_options options;
    int exit_status;
    if (!perf_options_parse(&options, argc, argv, &exit_status))
        return output_check(exit_status);
    bool launched = perf_is_launched();
    if (!launched && !perf_outcome_is_possible(&options))
        return EXIT_USAGE;
    if (options.from)
        return perf_outcome_of_file(&options);
    if (!launched)
        return perf_launch(pes_needed(&options), options.issuers == PERF_HOST,
                           argv); // kernels and proxies want cores too
    struct perf_about about;
    perf_about_take(&about, argv);
    perf_memory_prepare(&options, perf_bench_bytes(&options));
    if (gpushmem_init())
        return fail("init");
    exit_status = measure(&options, &about);
    perf_about_clear(&about);
    return output_check(gpushmem_finalize() ? fail("finalize") : exit_status);
}
