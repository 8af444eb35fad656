// SPDX-License-Identifier: BSD-3-Clause
// What the host's calls by the names of NVSHMEM and OpenSHMEM cost beside ours: the same call by
// each header in turn, batch by batch, on this PE's own memory, so that nearly all of the time is
// the call's. With two PEs also ping-pongs between them. Batches are short, so that most of them
// are not interrupted on a busy machine.
//
//   gpushmem run -n 1|2 perf_compat_cost [rounds [calls]]    medians of rounds, of so many calls
#define _GNU_SOURCE // setenv
#define GPSH_NVSHMEM_NO_CUDA
#include <nvshmem.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

#include "samples.h"

enum { APIS = 3, SIZE = 512 };

static int me, peer;
static uint64_t sequence, *flag;
static int64_t *word, value;
static char *target, *source;

// The same by each header; i is the number of the call.
#define CALLS(X)                                                                                   \
    X(my_pe, value = gpushmem_my_pe(), value = nvshmem_my_pe(), value = shmem_my_pe())             \
    X(p, gpushmem_int64_p(word, i, me), nvshmem_int64_p(word, i, me), shmem_int64_p(word, i, me))  \
    X(g, value = gpushmem_int64_g(word, me), value = nvshmem_int64_g(word, me),                    \
      value = shmem_int64_g(word, me))                                                             \
    X(put, gpushmem_putmem(target, source, 64, me), nvshmem_putmem(target, source, 64, me),        \
      shmem_putmem(target, source, 64, me))                                                        \
    X(put_nbi, gpushmem_putmem_nbi(target, source, 64, me),                                        \
      nvshmem_putmem_nbi(target, source, 64, me), shmem_putmem_nbi(target, source, 64, me))        \
    X(get, gpushmem_getmem(target, source, 64, me), nvshmem_getmem(target, source, 64, me),        \
      shmem_getmem(target, source, 64, me))                                                        \
    X(fetch_add, value = gpushmem_int64_atomic_fetch_add(word, 1, me),                             \
      value = nvshmem_int64_atomic_fetch_add(word, 1, me),                                         \
      value = shmem_int64_atomic_fetch_add(word, 1, me))                                           \
    X(fence, gpushmem_fence(), nvshmem_fence(), shmem_fence())                                     \
    X(quiet, gpushmem_quiet(), nvshmem_quiet(), shmem_quiet())

// A round trip: the lower PE sends first.
#define PING_PONG(SEND, WAIT)                                                                      \
    do {                                                                                           \
        sequence++;                                                                                \
        if (me < peer)                                                                             \
            SEND;                                                                                  \
        WAIT;                                                                                      \
        if (me > peer)                                                                             \
            SEND;                                                                                  \
    } while (0)
#define TRIPS(X)                                                                                   \
    X(p_trip,                                                                                      \
      PING_PONG(gpushmem_uint64_p(flag, sequence, peer),                                           \
                gpushmem_uint64_wait_until(flag, GPUSHMEM_CMP_EQ, sequence)),                      \
      PING_PONG(nvshmem_uint64_p(flag, sequence, peer),                                            \
                nvshmem_uint64_wait_until(flag, NVSHMEM_CMP_EQ, sequence)),                        \
      PING_PONG(shmem_uint64_p(flag, sequence, peer),                                              \
                shmem_uint64_wait_until(flag, SHMEM_CMP_EQ, sequence)))                            \
    X(put_signal_trip,                                                                             \
      PING_PONG(                                                                                   \
          gpushmem_putmem_signal(target, source, SIZE, flag, sequence, GPUSHMEM_SIGNAL_SET, peer), \
          gpushmem_signal_wait_until(flag, GPUSHMEM_CMP_EQ, sequence)),                            \
      PING_PONG(                                                                                   \
          nvshmem_putmem_signal(target, source, SIZE, flag, sequence, NVSHMEM_SIGNAL_SET, peer),   \
          nvshmem_signal_wait_until(flag, NVSHMEM_CMP_EQ, sequence)),                              \
      PING_PONG(shmem_putmem_signal(target, source, SIZE, flag, sequence, SHMEM_SIGNAL_SET, peer), \
                shmem_signal_wait_until(flag, SHMEM_CMP_EQ, sequence)))

