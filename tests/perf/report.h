// SPDX-License-Identifier: BSD-3-Clause
// Rows of results: as a table while they come in, and kept for what is written at the end.
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PERF_NAME = 32 };

// A figure of 0 was not measured: empty in the table, null in JSON.
struct perf_row {
    char test[PERF_NAME];
    // "host"; in a kernel "thread", "warp", "block", "32 blocks"; on streams "stream", "sync",
    // "graph"
    char issuer[PERF_NAME];
    int n_pes;          // of the job
    int pairs;          // that work at the same time
    bool bidirectional; // both PEs of a pair issue
    char transport[16]; // who moves the data
    // "direct": loads and stores of the issuer; "channel": posted by the caller; "ring": by the
    // proxy
    char path[16];
    char memory[8]; // "D H": GPU memory at the PE that issues, host memory at its peer
    uint64_t size_bytes;
    double latency_us_p50, latency_us_p99, latency_us_p99_9, latency_us_max;
    double bandwidth_gb_s;  // 10^9 bytes per second
    double rate_m_s;        // million operations per second
    bool overlap;           // overlap_percent is known, and may be 0
    double overlap_percent; // of a transfer, hidden behind work
    uint64_t samples;
    double us_p50;          // of an operation, also where bandwidth was measured
    double us_low, us_high; // see perf_samples_interval
};

struct perf_report {
    struct perf_row *rows;
    int n_rows, room;
    char **left_out; // sentences
    int n_left_out;
    bool table, markdown; // print each row as it comes
    bool progress;        // a line on the terminal about what is being measured
};

void perf_report_progress(struct perf_report *report, const char *test, const char *issuer,
                          uint64_t size);
void perf_report_add(struct perf_report *report, const struct perf_row *row);
// Says why a test has no rows. `issuer`: one bit of enum perf_issuer.
void perf_report_leave_out(struct perf_report *report, const char *test, unsigned issuer,
                           const char *why);
void perf_report_clear(struct perf_report *report);

#ifdef __cplusplus
}
#endif

#endif
