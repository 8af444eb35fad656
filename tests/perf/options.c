// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // strsep
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/options.h"
#include "runtime/cli/page.h"
#include "runtime/core/spelling.h"
#include "tests.h"

static void print_more(void)
{
    enum { TEXT_COLUMN = 12 };
    static const char *const texts[] = {
        "Latencies are per operation; the percentiles are taken over the samples. A put latency is "
        "half of the round trip of a ping-pong, in which both sides wait for memory to change; a "
        "get or fetching atomic is a whole round trip. Bandwidth is that of windows of "
        "non-blocking operations, each ended by a quiet. GB is 10^9 bytes. With several pairs or "
        "--bidirectional, bandwidth and rate are those of all PEs together, and latencies are "
        "those of PE 0 while the other pairs do the same. Collectives run one after another; a "
        "row's size is the largest buffer of a PE, and its bandwidth that size by the time.",
        "A row of --compare is slower if its ratio of times is above 1 by more than the tolerance "
        "all over its interval, which is made of the medians of eight parts of each run. The exit "
        "status is 3 if a row is slower, and 4 if a floor (memcpy, raw-flag, raw-load) has moved: "
        "then "
        "the machine has changed, and nothing is known of the rows.",
        NULL};
    puts("\ntests (several may be given; all stands for all of them):");
    for (int i = 0; perf_tests[i].name; i++)
        gpsh_page_help(stdout, perf_tests[i].help, printf("  %-9s ", perf_tests[i].name),
                       TEXT_COLUMN);
    gpsh_page_help_paragraphs(texts);
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool take_sizes(const struct gpsh_command_line *line, const char *name, char *text)
{
    struct perf_options *o = line->context;
    char *copy = strdup(text), *rest = copy; // the launched program is given the same words again
    bool good = copy || gpsh_options_complain(line, "out of memory");
    for (o->n_sizes = 0; rest && good;) {
        const char *size = strsep(&rest, ",");
        good =
            o->n_sizes < PERF_MAX_SIZES
                ? gpsh_options_bytes(line, name, size, &o->sizes[o->n_sizes++])
                : gpsh_options_complain(line, "%s lists more than %d sizes", name, PERF_MAX_SIZES);
    }
    free(copy);
    qsort(o->sizes, (size_t)o->n_sizes, sizeof o->sizes[0], ascending);
    return good;
}

static bool take_test(const struct gpsh_command_line *line, const char *name)
{
    struct perf_options *o = line->context;
    int n = 0;
    while (o->tests[n])
        n++;
    bool all = !strcmp(name, "all"), known = all;
    char ask[GPSH_SPELLING_BYTES];
    struct gpsh_spelling spelling = {.typed = name, .length = strlen(name)};
    for (int i = 0; perf_tests[i].name; i++) {
        bool wanted = all || !strcmp(name, perf_tests[i].name);
        known |= wanted;
        gpsh_spelling_consider(&spelling, perf_tests[i].name, perf_tests[i].name);
        if (wanted && n < PERF_MAX_TESTS)
            o->tests[n++] = perf_tests[i].name;
    }
    return known || gpsh_options_complain(
                        line, "there is no test '%s'; %sgpushmem perf --help names them all", name,
                        gpsh_spelling_ask(&spelling, ask));
}

static bool take_memory(const struct gpsh_command_line *line, const char *name, char *text)
{
    struct perf_options *o = line->context;
    bool good = strlen(text) == 3 && strchr("DH", text[0]) && strchr("DH", text[2]);
    if (good)
        snprintf(o->memory, sizeof o->memory, "%s", text);
    return good || gpsh_options_complain(line,
                                         "%s '%s' is not D D, D H, H D or H H: D is GPU memory, "
                                         "H host memory, first at the PE that issues",
                                         name, text);
}

static bool take_compare(const struct gpsh_command_line *line, const char *name, char *text)
{
    struct perf_options *o = line->context;
    if (o->n_compare == PERF_MAX_FILES)
        return gpsh_options_complain(line, "%s is given more than %d times", name, PERF_MAX_FILES);
    o->compare[o->n_compare++] = text;
    return true;
}

// What is given together must make sense.
static bool check_together(const struct gpsh_command_line *line)
{
    struct perf_options *o = line->context;
    const char *test = o->tests[0];
    if (!o->from && !test)
        return gpsh_options_complain(line, "no test given, for example: gpushmem perf put-lat");
    if (o->from && (test || o->json))
        return gpsh_options_complain(line, "with --from nothing is measured: leave out %s",
                                     test ? test : "--json");
    if (o->plot && !strcmp(o->plot, "-"))
        return gpsh_options_complain(line, "--plot needs the name of a file, '-' is none");
    if (o->from && !o->plot && !o->n_compare)
        return gpsh_options_complain(line, "--from needs --compare FILE or --plot FILE");
    return true;
}

static bool take_range(const struct gpsh_command_line *line, uint64_t low, uint64_t high)
{
    struct perf_options *o = line->context;
    if (!low && !high)
        return true;
    low = low ? low : 1;
    high = high ? high : 4 << 20;
    if (low > high)
        return gpsh_options_complain(line, "--min %llu is more than --max %llu",
                                     (unsigned long long)low, (unsigned long long)high);
    for (uint64_t size = low; size <= high && o->n_sizes < PERF_MAX_SIZES; size *= 2)
        o->sizes[o->n_sizes++] = size;
    return true;
}

bool perf_options_parse(struct perf_options *o, int argc, char **argv, int *exit_status)
{
    static const unsigned issuers[] = {PERF_HOST, PERF_DEVICE, PERF_STREAM, PERF_HOST | PERF_DEVICE,
                                       PERF_ALL};
    enum { ISSUER_ALL = 4, MOST = 1000000000, MOST_PAIRS = MOST / 2 };
    unsigned issuer = ISSUER_ALL;
    uint64_t low = 0, high = 0;
    const struct gpsh_option options[] = {
        {'n', "np", "PES",
         "PEs to start when no launcher has started this (default: as many as the tests need)",
         .number = &o->pes, .low = 1, .high = MOST},
        {0, "issuer", "host|device|stream|both|all",
         "who calls the operations; device: kernels, both: host and device (default all)",
         .word = &issuer},
        {'d', "memory", "D|H D|H",
         "where the memory lies, at the PE that issues and at its peer: D on the GPU, "
         "H on the host (default: both in the heap)",
         .take = take_memory},
        {0, "pairs", "N", "so many pairs of PEs at once: PE i and PE i + N", .number = &o->pairs,
         .low = 1, .high = MOST_PAIRS},
        {0, "bidirectional", NULL, "bandwidth in both directions at once",
         .flag = &o->bidirectional},
        {0, "sizes", "LIST", "bytes, like 8,4K,1M", .take = take_sizes},
        {0, "min", "BYTES", "instead: every power of two from this", .bytes = &low},
        {0, "max", "BYTES", "to this", .bytes = &high},
        {'i', "iterations", "N",
         "operations timed together (default: so many that reading the clock does not count)",
         .number = &o->iterations, .low = 1, .high = MOST},
        {'r', "rounds", "N", "samples of each row", .number = &o->rounds, .low = 1, .high = MOST},
        {0, "seconds", "S", "instead: time for each row (default 0.3)", .seconds = &o->seconds,
         .low = 1e-3, .high = 3600},
        {0, "nccl", "LIBRARY",
         "compare collectives of streams with this NCCL, like libnccl.so.2 or its path",
         .text = &o->nccl},
        {0, "json", "FILE",
         "also write rows, machine, versions and settings as JSON; - is the standard "
         "output, without the table",
         .text = &o->json},
        {0, "plot", "FILE", "also draw size against latency and bandwidth, as SVG",
         .text = &o->plot},
        {0, "compare", "FILE",
         "say what is slower or faster than in this file of --json, and draw it too; "
         "may be given several times",
         .take = take_compare},
        {0, "tolerance", "PERCENT", "what --compare takes for the same (default 5)",
         .number = &o->tolerance, .low = 0, .high = 1000},
        {0, "from", "FILE", "take the rows from this file of --json instead of measuring",
         .text = &o->from},
        {0, "markdown", NULL, "print the table as Markdown", .flag = &o->markdown},
        {'q', "quiet", NULL, "no progress line", .flag = &o->quiet},
        {0},
    };
    const struct gpsh_command_line line = {"gpushmem perf", "[options] TEST... | --from FILE",
                                           print_more, options, .context = o};
    *o = (struct perf_options){.seconds = 0.3, .pairs = 1, .tolerance = 5};
    int first = gpsh_options_parse(&line, argc, argv, exit_status);
    if (first < 0)
        return false;
    for (int i = first; i < argc; i++) {
        if (!take_test(&line, argv[i]))
            return false;
    }
    if (!check_together(&line))
        return false;
    o->issuers = issuers[issuer];
    return take_range(&line, low, high);
}
