// SPDX-License-Identifier: BSD-3-Clause
// Operations of streams (gpushmem/stream.h) between kernels. Everything is enqueued without the
// host waiting in between: what is wrong with the order shows in the data.
#include <string.h>

#include "gpushmem/device.cuh"
#include "gpushmem/device/stream.cuh"
#include "kernel_check.cuh"

enum { BYTES = 256 << 10, ROUNDS = 40, SLOTS = 16, STRIDED = 50 };

static int me, n, right, left;
static int *errors;
static char *outbox, *inbox; // symmetric, BYTES each
static uint64_t *words;      // symmetric

static __device__ char pattern(size_t i, int seed)
{
    return (char)(i * 7 + i / 251 + (unsigned)seed * 31);
}

__global__ void fill(char *memory, size_t bytes, int seed)
{
    for (size_t i = threadIdx.x; i < bytes; i += blockDim.x)
        memory[i] = seed < 0 ? 0 : pattern(i, seed);
}

// memory[at .. at + bytes) holds the pattern, and the 16 bytes on either side nothing.
__global__ void expect(const char *memory, size_t at, size_t bytes, int seed, int *counts)
{
    for (size_t i = threadIdx.x; i < bytes; i += blockDim.x)
        EXPECT(counts, memory[at + i] == pattern(i, seed));
    for (size_t i = at < 16 ? 0 : at - 16; threadIdx.x == 0 && i < at + bytes + 16; i++)
        EXPECT(counts, (i >= at && i < at + bytes) || !memory[i]);
}

// Takes its time: an operation that did not wait for the kernel before it would send the word from
// before.
__global__ void store(uint64_t *word, uint64_t value)
{
    for (volatile int i = 0; i < 1000; i++)
        ;
    *word = value;
}

__global__ void expect_words(const uint64_t *array, int count, uint64_t first, uint64_t step,
                             int *counts)
{
    for (int i = 0; i < count; i++)
        EXPECT(counts, array[i] == first + step * (uint64_t)i);
}

static void barrier(gpushmem_stream_t stream)
{
    CHECK_OK(gpushmem_barrier_all_on_stream(stream));
}

// put, put_signal and get of odd sizes at odd places.
static void test_data(gpushmem_stream_t s)
{
    static const size_t sizes[] = {1,  2,   3,    4,    7,     8,     9,      16,
                                   31, 100, 1000, 4097, 65536, 65537, 100001, 200003};
    static const size_t ats[] = {16, 17, 24, 31};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t bytes = sizes[k], to = ats[k % 4], from = k % 3 ? ats[(k + 1) % 4] : to;
        for (int how = 0; how < 3; how++) {
            int seed = (int)(k * 3) + how;
            CHECK_OK(GPUSHMEM_LAUNCH(fill, 1, 32, s, inbox, bytes + 64, -1));
            CHECK_OK(GPUSHMEM_LAUNCH(fill, 1, 32, s, outbox + from, bytes, seed + 100 * me));
            barrier(s);
            if (how == 0)
                CHECK_OK(gpushmem_putmem_on_stream(inbox + to, outbox + from, bytes, right, s));
            if (how == 1) {
                CHECK_OK(gpushmem_putmem_signal_on_stream(inbox + to, outbox + from, bytes,
                                                          &words[0], 1 + k, GPUSHMEM_SIGNAL_SET,
                                                          right, s));
                CHECK_OK(
                    gpushmem_signal_wait_until_on_stream(&words[0], GPUSHMEM_CMP_EQ, 1 + k, s));
            }
            if (how == 2)
                CHECK_OK(gpushmem_getmem_on_stream(inbox + to, outbox + from, bytes, left, s));
            if (how == 0)
                barrier(s);
            CHECK_OK(GPUSHMEM_LAUNCH(expect, 1, 32, s, (const char *)inbox, to, bytes,
                                     seed + 100 * left, errors));
            barrier(s);
        }
    }
    CHECK_OK(gpushmem_launch_wait(s));
}

