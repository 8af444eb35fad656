// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // getopt_long
#include "options.h"

#include <ctype.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests.h"

enum { OPT_JSON = 256, OPT_ISSUER, OPT_SIZES, OPT_MIN, OPT_MAX, OPT_SECONDS, OPT_MARKDOWN };

static const struct option long_options[] = {
    {"np", required_argument, NULL, 'n'},
    {"json", required_argument, NULL, OPT_JSON},
    {"issuer", required_argument, NULL, OPT_ISSUER},
    {"sizes", required_argument, NULL, OPT_SIZES},
    {"min", required_argument, NULL, OPT_MIN},
    {"max", required_argument, NULL, OPT_MAX},
    {"iterations", required_argument, NULL, 'i'},
    {"rounds", required_argument, NULL, 'r'},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"markdown", no_argument, NULL, OPT_MARKDOWN},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char usage_text[] =
    "usage: gpushmem perf [-n PES] TEST... [options]\n\n"
    "  -n, --np PES         PEs to start when no launcher has started this (default: as many as the tests need)\n"
    "      --issuer WHO     who calls the operations: host, device (kernels), stream, both (the first two) or all (default)\n"
    "      --sizes LIST     bytes, like 8,4K,1M\n"
    "      --min B, --max B instead: every power of two between them\n"
    "  -i, --iterations N   operations timed together (default: so many that reading the clock does not count)\n"
    "  -r, --rounds N       samples of each row\n"
    "      --seconds S      instead: time for each row (default 0.3)\n"
    "      --json FILE      also write the rows as a JSON array; - is the standard output, without the table\n"
    "      --markdown       print the table as Markdown\n"
    "  -q, --quiet          no progress line\n"
    "  -h, --help           print this\n\n"
    "tests (several may be given; all stands for all of them):\n";

static const char conventions[] =
    "\nLatencies are per operation; p50 and p99 are taken over the samples. A put latency is half of the round trip of\n"
    "a ping-pong, in which both sides wait for memory to change; a get or fetching atomic is a whole round trip.\n"
    "Bandwidth is that of windows of non-blocking operations, each ended by a quiet. GB is 10^9 bytes.\n";

__attribute__((format(printf, 1, 2))) static bool complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("gpushmem perf: ", stderr);
    vfprintf(stderr, format, args);
    fputs("; see gpushmem perf --help\n", stderr);
    va_end(args);
    return false;
}

static bool parse_bytes(const char *option, const char *text, const char **end, uint64_t *bytes)
{
    char *stop;
    if (!isdigit((unsigned char)text[0]))
        return complain("%s '%s' is not a size like 8, 4K or 1M", option, text);
    unsigned long long value = strtoull(text, &stop, 10);
    const char *units = "KMG", *unit = *stop ? strchr(units, toupper((unsigned char)*stop)) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    stop += unit != NULL;
    if (value < 1 || value > (UINT64_C(1) << 32) >> shift || (*stop && *stop != ','))
        return complain("%s '%s' is not a size from 1 to 4G", option, text);
    *bytes = (uint64_t)value << shift;
    *end = stop;
    return true;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool parse_sizes(struct perf_options *o, const char *text)
{
    for (o->n_sizes = 0;; text++) {
        if (o->n_sizes == PERF_MAX_SIZES)
            return complain("--sizes lists more than %d sizes", PERF_MAX_SIZES);
        if (!parse_bytes("--sizes", text, &text, &o->sizes[o->n_sizes++]))
            return false;
        if (!*text)
            break;
    }
    qsort(o->sizes, (size_t)o->n_sizes, sizeof o->sizes[0], ascending);
    return true;
}

static bool parse_number(const char *option, const char *text, uint64_t *value)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || n < 1 || n > 1000000000)
        return complain("%s '%s' is not a number from 1 to 1000000000", option, text);
    *value = n;
    return true;
}

