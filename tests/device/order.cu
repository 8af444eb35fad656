// SPDX-License-Identifier: BSD-3-Clause
// Put with signal, fence, quiet, waits and barriers: what becomes visible when.
//   device_order [ROUNDS]   of each game of ping-pong (default 200)
#include "kernel_check.cuh"

enum { WORDS = 64 };

struct box {
    uint64_t data[WORDS];
    uint64_t signal;
    uint64_t ack;
    uint32_t flags[8];
    short narrow[4];
};

__device__ static bool all_equal(const uint64_t *data, uint64_t value)
{
    for (int i = 0; i < WORDS; i++)
        if (data[i] != value)
            return false;
    return true;
}

// Ping-pong between PE pairs (2k, 2k+1): the signal never comes before its data, in each scope. A
// lone PE plays with itself.
template <int HOW> __global__ void ping_pong(box *b, uint64_t *source, int *errors, uint64_t rounds)
{
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes(), peer = (me ^ 1) < n ? me ^ 1 : me;
    bool first = threadIdx.x == 0;
    for (uint64_t round = 1; round <= rounds; round++) {
        for (int i = (int)threadIdx.x; i < WORDS; i += (int)blockDim.x)
            source[i] = round;
        if (HOW == 0)
            gpushmem_dev_uint64_put_signal_block(b->data, source, WORDS, &b->signal, round,
                                                 GPUSHMEM_SIGNAL_SET, peer);
        if (HOW == 1) {
            gpushmem_dev_uint64_put_signal_nbi_block(b->data, source, WORDS, &b->signal, 1,
                                                     GPUSHMEM_SIGNAL_ADD, peer);
            if (first)
                gpushmem_dev_quiet();
        }
        if (HOW == 2) { // put, fence, flag: by different threads of the block
            gpushmem_dev_uint64_put_block(b->data, source, WORDS, peer);
            if (threadIdx.x == blockDim.x - 1) {
                gpushmem_dev_fence();
                gpushmem_dev_uint64_p(&b->signal, round, peer);
            }
        }
        if (HOW == 5) { // put, fence, a signal alone
            gpushmem_dev_uint64_put_block(b->data, source, WORDS, peer);
            if (threadIdx.x == blockDim.x - 1) {
                gpushmem_dev_fence();
                gpushmem_dev_signal_op(&b->signal, round % 2 ? 1 : round,
                                       round % 2 ? GPUSHMEM_SIGNAL_ADD : GPUSHMEM_SIGNAL_SET, peer);
            }
        }
        if (HOW == 3 && first) { // quiet, then an atomic flag
            gpushmem_dev_uint64_put_nbi(b->data, source, WORDS, peer);
            gpushmem_dev_pe_quiet(peer);
            gpushmem_dev_uint64_atomic_inc(&b->signal, peer);
        }
        if (HOW == 4 && first) { // fence orders atomics and puts both ways
            gpushmem_dev_uint64_put(b->data, source, WORDS, peer);
            gpushmem_dev_fence();
            gpushmem_dev_uint64_atomic_add(&b->signal, 1, peer);
            gpushmem_dev_fence();
        }
        if (first) {
            uint64_t seen = gpushmem_dev_signal_wait_until(&b->signal, GPUSHMEM_CMP_GE, round);
            EXPECT(errors, seen == round);
            EXPECT(errors, all_equal(b->data, round));
            gpushmem_dev_uint64_p(&b->ack, round, peer); // the peer may overwrite our data now
            gpushmem_dev_uint64_wait_until(&b->ack, GPUSHMEM_CMP_GE, round);
        }
        __syncthreads();
    }
}

// A third PE that is told after a quiet sees the data.
__global__ void told_by_third(box *b, int *errors)
{
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes();
    for (uint64_t round = 1; round <= 50; round++) {
        if (me == 0) {
            uint64_t value = round;
            for (int i = 0; i < WORDS; i++)
                gpushmem_dev_uint64_p(&b->data[i], value, 1);
            gpushmem_dev_quiet();
            gpushmem_dev_signal_op(&b->signal, round, GPUSHMEM_SIGNAL_SET, 2);
        }
        if (me == 2) {
            gpushmem_dev_signal_wait_until(&b->signal, GPUSHMEM_CMP_EQ, round);
            for (int i = 0; i < WORDS; i++)
                EXPECT(errors, gpushmem_dev_uint64_g(&b->data[i], 1) == round);
        }
        gpushmem_dev_barrier_all();
    }
    EXPECT(errors, n >= 3);
}

