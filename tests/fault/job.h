// SPDX-License-Identifier: BSD-3-Clause
// A job of a few PEs for tests of the verbs transport alone: forked processes that exchange blobs
// and meet in barriers through shared memory. No launcher and no runtime, so that what fails is the
// transport.
#ifndef JOB_H
#define JOB_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/config.h"
#include "transport/transport.h"

enum {
    JOB_MOST_PES = 4,
    JOB_BLOB_BYTES = 8192,
    JOB_HEAP_BYTES = 8 << 20,
    JOB_CONTROL_BYTES = 4096
};

// What all processes of the job share.
struct job_shared {
    _Atomic int arrived, leaving;
    pid_t pids[JOB_MOST_PES];
    int64_t blob_bytes[JOB_MOST_PES];
    char blobs[JOB_MOST_PES][JOB_BLOB_BYTES];
    _Atomic uint64_t words[16]; // the test's own
};

struct job {
    int pe, n_pes;
    struct job_shared *shared;
    struct gpsh_settings settings;
    struct gpsh_transport_env env;
    struct gpsh_transport *transport;
    struct gpsh_channel *channel;
    char *heap;
    // what peer_failed said
    int failures, failed_pe;
    char why[512];
};

// Forks n_pes processes, opens and connects verbs in each (devices[pe] is its
// GPUSHMEM_VERBS_DEVICES), runs body, and closes. A PE succeeds if body returns 0. `victim` (or -1)
// may end as it likes. Returns 0 if all others succeeded.
int job_run(int n_pes, const char *const devices[], const char *const settings[], int victim,
            int (*body)(struct job *));

// All PEs; n counts the calls of this process from 1. Not for use after a PE was killed.
void job_barrier(struct job *job, int n);

// Posts with retries, or returns the flow's error. Gives up after a minute: a hang is a failure of
// the test.
int job_post(struct job *job, const struct gpsh_op *op);
// Until the flow towards pe has nothing under way; returns its error.
int job_drain(struct job *job, int pe);

double job_seconds(void);

#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "PE %d: %s:%d: %s: ", job->pe, __FILE__, __LINE__, #condition);        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

#endif
