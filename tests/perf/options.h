// SPDX-License-Identifier: BSD-3-Clause
// The command line of gpushmem-perf.
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PERF_MAX_SIZES = 40, PERF_MAX_TESTS = 16, PERF_MAX_FILES = 4 };
enum perf_issuer { PERF_HOST = 1, PERF_DEVICE = 2, PERF_STREAM = 4, PERF_ALL = 7 };

struct perf_options {
    const char *tests[PERF_MAX_TESTS + 1]; // names, NULL at the end
    uint64_t sizes[PERF_MAX_SIZES];        // ascending, in bytes
    int n_sizes;                           // 0: each test takes its own
    // operations timed together; 0: as many as the clock needs
    int iterations;
    int rounds;     // samples of each row; 0: about `seconds` worth of them
    double seconds; // time spent on each row
    // to start without a launcher; 0: as many as the tests need
    int pes;
    unsigned issuers; // or of enum perf_issuer
    // memory at the PE that issues and at its peer: "D H" and the like; "": both in the heap
    char memory[4];
    int pairs;          // PE i and PE i + pairs, all at the same time
    bool bidirectional; // both PEs of a pair issue
    const char *nccl;   // library to compare collectives with; NULL: none
    const char *json;   // file, "-" is the standard output; NULL: none
    const char *plot;   // file; NULL: none
    const char *from;   // file whose rows are taken instead of measuring; NULL: none
    const char *compare[PERF_MAX_FILES];
    int n_compare;
    int tolerance; // of a comparison, in percent
    bool markdown; // the table as Markdown
    bool quiet;    // no progress line
};

// True if the program should go on; else *exit_status is what it should end with.
bool perf_options_parse(struct perf_options *options, int argc, char **argv, int *exit_status);

#ifdef __cplusplus
}
#endif

#endif
