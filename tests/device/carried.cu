// SPDX-License-Identifier: BSD-3-Clause
// Small payloads that travel in commands: put_signal, and the values of a warp's threads.
#include <string.h>

#include "kernel_check.cuh"

enum { LANES = 32, MOST = 64, ROOM = 4096 };

struct box {
    uint8_t bytes[ROOM];
    uint64_t signal;
};

// A source on the thread's stack, of every size around the limit.
__global__ void put_signal_sizes(box *b, int *errors)
{
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes(), peer = (me + 1) % n;
    uint8_t source[MOST];
    for (uint64_t size = 0; size <= MOST; size++) {
        for (uint64_t i = 0; i < MOST; i++)
            source[i] = (uint8_t)(size + i + 128);
        if (size % 2)
            gpushmem_dev_putmem_signal(b->bytes + 3 * size, source, size, &b->signal, size + 1,
                                       GPUSHMEM_SIGNAL_SET, peer);
        else
            gpushmem_dev_putmem_signal(b->bytes + 3 * size, source, size, &b->signal, 1,
                                       GPUSHMEM_SIGNAL_ADD, peer);
        memset(source, 0, sizeof source); // it may be reused
        gpushmem_dev_signal_wait_until(&b->signal, GPUSHMEM_CMP_EQ, size + 1);
        for (uint64_t i = 0; i < size; i++)
            EXPECT(errors, b->bytes[3 * size + i] == (uint8_t)(size + i + 128));
        EXPECT(errors, b->bytes[3 * size + size] == 0);
        gpushmem_dev_barrier_all();
        for (uint64_t i = 0; i < size; i++)
            b->bytes[3 * size + i] = 0;
        gpushmem_dev_barrier_all();
    }
}

// Where lane i puts its value, and at which PE.
enum pattern { IN_A_ROW, BACKWARDS, EVERY_OTHER, PAIRS, ONE_PLACE, TURNS, PATTERNS };

__device__ static unsigned place_of(int pattern, unsigned lane)
{
    switch (pattern) {
    case BACKWARDS: return LANES - 1 - lane;
    case EVERY_OTHER: return 2 * lane;
    case PAIRS: return lane / 2 * 3 + lane % 2;
    case ONE_PLACE: return lane ? lane : 1; // lanes 0 and 1 put the same
    default: return lane;
    }
}

__device__ static int pe_of(int pattern, unsigned lane)
{
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes();
    return pattern == TURNS ? (int)(lane / 5) % n : (me + 1) % n;
}

template <typename T> __device__ static T value_of(unsigned lane, int from)
{
    return (T)(3 * lane + 7 * (unsigned)from + 5 + (1ull << (8 * sizeof(T) - 1)));
}

template <typename T> __global__ void warp_puts(T *words, int pattern, int *errors)
{
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes();
    unsigned lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    T *mine = words + ((unsigned)me * 2 + warp) * 2 * LANES; // senders and warps have their own
    unsigned from = pattern == ONE_PLACE && lane == 0 ? 1 : lane;
    gpushmem_dev_p_warp(&mine[place_of(pattern, lane)], value_of<T>(from, me),
                        pe_of(pattern, lane));
    if (lane == LANES - 1 || threadIdx.x == blockDim.x - 1)
        gpushmem_dev_quiet(); // also of what other lanes have put
    gpushmem_dev_barrier_all_block();
    if (threadIdx.x == 0)
        for (int sender = 0; sender < n; sender++)
            for (unsigned thread = 0; thread < blockDim.x; thread++) {
                unsigned l = thread % LANES;
                int peer = pattern == TURNS ? (int)(l / 5) % n : (sender + 1) % n;
                const T *there = words + ((unsigned)sender * 2 + thread / LANES) * 2 * LANES;
                unsigned source = pattern == ONE_PLACE && l == 0 ? 1 : l;
                if (peer == me)
                    EXPECT(errors, there[place_of(pattern, l)] == value_of<T>(source, sender));
            }
}

template <typename T> static void test_warp_puts(T *words, int n, int *errors)
{
    for (int pattern = 0; pattern < PATTERNS; pattern++)
        for (unsigned threads : {5, 33, 64}) {
            gpushmem_barrier_all();
            check_clear(words, (size_t)n * 4 * LANES * sizeof(T));
            gpushmem_barrier_all();
            RUN(warp_puts<T>, 1, threads, words, pattern, errors);
        }
}

__global__ void one_row(uint64_t *words)
{
    gpushmem_dev_uint64_p_warp(&words[threadIdx.x], threadIdx.x, gpushmem_dev_my_pe());
}

__global__ void read_heads(gpushmem_dev dev, uint64_t *out)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < dev.n_rings; i++)
        sum += gpsh_dev_load64_relaxed_gpu(gpsh_dev_ring_at(dev, i).head);
    *out = sum;
}

static uint64_t commands(const gpushmem_dev &dev, uint64_t *out)
{
    RUN(read_heads, 1, 1, dev, out);
    return check_read(out);
}

// 32 values of 8 bytes are 7 commands.
static void test_count(uint64_t *words)
{
    gpushmem_dev dev;
    CHECK_OK(gpushmem_device_handle(&dev));
    bool by_ring = !(dev.flags & GPUSHMEM_DEV_ALL_DIRECT);
    uint64_t before = by_ring ? commands(dev, &words[LANES]) : 0;
    RUN(one_row, 1, LANES, words);
    CHECK(!by_ring || commands(dev, &words[LANES]) == before + 7);
    CHECK_OK(gpushmem_quiet());
    for (uint64_t i = 0; i < LANES; i++)
        CHECK(check_read(&words[i]) == i);
}

int main(void)
{
    check_begin();
    int n = gpushmem_n_pes();
    box *b = (box *)gpushmem_calloc(1, sizeof *b);
    uint64_t *words = (uint64_t *)gpushmem_calloc((size_t)n * 4 * LANES, 8);
    int *errors = check_errors_begin();
    RUN(put_signal_sizes, 1, 1, b, errors);
    test_warp_puts((uint64_t *)words, n, errors);
    test_warp_puts((uint32_t *)words, n, errors);
    test_warp_puts((uint16_t *)words, n, errors);
    test_warp_puts((uint8_t *)words, n, errors);
    gpushmem_barrier_all();
    test_count(words);
    gpushmem_barrier_all();
    check_errors_end(__FILE__, errors);
    gpushmem_free(words);
    gpushmem_free(b);
    return check_end("carried");
}
