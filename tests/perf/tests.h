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
};

extern const struct perf_test perf_tests[]; // ends with a NULL name

int perf_host_put_latency(struct perf_bench *bench);
int perf_host_get_latency(struct perf_bench *bench);
int perf_host_put_bandwidth(struct perf_bench *bench);
int perf_host_get_bandwidth(struct perf_bench *bench);
int perf_host_atomics(struct perf_bench *bench);
int perf_host_barrier(struct perf_bench *bench);
int perf_host_coll(struct perf_bench *bench);

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