// Elements lie as iput and iget of the strides put them, and nothing beside them.
__global__ void expect_strided(const uint16_t *there, const uint16_t *here, int first_there,
                               int first_here, int *counts)
{
    for (int i = 0; i < 3 * STRIDED; i++)
        EXPECT(counts, there[i] == (i % 3 ? 0 : first_there + i / 3 * 2));
    for (int i = 0; i < 2 * STRIDED; i++)
        EXPECT(counts, here[i] == (i % 2 ? 0 : first_here + i / 2 * 3));
}

__global__ void count_up(uint16_t *values, int count, int first)
{
    for (int i = 0; i < count; i++)
        values[i] = (uint16_t)(first + i);
}

// p's value is the call's, whatever the host does with its variable later.
static void test_single(gpushmem_stream_t s)
{
    CHECK_OK(GPUSHMEM_LAUNCH(fill, 1, 32, s, inbox, (size_t)BYTES, -1));
    barrier(s);
    uint64_t value = 0;
    for (uint64_t i = 0; i < SLOTS; i++) {
        value = 1000 * (uint64_t)me + i;
        CHECK_OK(gpushmem_uint64_p_on_stream((uint64_t *)inbox + i, value, right, s));
    }
    CHECK_OK(gpushmem_uint8_p_on_stream((uint8_t *)inbox + 8 * SLOTS + 1, 77, right, s));
    CHECK_OK(gpushmem_double_p_on_stream((double *)inbox + SLOTS + 1, 0.5, right, s));
    barrier(s);
    for (uint64_t i = 0; i < SLOTS; i++)
        CHECK_OK(gpushmem_uint64_g_on_stream((uint64_t *)outbox + SLOTS - 1 - i,
                                             (uint64_t *)inbox + i, right, s));
    CHECK_OK(GPUSHMEM_LAUNCH(expect_words, 1, 1, s, (const uint64_t *)inbox, SLOTS,
                             (uint64_t)(1000 * left), (uint64_t)1, errors));
    CHECK_OK(GPUSHMEM_LAUNCH(expect_words, 1, 1, s, (const uint64_t *)inbox + SLOTS, 1,
                             (uint64_t)77 << 8, (uint64_t)0, errors));
    CHECK_OK(GPUSHMEM_LAUNCH(expect_words, 1, 1, s, (const uint64_t *)inbox + SLOTS + 1, 1,
                             (uint64_t)0x3fe0 << 48, (uint64_t)0, errors));
    CHECK_OK(GPUSHMEM_LAUNCH(expect_words, 1, 1, s, (const uint64_t *)outbox, SLOTS,
                             (uint64_t)(1000 * me + SLOTS - 1), ~(uint64_t)0, errors));
    barrier(s);
    CHECK_OK(gpushmem_launch_wait(s));
}

static void test_strided(gpushmem_stream_t s)
{
    uint16_t *from = (uint16_t *)outbox, *there = (uint16_t *)inbox, *here = there + 4 * STRIDED;
    for (int typed = 0; typed < 2; typed++) {
        CHECK_OK(GPUSHMEM_LAUNCH(fill, 1, 32, s, inbox, (size_t)BYTES, -1));
        CHECK_OK(GPUSHMEM_LAUNCH(count_up, 1, 1, s, from, 3 * STRIDED, 100 * me + typed));
        barrier(s);
        CHECK_OK(typed ? gpushmem_uint16_iput_on_stream(there, from, 3, 2, STRIDED, right, s)
                       : gpushmem_iput16_on_stream(there, from, 3, 2, STRIDED, right, s));
        CHECK_OK(typed ? gpushmem_uint16_iget_on_stream(here, from, 2, 3, STRIDED, right, s)
                       : gpushmem_iget16_on_stream(here, from, 2, 3, STRIDED, right, s));
        barrier(s);
        CHECK_OK(GPUSHMEM_LAUNCH(expect_strided, 1, 1, s, (const uint16_t *)there,
                                 (const uint16_t *)here, 100 * left + typed, 100 * right + typed,
                                 errors));
        barrier(s);
    }
    CHECK_OK(gpushmem_launch_wait(s));
}