static bool parse_seconds(const char *text, double *seconds)
{
    char *end;
    double s = strtod(text, &end);
    if (end == text || *end || !(s > 0 && s <= 3600))
        return complain("--seconds '%s' is not a number above 0 and up to 3600", text);
    *seconds = s;
    return true;
}

static bool parse_issuer(const char *text, unsigned *issuers)
{
    static const struct {
        const char *word;
        unsigned issuers;
    } words[] = {{"host", PERF_HOST}, {"device", PERF_DEVICE}, {"stream", PERF_STREAM}, {"both", PERF_HOST | PERF_DEVICE}, {"all", PERF_ALL}};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!strcmp(text, words[i].word)) {
            *issuers = words[i].issuers;
            return true;
        }
    }
    return complain("--issuer '%s' is none of host, device, stream, both, all", text);
}

static bool take_test(struct perf_options *o, const char *name)
{
    int n = 0;
    while (o->tests[n])
        n++;
    bool all = !strcmp(name, "all"), known = all;
    for (int i = 0; perf_tests[i].name; i++) {
        bool wanted = all || !strcmp(name, perf_tests[i].name);
        known |= wanted;
        if (wanted && n < PERF_MAX_TESTS)
            o->tests[n++] = perf_tests[i].name;
    }
    return known || complain("there is no test '%s'", name);
}

static bool take_range(struct perf_options *o, uint64_t low, uint64_t high)
{
    if (!low && !high)
        return true;
    low = low ? low : 1;
    high = high ? high : 4 << 20;
    if (low > high)
        return complain("--min %llu is more than --max %llu", (unsigned long long)low, (unsigned long long)high);
    for (uint64_t size = low; size <= high && o->n_sizes < PERF_MAX_SIZES; size *= 2)
        o->sizes[o->n_sizes++] = size;
    return true;
}

static bool take_option(struct perf_options *o, int option, uint64_t *low, uint64_t *high)
{
    const char *end;
    uint64_t pes = 0;
    switch (option) {
    case 'n':
        if (!parse_number("-n", optarg, &pes))
            return false;
        o->pes = (int)pes;
        return true;
    case OPT_JSON:
        o->json = optarg;
        return true;
    case OPT_ISSUER:
        return parse_issuer(optarg, &o->issuers);
    case OPT_SIZES:
        return parse_sizes(o, optarg);
    case OPT_MIN:
        return parse_bytes("--min", optarg, &end, low);
    case OPT_MAX:
        return parse_bytes("--max", optarg, &end, high);
    case OPT_SECONDS:
        return parse_seconds(optarg, &o->seconds);
    case OPT_MARKDOWN:
        o->markdown = true;
        return true;
    case 'i':
        return parse_number("--iterations", optarg, &o->iterations);
    case 'r':
        return parse_number("--rounds", optarg, &o->rounds);
    case 'q':
        o->quiet = true;
        return true;
    }
    return false;
}

static void print_usage(void)
{
    fputs(usage_text, stdout);
    for (int i = 0; perf_tests[i].name; i++)
        printf("  %-9s %s\n", perf_tests[i].name, perf_tests[i].help);
    fputs(conventions, stdout);
}

bool perf_options_parse(struct perf_options *o, int argc, char **argv, int *exit_status)
{
    *o = (struct perf_options){.seconds = 0.3, .issuers = PERF_ALL};
    *exit_status = 2;
    opterr = 0;
    uint64_t low = 0, high = 0;
    for (int option; (option = getopt_long(argc, argv, ":n:i:r:qh", long_options, NULL)) != -1;) {
        if (option == 'h') {
            print_usage();
            *exit_status = 0;
            return false;
        }
        if (option == '?' || option == ':')
            return complain(option == ':' ? "option '%s' needs a value" : "unknown option '%s'", argv[optind - 1]);
        if (!take_option(o, option, &low, &high))
            return false;
    }
    for (int i = optind; i < argc; i++) {
        if (!take_test(o, argv[i]))
            return false;
    }
    if (!o->tests[0])
        return complain("no test given, for example: gpushmem perf put-lat");
    return take_range(o, low, high);
}
