// SPDX-License-Identifier: BSD-3-Clause
// Latencies of puts and gets issued by the host.
#include "bench.h"
#include "loops.h"
#include "tests.h"

static const uint64_t standard_sizes[] = {8, 64, 512, 4096, 65536, 1 << 20};
enum { N_STANDARD = sizeof standard_sizes / sizeof standard_sizes[0], WARM = 32 };

// Both sides of a ping-pong: PE 0 sends first.
#define PING_PONG(NAME, SEND)                                                                      \
    static int NAME##_run(struct perf_bench *b, const struct perf_case *c, uint64_t n)             \
    {                                                                                              \
        int status = 0;                                                                            \
        for (uint64_t i = 0; i < n && !status; i++) {                                              \
            b->sequence++;                                                                         \
            SEND;                                                                                  \
            if (!status)                                                                           \
                status = gpushmem_uint64_wait_until(b->flag, GPUSHMEM_CMP_EQ, b->sequence);        \
        }                                                                                          \
        return status;                                                                             \
    }                                                                                              \
    static int NAME##_serve(struct perf_bench *b, const struct perf_case *c, uint64_t n)           \
    {                                                                                              \
        int status = 0;                                                                            \
        for (uint64_t i = 0; i < n && !status; i++) {                                              \
            b->sequence++;                                                                         \
            status = gpushmem_uint64_wait_until(b->flag, GPUSHMEM_CMP_EQ, b->sequence);            \
            if (!status)                                                                           \
                SEND;                                                                              \
        }                                                                                          \
        return status;                                                                             \
    }

// 8 bytes are their own flag, as in ib_write_lat.
PING_PONG(put_word, status = gpushmem_uint64_p(b->flag, b->sequence, b->peer))
PING_PONG(put_signal, status = gpushmem_putmem_signal(b->target, b->source, c->size, b->flag,
                                                      b->sequence, GPUSHMEM_SIGNAL_SET, b->peer))
PING_PONG(put_fence, status = gpushmem_putmem(b->target, b->source, c->size, b->peer);
          status = status ? status : gpushmem_fence();
          status = status ? status : gpushmem_uint64_p(b->flag, b->sequence, b->peer))

// The floor: the same ping-pong by plain stores and loads on the peer's mapped memory, no library
// in between.
static void raw_wait(const uint64_t *flag, uint64_t value)
{
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != value) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

static int raw_run(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    uint64_t *there = gpushmem_ptr(b->flag, b->peer);
    for (uint64_t i = 0; i < n; i++) {
        __atomic_store_n(there, ++b->sequence, __ATOMIC_RELEASE);
        raw_wait(b->flag, b->sequence);
    }
    return 0;
}

static int raw_serve(struct perf_bench *b, const struct perf_case *c, uint64_t n)
{
    uint64_t *there = gpushmem_ptr(b->flag, b->peer);
    for (uint64_t i = 0; i < n; i++) {
        raw_wait(b->flag, ++b->sequence);
        __atomic_store_n(there, b->sequence, __ATOMIC_RELEASE);
    }
    return 0;
}

PERF_REPEAT(put_run, gpushmem_putmem(b->target, b->source, c->size, b->peer))

// The source is not in the heap: on a GPU, pageable host memory.
PERF_REPEAT(put_program_run, gpushmem_putmem(b->target, b->program, c->size, b->peer))

// For 8 bytes: a ping-pong of three calls, and the floor of a ping-pong where memory is mapped.
static int eight_bytes(struct perf_bench *b)
{
    int status = perf_measure(b, &(struct perf_case){.test = "put-fence-flag",
                                                     .issuer = "host",
                                                     .size = 8,
                                                     .share = 0.5,
                                                     .warm = WARM,
                                                     .run = put_fence_run,
                                                     .serve = put_fence_serve,
                                                     .paired = true});
    if (!status && b->mapped)
        status = perf_measure(b, &(struct perf_case){.test = "raw-flag",
                                                     .issuer = "host",
                                                     .size = 8,
                                                     .share = 0.5,
                                                     .warm = WARM,
                                                     .run = raw_run,
                                                     .serve = raw_serve,
                                                     .paired = true});
    return status;
}

// What the calls cost, nobody waiting.
static int puts_alone(struct perf_bench *b, uint64_t size)
{
    int status = perf_measure(
        b, &(struct perf_case){
               .test = "put", .issuer = "host", .size = size, .warm = WARM, .run = put_run});
    if (!status && !b->options->memory[0])
        status = perf_measure(b, &(struct perf_case){.test = "put-program",
                                                     .issuer = "host",
                                                     .size = size,
                                                     .warm = WARM,
                                                     .run = put_program_run});
    return status ? status : gpushmem_quiet();
}

PERF_REPEAT(get_run, gpushmem_getmem(b->source, b->target, c->size, b->peer))

int perf_host_put_latency(struct perf_bench *b)
{
    const uint64_t *sizes;
    int n = perf_bench_sizes(b, standard_sizes, N_STANDARD, &sizes), status = 0;
    for (int i = 0; i < n && !status; i++) {
        bool word = sizes[i] == 8;
        status =
            perf_measure(b, &(struct perf_case){.test = "put-lat",
                                                .issuer = "host",
                                                .size = sizes[i],
                                                .share = 0.5,
                                                .warm = WARM,
                                                .run = word ? put_word_run : put_signal_run,
                                                .serve = word ? put_word_serve : put_signal_serve,
                                                .paired = true});
    }
    for (int i = 0; i < n && !status; i++)
        status = sizes[i] == 8 ? eight_bytes(b) : 0;
    for (int i = 0; i < n && !status; i++)
        status = puts_alone(b, sizes[i]);
    return status;
}

int perf_host_get_latency(struct perf_bench *b)
{
    const uint64_t *sizes;
    int n = perf_bench_sizes(b, standard_sizes, N_STANDARD, &sizes), status = 0;
    for (int i = 0; i < n && !status; i++)
        status = perf_measure(b, &(struct perf_case){.test = "get-lat",
                                                     .issuer = "host",
                                                     .size = sizes[i],
                                                     .warm = WARM,
                                                     .run = get_run});
    return status;
}
