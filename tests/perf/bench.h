// SPDX-License-Identifier: BSD-3-Clause
// What all tests share: memory, the peer, and the way one row is measured.
#ifndef PERF_BENCH_H
#define PERF_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushmem/gpushmem.h"
#include "options.h"
#include "report.h"
#include "samples.h"

#ifdef __cplusplus
extern "C" {
#endif

// What PE 0 decides for everybody.
struct perf_plan {
    uint64_t batch;  // operations timed together
    uint64_t rounds; // samples
};

struct perf_bench {
    const struct perf_options *options;
    struct perf_report *report; // rows are added on PE 0
    int my_pe, n_pes;
    int peer;                       // the other PE of the pair; in a job of one PE, itself
    bool initiator;                 // PE 0: decides for all, and adds the rows
    bool issues;                    // the PE of a pair that issues
    bool answers;                   // the other one
    char memory[4];                 // as in perf_options, never empty
    uint64_t max_bytes;             // size of source and target
    char *source;                   // symmetric: what is sent, and where gets arrive
    char *target;                   // symmetric: written to and read from on the peer
    char *program;                  // of the same size, not in the heap
    uint64_t *flag;                 // symmetric: ping-pongs
    uint64_t *word;                 // symmetric: atomics
    uint64_t *kernel_ns;            // symmetric: time taken inside a kernel
    struct perf_plan *plan_word;    // symmetric: written by PE 0
    struct perf_plan plan;          // what it held last
    uint64_t sequence;              // last value of the flag, the same on both sides
    double kernel_us;               // the last kernel's time
    uint64_t *lacking;              // symmetric: see reach.c
    bool mapped;                    // all pairs' memory is mapped by the host
    struct gpushmem_peer_info info; // how the peer is reached; device_direct: in all pairs
};

struct perf_case;
// Does `n` operations, or (serve) the other side's share of n operations. 0 or a negative status.
typedef int (*perf_run_fn)(struct perf_bench *bench, const struct perf_case *c, uint64_t n);

// One row to measure.
struct perf_case {
    const char *test;
    const char *issuer;    // see perf_row
    uint64_t size;         // bytes of an operation
    uint64_t window;       // operations in one count of `n`; 0: one
    double share;          // of the time that counts: 0.5 for half a round trip; 0: all
    uint64_t warm;         // counts run before, which also tell how long one takes
    bool in_kernel;        // the time is bench->kernel_us, not that of the call
    uint64_t lead;         // with in_kernel: operations of each call before its clock starts
    int blocks, threads;   // with in_kernel: of its grid and of each block
    perf_run_fn run;       // the PE that issues
    perf_run_fn serve;     // the other PEs; NULL: nothing to do
    bool paired;           // serve: only the other PE of the pair
    perf_run_fn reference; // PE 0: timed in turn with `run`, under the same conditions; NULL: none
    bool bandwidth;        // report bandwidth and rate, not latency
    bool both;             // report both
    bool overlap;          // overlap_percent is known
    double overlap_percent;
    bool by_gpu;                // the host's time, but the way of device operations
    const char *reference_test; // its name in the table
};

// Of source and of target.
uint64_t perf_bench_bytes(const struct perf_options *options);
int perf_bench_open(struct perf_bench *bench, const struct perf_options *options,
                    struct perf_report *report);
void perf_bench_close(struct perf_bench *bench);

// Collective. Measures the case and adds its rows.
int perf_measure(struct perf_bench *bench, const struct perf_case *c);
// What perf_measure does for windows of several pairs, or both ways: see together.c.
int perf_measure_together(struct perf_bench *bench, const struct perf_case *c);
// Collective. Fills bench->plan everywhere from what PE 0 knows: how long one count takes, and how
// long a batch has to be.
int perf_bench_agree(struct perf_bench *bench, double us_each, double least_us);
// Adds a row from samples of microseconds per operation.
void perf_bench_report(struct perf_bench *bench, const struct perf_case *c, const char *test,
                       struct perf_samples *us);

// Operations of `size` bytes in a window: enough to hide the latency, few enough to end on a slow
// network too.
uint64_t perf_window(uint64_t size);

// The sizes of this run: the options', or the test's own.
int perf_bench_sizes(const struct perf_bench *bench, const uint64_t *standard, int n,
                     const uint64_t **sizes);

#ifdef __cplusplus
}
#endif

#endif