// A round trip per round: kernels see what came before in the stream, and what a signal announced.
static void test_order(gpushmem_stream_t s)
{
    uint64_t *data = (uint64_t *)inbox, *source = (uint64_t *)outbox;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        CHECK_OK(GPUSHMEM_LAUNCH(store, 1, 1, s, source, round));
        CHECK_OK(gpushmem_putmem_on_stream(&data[1], source, 8, right, s));
        CHECK_OK(gpushmem_quiet_on_stream(s));
        CHECK_OK(gpushmem_uint64_put_signal_on_stream(data, source, 1, &words[1], 1,
                                                      GPUSHMEM_SIGNAL_ADD, right, s));
        CHECK_OK(GPUSHMEM_LAUNCH(store, 1, 1, s, source, ~round)); // the source is ours again
        CHECK_OK(gpushmem_signal_wait_until_on_stream(&words[1], GPUSHMEM_CMP_GE, round, s));
        CHECK_OK(GPUSHMEM_LAUNCH(expect_words, 1, 1, s, (const uint64_t *)data, 2, round,
                                 (uint64_t)0, errors));
        // you may overwrite it
        CHECK_OK(gpushmem_signal_op_on_stream(&words[2], round, GPUSHMEM_SIGNAL_SET, left, s));
        CHECK_OK(gpushmem_signal_wait_until_on_stream(&words[2], GPUSHMEM_CMP_GE, round, s));
    }
    barrier(s);
    CHECK_OK(gpushmem_launch_wait(s));
}

// One source for many puts: each sends what the kernel before it stored.
static void test_source(gpushmem_stream_t s)
{
    uint64_t *data = (uint64_t *)inbox, *source = (uint64_t *)outbox;
    CHECK_OK(GPUSHMEM_LAUNCH(fill, 1, 32, s, inbox, (size_t)BYTES, -1));
    barrier(s);
    for (uint64_t i = 0; i < SLOTS; i++) {
        CHECK_OK(GPUSHMEM_LAUNCH(store, 1, 1, s, source + 1, 1000 + i));
        CHECK_OK(gpushmem_putmem_on_stream(&data[i], source + 1, 8, right, s));
    }
    for (uint64_t i = 0; i < SLOTS; i++) {
        CHECK_OK(GPUSHMEM_LAUNCH(fill, 1, 8, s, outbox, (size_t)3000, (int)i));
        CHECK_OK(gpushmem_put64_on_stream(inbox + 3072 * (i + 1), outbox, 375, right, s));
    }
    barrier(s);
    CHECK_OK(GPUSHMEM_LAUNCH(expect_words, 1, 1, s, (const uint64_t *)data, SLOTS, (uint64_t)1000,
                             (uint64_t)1, errors));
    for (uint64_t i = 0; i < SLOTS; i++)
        CHECK_OK(GPUSHMEM_LAUNCH(expect, 1, 8, s, (const char *)inbox + 3072 * (i + 1), (size_t)0,
                                 (size_t)3000, (int)i, errors));
    barrier(s);
    CHECK_OK(gpushmem_launch_wait(s));
}