// Each PE sets flags of its right neighbour one by one, which waits in every way.
__global__ void waits(box *b, int *errors)
{
    int me = gpushmem_dev_my_pe(), right = (me + 1) % gpushmem_dev_n_pes();
    int skip[8] = {0, 0, 0, 1, 0, 0, 0, 0};
    uint32_t values[8] = {1, 2, 3, 0, 5, 6, 7, 8};
    size_t indices[8];
    EXPECT(errors,
           gpushmem_dev_uint32_test_any(b->flags, 8, nullptr, GPUSHMEM_CMP_NE, 0) == SIZE_MAX);
    EXPECT(errors,
           gpushmem_dev_uint32_test_some(b->flags, 8, indices, nullptr, GPUSHMEM_CMP_NE, 0) == 0);
    EXPECT(errors, !gpushmem_dev_uint32_test_all(b->flags, 8, skip, GPUSHMEM_CMP_NE, 0));
    EXPECT(errors, gpushmem_dev_uint32_test_all(b->flags, 8, nullptr, GPUSHMEM_CMP_EQ, 0));
    EXPECT(errors, gpushmem_dev_uint32_test_all(b->flags, 0, nullptr, GPUSHMEM_CMP_NE, 0));
    EXPECT(errors, gpushmem_dev_uint32_wait_until_any(b->flags, 0, nullptr, GPUSHMEM_CMP_NE, 0) ==
                       SIZE_MAX);
    gpushmem_dev_sync_all();
    gpushmem_dev_uint32_p(&b->flags[4], 5, right);
    EXPECT(errors, gpushmem_dev_uint32_wait_until_any(b->flags, 8, skip, GPUSHMEM_CMP_NE, 0) == 4);
    gpushmem_dev_sync_all();
    gpushmem_dev_uint32_p(&b->flags[6], 7, right);
    gpushmem_dev_uint32_wait_until(&b->flags[6], GPUSHMEM_CMP_EQ, 7);
    EXPECT(errors, gpushmem_dev_uint32_wait_until_some(b->flags, 8, indices, skip, GPUSHMEM_CMP_GT,
                                                       4) == 2);
    EXPECT(errors, indices[0] == 4 && indices[1] == 6);
    EXPECT(errors, gpushmem_dev_uint32_wait_until_some_vector(b->flags, 8, indices, skip,
                                                              GPUSHMEM_CMP_EQ, values) == 2);
    EXPECT(errors,
           gpushmem_dev_uint32_test_any_vector(b->flags, 8, skip, GPUSHMEM_CMP_EQ, values) % 2 ==
               0);
    gpushmem_dev_sync_all();
    for (int i = 0; i < 8; i++)
        if (i != 3)
            gpushmem_dev_uint32_p(&b->flags[i], (uint32_t)i + 1, right);
    gpushmem_dev_uint32_wait_until_all_vector(b->flags, 8, skip, GPUSHMEM_CMP_EQ, values);
    EXPECT(errors, gpushmem_dev_uint32_test_all_vector(b->flags, 8, skip, GPUSHMEM_CMP_EQ, values));
    gpushmem_dev_uint32_wait_until_all(b->flags, 8, skip, GPUSHMEM_CMP_GE, 1);
    EXPECT(errors, b->flags[3] == 0);
    gpushmem_dev_short_p(&b->narrow[1], -7, right);
    gpushmem_dev_short_wait_until(&b->narrow[1], GPUSHMEM_CMP_LT, 0);
    EXPECT(errors, b->narrow[0] == 0 && b->narrow[2] == 0);
    EXPECT(errors, gpushmem_dev_short_test(&b->narrow[1], GPUSHMEM_CMP_LE, -7));
    gpushmem_dev_barrier_all();
}

// Barriers of each scope: nobody is ahead, and what was put before is there behind.
__global__ void barriers(uint64_t *counter, int *errors)
{
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes();
    for (uint64_t round = 1; round <= 60; round++) {
        if (threadIdx.x == 0)
            for (int pe = 0; pe < n; pe++)
                gpushmem_dev_uint64_p(&counter[me], round, pe);
        if (round % 3 == 0 && threadIdx.x == 0)
            gpushmem_dev_barrier_all();
        if (round % 3 == 1 && threadIdx.x < 32)
            gpushmem_dev_barrier_all_warp();
        if (round % 3 == 2)
            gpushmem_dev_barrier_all_block();
        if (threadIdx.x == 0)
            for (int pe = 0; pe < n; pe++)
                EXPECT(errors, counter[pe] >= round && counter[pe] <= round + 1);
        if (round % 2)
            gpushmem_dev_sync_all_block();
        else
            __syncthreads();
    }
}

// Kernels that spin on each other, in two streams of one PE, and a kernel that the next in its
// stream must wait for.
__global__ void wait_for(uint64_t *word, uint64_t value, uint64_t *then)
{
    gpushmem_dev_uint64_wait_until(word, GPUSHMEM_CMP_EQ, value);
    gpushmem_dev_uint64_p(then, value + 1, gpushmem_dev_my_pe());
}

