// SPDX-License-Identifier: BSD-3-Clause
// Rows of results: as a table while they come in, and as JSON at the end.
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A figure of 0 was not measured: empty in the table, null in JSON.
struct perf_row {
    const char *test;
    // "host"; in a kernel "thread", "warp", "block", "32 blocks"; on streams "stream", "sync",
    // "graph"
    const char *issuer;
    int n_pes;          // of the job
    char transport[16]; // who moves the data
    // "direct": loads and stores of the issuer; "channel": posted by the caller; "ring": by the
    // proxy
    const char *path;
    uint64_t size_bytes;
    double latency_us_p50, latency_us_p99;
    double bandwidth_gb_s; // 10^9 bytes per second
    double rate_m_s;       // million operations per second
};

struct perf_report {
    struct perf_row *rows;
    int n_rows, room;
    bool table, markdown; // print each row as it comes
    bool progress;        // a line on the terminal about what is being measured
};

void perf_report_progress(struct perf_report *report, const char *test, const char *issuer,
                          uint64_t size);
void perf_report_add(struct perf_report *report, const struct perf_row *row);
// Whether --json PATH (NULL: not wanted) can be written, with a sentence on stderr if not: asked
// before anything is measured.
bool perf_report_can_write(const char *path);
// To a file, or to the standard output for "-". False, with a sentence on stderr, if it cannot be
// written.
bool perf_report_write_json(const struct perf_report *report, const char *path);
void perf_report_clear(struct perf_report *report);

#ifdef __cplusplus
}
#endif

#endif