// The first stream waits, in every way there is, for what the neighbour's second stream sends
// later.
static void test_waits(gpushmem_stream_t one, gpushmem_stream_t two)
{
    static const struct {
        enum gpushmem_cmp cmp;
        uint64_t before, value, after;
    } rows[] = {{GPUSHMEM_CMP_EQ, 0, 5, 5}, {GPUSHMEM_CMP_NE, 5, 5, 6},
                {GPUSHMEM_CMP_GT, 5, 5, 6}, {GPUSHMEM_CMP_GE, 4, 5, 5},
                {GPUSHMEM_CMP_LT, 5, 5, 4}, {GPUSHMEM_CMP_LE, 6, 5, ~(uint64_t)0 >> 63}};
    for (const auto &row : rows) {
        CHECK_OK(gpushmem_signal_op_on_stream(&words[3], row.before, GPUSHMEM_SIGNAL_SET, me, two));
        CHECK_OK(gpushmem_quiet_on_stream(two));
        CHECK_OK(gpushmem_launch_wait(two));
        CHECK_OK(gpushmem_signal_wait_until_on_stream(&words[3], row.cmp, row.value, one));
        CHECK_OK(GPUSHMEM_LAUNCH(expect_words, 1, 1, one, (const uint64_t *)&words[3], 1, row.after,
                                 (uint64_t)0, errors));
        CHECK_OK(gpushmem_barrier_all()); // every PE's first stream waits, or will
        CHECK_OK(
            gpushmem_signal_op_on_stream(&words[3], row.after, GPUSHMEM_SIGNAL_SET, right, two));
        CHECK_OK(gpushmem_launch_wait(one));
        CHECK_OK(gpushmem_launch_wait(two));
        CHECK_OK(gpushmem_barrier_all());
    }
}

// All PEs add to PE 0's word; nothing is lost.
static void test_add(gpushmem_stream_t one, gpushmem_stream_t two)
{
    for (int i = 0; i < 10; i++) {
        CHECK_OK(gpushmem_signal_op_on_stream(&words[4], 3, GPUSHMEM_SIGNAL_ADD, 0, one));
        CHECK_OK(gpushmem_putmem_signal_on_stream(NULL, NULL, 0, &words[4], 4, GPUSHMEM_SIGNAL_ADD,
                                                  0, two));
    }
    if (me == 0)
        CHECK_OK(gpushmem_signal_wait_until_on_stream(&words[4], GPUSHMEM_CMP_EQ,
                                                      (uint64_t)(70 * n), one));
    CHECK_OK(gpushmem_launch_wait(one));
    CHECK_OK(gpushmem_launch_wait(two));
    CHECK_OK(gpushmem_barrier_all());
}

// Each operation on a mapped PE is complete before the next one begins, whoever executes the PE's
// atomics.
static void test_complete(gpushmem_stream_t s)
{
    uint64_t *sum = &words[9], *data = (uint64_t *)inbox;
    struct gpushmem_peer_info peer;
    CHECK_OK(gpushmem_peer_info(me, &peer));
    for (uint64_t round = 1; peer.device_direct && round <= 10; round++) {
        CHECK_OK(GPUSHMEM_LAUNCH(store, 1, 1, s, (uint64_t *)outbox, round));
        CHECK_OK(gpushmem_signal_op_on_stream(sum, 10 * round, GPUSHMEM_SIGNAL_SET, me, s));
        CHECK_OK(GPUSHMEM_LAUNCH(expect_words, 1, 1, s, (const uint64_t *)sum, 1, 10 * round,
                                 (uint64_t)0, errors));
        CHECK_OK(gpushmem_uint64_put_signal_on_stream(data, (uint64_t *)outbox, 1, sum, 5,
                                                      GPUSHMEM_SIGNAL_ADD, me, s));
        CHECK_OK(GPUSHMEM_LAUNCH(expect_words, 1, 1, s, (const uint64_t *)sum, 1, 10 * round + 5,
                                 (uint64_t)0, errors));
        CHECK_OK(GPUSHMEM_LAUNCH(expect_words, 1, 1, s, (const uint64_t *)data, 1, round,
                                 (uint64_t)0, errors));
    }
    barrier(s);
    CHECK_OK(gpushmem_launch_wait(s));
}

// The blocks of a large put or get share its bytes: all of them move, and nothing beside them.
__global__ void move_together(struct gpushmem_dev dev, struct gpushmem_stream_op op)
{
    gpsh_dev_stream_do(dev, op, op.kind);
}