__global__ void set(uint64_t *word, uint64_t value)
{
    gpushmem_dev_uint64_p(word, value, gpushmem_dev_my_pe());
}

static void test_streams(uint64_t *words)
{
    gpushmem_stream_t one, two;
    CHECK_OK(gpushmem_stream_create(&one));
    CHECK_OK(gpushmem_stream_create(&two));
    CHECK_OK(GPUSHMEM_LAUNCH(wait_for, 1, 1, one, &words[0], (uint64_t)7, &words[1]));
    CHECK_OK(GPUSHMEM_LAUNCH(wait_for, 1, 1, one, &words[1], (uint64_t)8, &words[2]));
    CHECK_OK(GPUSHMEM_LAUNCH(set, 1, 1, two, &words[0], (uint64_t)7));
    CHECK_OK(gpushmem_launch_wait(two));
    CHECK_OK(gpushmem_launch_wait(one));
    gpushmem_quiet();
    CHECK(gpushmem_uint64_g(&words[2], gpushmem_my_pe()) == 9);
    gpushmem_stream_destroy(two);
    gpushmem_stream_destroy(one);
}

// Shared memory and warp exchange of a block.
__global__ void shared_memory(uint64_t *result)
{
    GPUSHMEM_SHARED(uint64_t, sums, 64);
    sums[threadIdx.x] = threadIdx.x + 1000 * blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        uint64_t total = 0;
        for (unsigned i = 0; i < blockDim.x; i++)
            total += sums[i];
        result[blockIdx.x] = total;
    }
    uint64_t lane5 = __shfl_sync(0xffffffffu, (uint64_t)threadIdx.x, 5);
    if (threadIdx.x == 40)
        result[2 + blockIdx.x] = lane5;
}

// Gets of what a peer changes, in a loop without any fence: each goes to the peer, none is answered
// by a cache of the reader.
__global__ void news(uint64_t *words, int *errors)
{
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes(), peer = (me ^ 1) < n ? me ^ 1 : me;
    uint64_t got[3] = {0, 0, 0}, begin = gpsh_dev_now_ns(), limit = 10000000000u;
    for (uint64_t round = 1; round <= 20; round++) {
        for (int i = 0; i < 3; i++)
            gpushmem_dev_uint64_p(&words[i], round, me);
        while (got[0] < round && gpsh_dev_now_ns() - begin < limit)
            gpushmem_dev_uint64_get(got, words, round % 2 ? 1 : 3, peer);
        EXPECT(errors, got[0] >= round);
        // never behind what the peer has seen of us
        got[0] = gpushmem_dev_uint64_g(words, peer) - 1;
        EXPECT(errors, got[0] + 1 >= round);
    }
}

// No PE is still in the test before, none in the next before its box is empty.
static void clear(box *b)
{
    gpushmem_barrier_all();
    check_clear(b, sizeof *b);
    gpushmem_barrier_all();
}

static uint64_t rounds = 200;

template <int HOW> static void run_ping_pong(box *b, uint64_t *source, int *errors, int threads)
{
    clear(b);
    RUN(ping_pong<HOW>, 1, threads, b, source, errors, rounds);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        rounds = strtoull(argv[1], NULL, 10);
    check_begin();
    int n = gpushmem_n_pes();
    box *b = (box *)gpushmem_calloc(1, sizeof *b);
    uint64_t *source = (uint64_t *)gpushmem_calloc(WORDS, 8),
             *counter = (uint64_t *)gpushmem_calloc((size_t)n + 8, 8);
    int *errors = check_errors_begin();
    run_ping_pong<0>(b, source, errors, 8);
    run_ping_pong<1>(b, source, errors, 8);
    run_ping_pong<2>(b, source, errors, 8);
    run_ping_pong<3>(b, source, errors, 1);
    run_ping_pong<4>(b, source, errors, 1);
    run_ping_pong<5>(b, source, errors, 8);
    clear(b);
    if (n >= 3)
        RUN(told_by_third, 1, 1, b, errors);
    clear(b);
    RUN(news, 1, 1, b->data, errors);
    clear(b);
    RUN(waits, 1, 1, b, errors);
    RUN(barriers, 1, 40, counter, errors);
    gpushmem_barrier_all();
    check_clear(counter, 4 * sizeof *counter);
    test_streams(counter);
    check_clear(counter, 4 * sizeof *counter);
    RUN(shared_memory, 2, 64, counter);
    CHECK(check_read(&counter[0]) == 63 * 64 / 2);
    CHECK(check_read(&counter[1]) == 63 * 64 / 2 + 64000);
    CHECK(check_read(&counter[2]) == 37 && check_read(&counter[3]) == 37);
    check_errors_end(__FILE__, errors);
    gpushmem_free(counter);
    gpushmem_free(source);
    gpushmem_free(b);
    return check_end("order");
}
