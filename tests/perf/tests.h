// SPDX-License-Identifier: BSD-3-Clause
// The tests of gpushmem-perf, by name.
#ifndef PERF_TESTS_H
#define PERF_TESTS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct perf_bench;

// A test measures one or more rows. All PEs call it alike. 0 or a negative status.
typedef int (*perf_test_fn)(struct perf_bench *bench);

struct perf_test {
    const char *name;
    const char *help;
    perf_test_fn host; // NULL: there is none
    perf_test_fn device;
    perf_test_fn stream;
    int min_pes;
    bool ring; // only where device operations go through the ring
    unsigned fits;
};

// What of the options a test can do, beside one pair in one direction on the heap.
enum perf_fits {
    PERF_FITS_PAIRS = 1,     // --pairs
    PERF_FITS_BOTH_WAYS = 2, // --bidirectional
    PERF_FITS_MEMORY = 4,    // -d
};

// NULL if the test can be measured with these options, issued so (one bit of enum perf_issuer);
// else a sentence about why not.
const char *perf_unfit(const struct perf_bench *bench, const struct perf_test *test,
                       unsigned issuer);

extern const struct perf_test perf_tests[]; // ends with a NULL name

int perf_host_put_latency(struct perf_bench *bench);
int perf_host_get_latency(struct perf_bench *bench);
int perf_host_put_bandwidth(struct perf_bench *bench);
int perf_host_get_bandwidth(struct perf_bench *bench);
int perf_host_atomics(struct perf_bench *bench);
int perf_host_barrier(struct perf_bench *bench);
int perf_host_coll(struct perf_bench *bench);
int perf_host_overlap(struct perf_bench *bench);

int perf_device_put_latency(struct perf_bench *bench);
int perf_device_get_latency(struct perf_bench *bench);
int perf_device_put_bandwidth(struct perf_bench *bench);
int perf_device_get_bandwidth(struct perf_bench *bench);
int perf_device_atomics(struct perf_bench *bench);
int perf_device_atomics_latency(struct perf_bench *bench); // a part of it
int perf_device_barrier(struct perf_bench *bench);
int perf_stream_put(struct perf_bench *bench);
int perf_stream_get(struct perf_bench *bench);
int perf_stream_barrier(struct perf_bench *bench);
int perf_stream_coll(struct perf_bench *bench);
int perf_device_coll(struct perf_bench *bench);
int perf_device_ring(struct perf_bench *bench); // needs device operations to go through the ring

#ifdef __cplusplus
}
#endif

#endif