static void test_blocks(gpushmem_stream_t s)
{
    static const size_t sizes[] = {1, 127, 128, 129, 640, 4096, 4097, 70001};
    static const unsigned blocks[] = {2, 5, 12};
    struct gpushmem_dev dev;
    CHECK_OK(gpushmem_device_handle(&dev));
    for (size_t k = 0; k < 2 * sizeof sizes / sizeof *sizes; k++) {
        size_t bytes = sizes[k / 2];
        bool get = k % 2;
        struct gpushmem_stream_op op = {};
        op.kind = get ? GPUSHMEM_STREAM_GET : GPUSHMEM_STREAM_PUT;
        op.pe = get ? left : right;
        op.dest = inbox + 16 + k % 3;
        op.source = outbox + 16;
        op.bytes = bytes;
        CHECK_OK(GPUSHMEM_LAUNCH(fill, 1, 32, s, inbox, bytes + 64, -1));
        CHECK_OK(GPUSHMEM_LAUNCH(fill, 1, 32, s, outbox + 16, bytes, (int)k + 100 * me));
        barrier(s);
        CHECK_OK(GPUSHMEM_LAUNCH(move_together, blocks[k % 3], 8, s, dev, op));
        barrier(s);
        CHECK_OK(GPUSHMEM_LAUNCH(expect, 1, 32, s, (const char *)inbox, 16 + k % 3, bytes,
                                 (int)k + 100 * left, errors));
        barrier(s);
    }
    CHECK_OK(gpushmem_launch_wait(s));
}

__global__ void count_threads(unsigned *count)
{
    atomicAdd(count, 1u);
}

// A long queue behind a wait, while another stream works. On CPU threads it takes those of one
// launch, not of all.
static void test_queue(gpushmem_stream_t one, gpushmem_stream_t two)
{
    const int queued = 300, threads = 24;
    unsigned *counts = (unsigned *)&words[8];
    CHECK_OK(gpushmem_signal_wait_until_on_stream(&words[7], GPUSHMEM_CMP_EQ, 1, one));
    for (int i = 0; i < queued; i++)
        CHECK_OK(GPUSHMEM_LAUNCH(count_threads, 1, i % 2 ? threads : 1, one, &counts[0]));
    CHECK_OK(GPUSHMEM_LAUNCH(count_threads, 2, threads, two, &counts[1]));
    CHECK_OK(gpushmem_launch_wait(two));
    CHECK(check_read(&counts[0]) == 0 && check_read(&counts[1]) == 2u * threads);
#if !defined(__CUDACC__)
    CHECK(gpsh_emu_the_pool().workers < 10u * threads);
#endif
    CHECK_OK(gpushmem_signal_op_on_stream(&words[7], 1, GPUSHMEM_SIGNAL_SET, me, two));
    CHECK_OK(gpushmem_launch_wait(one));
    CHECK_OK(gpushmem_launch_wait(two));
    CHECK(check_read(&counts[0]) == queued / 2u * (threads + 1u));
}

// Nobody is ahead, and what was put before a barrier is there behind it.
static void test_barriers(gpushmem_stream_t s)
{
    uint64_t *counters = (uint64_t *)inbox, *source = (uint64_t *)outbox;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        CHECK_OK(GPUSHMEM_LAUNCH(store, 1, 1, s, source, round));
        for (int pe = 0; pe < n; pe++)
            CHECK_OK(gpushmem_uint64_put_on_stream(&counters[me], source, 1, pe, s));
        barrier(s);
        CHECK_OK(GPUSHMEM_LAUNCH(expect_words, 1, 1, s, (const uint64_t *)counters, n, round,
                                 (uint64_t)0, errors));
        CHECK_OK(gpushmem_sync_all_on_stream(s));
    }
    CHECK_OK(gpushmem_launch_wait(s));
}