typedef void batch_fn(long calls);
#define BATCH(NAME, CALL)                                                                          \
    static void NAME(long calls)                                                                   \
    {                                                                                              \
        for (long i = 0; i < calls; i++)                                                           \
            CALL;                                                                                  \
    }
#define BATCHES(NAME, OURS, NVSHMEM, SHMEM)                                                        \
    BATCH(NAME##_ours, OURS) BATCH(NAME##_nvshmem, NVSHMEM) BATCH(NAME##_shmem, SHMEM)
CALLS(BATCHES)
TRIPS(BATCHES)

struct row {
    const char *name;
    batch_fn *batch[APIS];
};
#define ROW(NAME, OURS, NVSHMEM, SHMEM) {#NAME, {NAME##_ours, NAME##_nvshmem, NAME##_shmem}},
static const struct row alone[] = {CALLS(ROW){NULL, {NULL}}},
                        together[] = {TRIPS(ROW){NULL, {NULL}}};

static double nanoseconds(batch_fn *batch, long calls)
{
    uint64_t begin = perf_now_ns();
    batch(calls);
    return (double)(perf_now_ns() - begin) / (double)calls;
}

// Each round begins with another header.
static void measure(const struct row *row, int rounds, long calls)
{
    struct perf_samples samples[APIS] = {{.values = NULL}};
    double median[APIS];
    for (int i = 0; i < APIS; i++)
        row->batch[i](calls);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < APIS; i++) {
            int api = (round + i) % APIS;
            perf_samples_add(&samples[api], nanoseconds(row->batch[api], calls));
        }
    for (int i = 0; i < APIS; i++) {
        median[i] = perf_samples_percentile(&samples[i], 50);
        perf_samples_clear(&samples[i]);
    }
    if (me == 0)
        printf("| %-15s | %8.2f | %+7.2f | %6.3f | %+7.2f | %6.3f |\n", row->name, median[0],
               median[1] - median[0], median[1] / median[0], median[2] - median[0],
               median[2] / median[0]);
}

static int begin(void)
{
    setenv("GPUSHMEM_HEAP_KIND", "host", 0);
    if (gpushmem_init() < 0)
        return -1;
    nvshmem_init();
    shmem_init();
    me = gpushmem_my_pe();
    peer = 1 - me;
    word = gpushmem_calloc(8, sizeof *word);
    flag = gpushmem_calloc(8, sizeof *flag);
    target = gpushmem_calloc(SIZE, 1);
    source = gpushmem_calloc(SIZE, 1);
    return word && flag && target && source ? 0 : -1;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 2001;
    long calls = argc > 2 ? atol(argv[2]) : 200;
    if (rounds < 1 || calls < 1) {
        fprintf(stderr, "perf_compat_cost: rounds and calls are 1 or more\n");
        return 2;
    }
    if (begin() < 0) {
        fprintf(stderr, "perf_compat_cost: %s\n", gpushmem_last_error());
        return 1;
    }
    if (me == 0)
        printf("medians of %d rounds of %ld calls, ns\n\n"
               "| call            | gpushmem | nvshmem |  ratio |   shmem |  ratio |\n"
               "|-----------------|---------:|--------:|-------:|--------:|-------:|\n",
               rounds, calls);
    for (const struct row *row = alone; me == 0 && row->name; row++)
        measure(row, rounds, calls);
    gpushmem_barrier_all();
    for (const struct row *row = together; gpushmem_n_pes() == 2 && row->name; row++)
        measure(row, rounds, calls);
    gpushmem_barrier_all();
    shmem_finalize();
    nvshmem_finalize();
    gpushmem_finalize();
    return 0;
}