#define REFUSED(call, status, text)                                                                \
    do {                                                                                           \
        int got = (call);                                                                          \
        if (got != (status) || !strstr(gpushmem_last_error(), text)) {                             \
            fprintf(stderr, "%s:%d: %s: %d, '%s'\n", __FILE__, __LINE__, #call, got,               \
                    gpushmem_last_error());                                                        \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)

static void test_refusals(gpushmem_stream_t s)
{
    uint64_t *word = &words[8];
    struct gpushmem_dev dev;
    CHECK_OK(gpushmem_device_handle(&dev));
    char *end = (char *)dev.sync;
    CHECK_OK(GPUSHMEM_LAUNCH(store, 1, 1, s, word, (uint64_t)77));
    CHECK_OK(gpushmem_launch_wait(s));
    REFUSED(gpushmem_putmem_on_stream(word, outbox, 8, n, s), GPUSHMEM_ERR_PE,
            "gpushmem_putmem_on_stream: there is no PE");
    REFUSED(gpushmem_getmem_on_stream(word, outbox, 8, -1, s), GPUSHMEM_ERR_PE,
            "gpushmem_getmem_on_stream: there is no PE -1");
    REFUSED(gpushmem_putmem_on_stream(end - 4, outbox, 8, me, s), GPUSHMEM_ERR_ADDRESS,
            "beyond the end");
    REFUSED(gpushmem_putmem_on_stream(&check_failures, outbox, 4, me, s), GPUSHMEM_ERR_ADDRESS,
            "not in the symmetric heap");
    REFUSED(gpushmem_putmem_on_stream(&dev, outbox, 4, me, s), GPUSHMEM_ERR_ADDRESS,
            "outside streams, a global or static variable");
    REFUSED(gpushmem_int_get_on_stream((int *)word, &check_failures, 1, me, s),
            GPUSHMEM_ERR_ADDRESS, "not in the symmetric heap");
    REFUSED(gpushmem_double_put_on_stream((double *)word, (double *)outbox, SIZE_MAX / 4, me, s),
            GPUSHMEM_ERR_ADDRESS, "beyond");
    REFUSED(gpushmem_putmem_on_stream(word, NULL, 8, me, s), GPUSHMEM_ERR_INVALID, "NULL");
    REFUSED(gpushmem_putmem_signal_on_stream(word, outbox, 8, word, 1, (enum gpushmem_signal_op)2,
                                             me, s),
            GPUSHMEM_ERR_INVALID, "signal operation 2");
    REFUSED(gpushmem_putmem_signal_on_stream(word, outbox, 8, (uint64_t *)((char *)word + 4), 1,
                                             GPUSHMEM_SIGNAL_SET, me, s),
            GPUSHMEM_ERR_ALIGNMENT, "multiple of 8");
    REFUSED(gpushmem_signal_op_on_stream(word, 1, GPUSHMEM_SIGNAL_SET, n, s), GPUSHMEM_ERR_PE,
            "gpushmem_signal_op_on_stream");
    REFUSED(gpushmem_signal_wait_until_on_stream(word, (enum gpushmem_cmp)6, 1, s),
            GPUSHMEM_ERR_INVALID, "comparison 6");
    REFUSED(gpushmem_signal_wait_until_on_stream((uint64_t *)end, GPUSHMEM_CMP_NE, 1, s),
            GPUSHMEM_ERR_ADDRESS, "not in the");
    REFUSED(gpushmem_short_p_on_stream((short *)word, 1, n, s), GPUSHMEM_ERR_PE,
            "gpushmem_short_p_on_stream: there is no PE");
    REFUSED(gpushmem_int_p_on_stream(&check_failures, 1, me, s), GPUSHMEM_ERR_ADDRESS,
            "not in the symmetric heap");
    REFUSED(gpushmem_int_g_on_stream(NULL, (int *)word, me, s), GPUSHMEM_ERR_INVALID, "NULL");
    REFUSED(gpushmem_int_g_on_stream((int *)word, &check_failures, me, s), GPUSHMEM_ERR_ADDRESS,
            "gpushmem_int_g_on_stream: ");
    REFUSED(gpushmem_int_iput_on_stream((int *)word, (int *)outbox, 0, 1, 2, me, s),
            GPUSHMEM_ERR_INVALID, "gpushmem_int_iput_on_stream: strides are 0");
    REFUSED(gpushmem_iget64_on_stream(outbox, word, 1, -1, 2, me, s), GPUSHMEM_ERR_INVALID,
            "gpushmem_iget64_on_stream: strides are -1");
    REFUSED(gpushmem_iput128_on_stream(end - 32, outbox, 2, 1, 2, me, s), GPUSHMEM_ERR_ADDRESS,
            "beyond the end");
    REFUSED(gpushmem_iput8_on_stream(word, NULL, 1, 1, 1, me, s), GPUSHMEM_ERR_INVALID, "NULL");
    REFUSED(gpushmem_iput8_on_stream(word, outbox, 1, 1, SIZE_MAX, me, s), GPUSHMEM_ERR_ADDRESS,
            "beyond");
#if defined(__CUDACC__)
    static char pageable[64];
    REFUSED(gpushmem_iput8_on_stream(word, pageable, 1, 1, 8, me, s), GPUSHMEM_ERR_INVALID,
            "pageable");
    REFUSED(gpushmem_putmem_on_stream(word, pageable, 8, me, s), GPUSHMEM_ERR_INVALID, "pageable");
    REFUSED(gpushmem_getmem_on_stream(pageable, word, 8, me, s), GPUSHMEM_ERR_INVALID, "pageable");
#endif
    // Nothing of it was enqueued; and nothing is legal.
    CHECK_OK(gpushmem_putmem_on_stream(NULL, NULL, 0, right, s));
    CHECK_OK(gpushmem_getmem_on_stream(NULL, NULL, 0, right, s));
    CHECK_OK(gpushmem_iput8_on_stream(NULL, NULL, 1, 1, 0, right, s));
    CHECK_OK(GPUSHMEM_LAUNCH(expect_words, 1, 1, s, (const uint64_t *)word, 1, (uint64_t)77,
                             (uint64_t)0, errors));
    CHECK_OK(gpushmem_launch_wait(s));
}

#if defined(__CUDACC__)
#include "stream_graph.cuh"
#endif

// A wait that nobody ends: the stream goes on, and the host is told.
static void test_in_vain(gpushmem_stream_t s)
{
    CHECK_OK(gpushmem_signal_wait_until_on_stream(&words[5], GPUSHMEM_CMP_NE, 0, s));
    CHECK_OK(GPUSHMEM_LAUNCH(store, 1, 1, s, &words[6], (uint64_t)9));
    REFUSED(gpushmem_launch_wait(s), GPUSHMEM_ERR_TIMEOUT, "timed out after");
    CHECK(check_read(&words[6]) == 9);
    CHECK_OK(gpushmem_quiet());
}
#undef REFUSED // the sources of all device tests are compiled in one, too

// usage: device_stream [vain | capture]; capture: the first call ever of a stream operation is
// captured into a graph
int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    gpushmem_stream_t one, two;
    me = check_begin();
    n = gpushmem_n_pes();
    right = (me + 1) % n;
    left = (me + n - 1) % n;
    outbox = (char *)gpushmem_calloc(1, BYTES);
    inbox = (char *)gpushmem_calloc(1, BYTES);
    words = (uint64_t *)gpushmem_calloc(64, 8);
    errors = check_errors_begin();
    CHECK_OK(gpushmem_stream_create(&one));
    CHECK_OK(gpushmem_stream_create(&two));
    if (!strcmp(only, "vain")) {
        test_in_vain(one);
    } else {
#if defined(__CUDACC__)
        test_graph(one, two, !strcmp(only, "capture"));
#endif
        test_data(one);
        test_single(one);
        test_strided(two);
        test_blocks(one);
        test_complete(one);
        test_order(one);
        test_source(NULL); // the default stream
        test_waits(one, two);
        test_add(one, two);
        test_queue(one, two);
        test_barriers(two);
        test_refusals(one);
    }
    gpushmem_stream_destroy(two);
    gpushmem_stream_destroy(one);
    check_errors_end(__FILE__, errors);
    gpushmem_free(words);
    gpushmem_free(inbox);
    gpushmem_free(outbox);
    return check_end("stream");
}
