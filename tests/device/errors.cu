// SPDX-License-Identifier: BSD-3-Clause
// What kernels do wrong is told by the next host call, with a sentence; the rest goes on.
#define GPUSHMEM_DEVICE_CHECKS
#include <string.h>

#include "../log_lines.h"
#include "kernel_check.cuh"

#define EXPECT_ERROR(status, text)                                                                 \
    do {                                                                                           \
        CHECK(gpushmem_launch_wait(NULL) == (status));                                             \
        if (!strstr(gpushmem_last_error(), text)) {                                                \
            fprintf(stderr, "%s:%d: '%s' is not in '%s'\n", __FILE__, __LINE__, text,              \
                    gpushmem_last_error());                                                        \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)

__global__ void put_to(int *word, int pe)
{
    if (threadIdx.x == 3 && blockIdx.x == 1)
        gpushmem_dev_int_p(word, 1, pe);
}

__global__ void fetch_from(uint64_t *word, int pe, uint64_t *result)
{
    *result = gpushmem_dev_uint64_atomic_fetch(word, pe);
}

// Sizes that wrap to 8 bytes, if nobody looks.
__global__ void move_too_much(uint64_t *words, int way)
{
    const size_t n = SIZE_MAX / 8 + 2;
    const ptrdiff_t stride = (ptrdiff_t)1 << 61;
    int me = gpushmem_dev_my_pe();
    switch (way) {
    case 0: gpushmem_dev_uint64_put(words, words + 1, n, me); break;
    case 1: gpushmem_dev_get64_nbi(words, words + 1, n, me); break;
    case 2:
        gpushmem_dev_uint64_put_signal(words, words + 1, n, words, 1, GPUSHMEM_SIGNAL_SET, me);
        break;
    case 3: gpushmem_dev_uint64_iput(words, words + 1, stride, 1, 2, me); break;
    default: gpushmem_dev_iget64(words, words + 1, 1, stride, 2, me); break;
    }
}

// Where a GPU would end the program, or the word would change in two pieces.
__global__ void misaligned(uint64_t *words, int way, uint64_t *result)
{
    uint64_t *bad = (uint64_t *)((char *)words + 4), seen = 5;
    int me = gpushmem_dev_my_pe();
    switch (way) {
    case 0: gpushmem_dev_uint64_atomic_inc(bad, me); break;
    case 1: *result = gpushmem_dev_uint64_atomic_fetch_add(bad, 1, me); break;
    case 2: gpushmem_dev_uint32_atomic_set((uint32_t *)((char *)words + 2), 1, me); break;
    case 3: gpushmem_dev_signal_op(bad, 1, GPUSHMEM_SIGNAL_ADD, me); break;
    case 4: gpushmem_dev_uint64_put_signal(words, words, 1, bad, 1, GPUSHMEM_SIGNAL_SET, me); break;
    case 5:
        *result = (uint64_t)gpushmem_dev_signal_wait_until_status(bad, GPUSHMEM_CMP_EQ, 0, &seen);
        break;
    default: *result = gpushmem_dev_uint64_wait_until_any(bad, 1, nullptr, GPUSHMEM_CMP_EQ, 0);
    }
}
enum { MISALIGNED = 7 };

// The words that the library has behind the program's part of the heap.
__global__ void beyond_the_program(uint64_t *end, int way, uint64_t *result)
{
    int me = gpushmem_dev_my_pe();
    uint64_t word = 0;
    switch (way) {
    case 0: gpushmem_dev_uint64_p(end, 1, me); break;
    case 1: gpushmem_dev_uint64_put(end - 1, &word, 2, me); break;
    case 2: gpushmem_dev_uint64_atomic_inc(end + 600, me); break;
    case 3: *result = (uint64_t)gpushmem_dev_uint64_wait_until(end, GPUSHMEM_CMP_EQ, 0); break;
    case 4:
        *result = gpushmem_dev_uint64_wait_until_any(end - 1, 2, nullptr, GPUSHMEM_CMP_NE, 0);
        break;
    default: gpushmem_dev_signal_op(end + 1000, 1, GPUSHMEM_SIGNAL_SET, me);
    }
}
enum { BEYOND = 6 };

// Strides, and a NULL on this PE's side.
__global__ void bad_move(uint64_t *words, int way)
{
    int me = gpushmem_dev_my_pe();
    switch (way) {
    case 0: gpushmem_dev_uint64_iput(words, words + 1, -1, 1, 2, me); break;
    case 1: gpushmem_dev_iget64_block(words, words + 1, 0, 1, 2, me); break;
    case 2: gpushmem_dev_uint64_put(words, nullptr, 1, me); break;
    case 3: gpushmem_dev_uint64_get_nbi(nullptr, words, 1, me); break;
    case 4: gpushmem_dev_uint64_iput(words, nullptr, 1, 1, 1, me); break;
    default: gpushmem_dev_uint64_put_signal(words, nullptr, 1, words, 1, GPUSHMEM_SIGNAL_SET, me);
    }
}

static void test_moves(uint64_t *words)
{
    const char *const wants[] = {": strides are -1 there and 1 here; they count elements",
                                 ": strides are 1 there and 0 here; they count elements",
                                 "in a put that is not empty: its source is NULL",
                                 "in a get that is not empty: its dest is NULL",
                                 "in a put that is not empty: its source is NULL",
                                 "in a put that is not empty: its source is NULL"};
    for (int way = 0; way < (int)(sizeof wants / sizeof wants[0]); way++) {
        CHECK_OK(GPUSHMEM_LAUNCH(bad_move, 1, 1, NULL, words, way));
        EXPECT_ERROR(GPUSHMEM_ERR_INVALID, wants[way]);
    }
    CHECK(check_read(words) == 0);
}

// What is no signal operation and no comparison, as a constant and as an argument.
__global__ void no_operator(uint64_t *words, int way, int bad, uint64_t *result)
{
    const enum gpushmem_signal_op op = (enum gpushmem_signal_op)bad;
    const enum gpushmem_cmp cmp = (enum gpushmem_cmp)bad;
    size_t indices[2];
    int me = gpushmem_dev_my_pe();
    switch (way) {
    case 0: gpushmem_dev_signal_op(words, 1, (enum gpushmem_signal_op)3, me); break;
    case 1: gpushmem_dev_signal_op(words, 1, op, me); break;
    case 2: gpushmem_dev_uint64_put_signal(words, words + 1, 1, words, 1, op, me); break;
    case 3: gpushmem_dev_putmem_signal_nbi_block(words, words + 1, 8, words, 1, op, me); break;
    case 4: *result = (uint64_t)gpushmem_dev_uint64_test(words, cmp, 0); break;
    case 5: *result = (uint64_t)gpushmem_dev_test(words, (enum gpushmem_cmp)55, UINT64_C(0)); break;
    case 6: *result = gpushmem_dev_signal_wait_until(words, cmp, 0); break;
    case 7: *result = (uint64_t)(gpushmem_dev_uint64_wait_until(words, cmp, 0) + 1); break;
    case 8: *result = (uint64_t)gpushmem_dev_uint64_test_all(words, 2, nullptr, cmp, 0); break;
    case 9: *result = gpushmem_dev_uint64_test_some(words, 2, indices, nullptr, cmp, 0); break;
    case 10: *result = gpushmem_dev_uint64_test_any(words, 2, nullptr, cmp, 0) + 1; break;
    default: *result = gpushmem_dev_uint64_wait_until_any(words, 2, nullptr, cmp, 0) + 1;
    }
}
enum { OPERATORS = 12, COMPARISONS_FROM = 4 };

static void test_operators(uint64_t *words, uint64_t *result)
{
    char text[128];
    for (int way = 0; way < OPERATORS; way++) {
        const int bad = way == 0 ? 3 : way == 5 ? 55 : way % 2 ? 6 : -1;
        gpushmem_uint64_p(result, 7, gpushmem_my_pe());
        CHECK_OK(gpushmem_quiet());
        CHECK_OK(GPUSHMEM_LAUNCH(no_operator, 1, 1, NULL, words, way, bad, result));
        snprintf(text, sizeof text, "%s %d is n",
                 way < COMPARISONS_FROM ? "signal operation" : "comparison", bad);
        EXPECT_ERROR(GPUSHMEM_ERR_INVALID, text);
        CHECK(check_read(result) == (way < COMPARISONS_FROM ? 7 : 0));
    }
    CHECK(check_read(words) == 0);
}

// Each wait says why it ended.
__global__ void wait_in_vain(uint64_t *word, int *status)
{
    *status = gpushmem_dev_uint64_wait_until(word, GPUSHMEM_CMP_NE, 0);
}

__global__ void wait_and_see(uint64_t *word, int *status)
{
    uint64_t seen = 0;
    *status = gpushmem_dev_signal_wait_until_status(word, GPUSHMEM_CMP_EQ, 1, &seen);
    *status += (int)seen;
}

__global__ void quiet(void)
{
    gpushmem_dev_quiet();
}

// Commands written past the checks: only the proxy sees them.
static void test_bad_commands(const gpushmem_dev *dev, uint64_t *word)
{
#if !defined(__CUDACC__)
    const gpushmem_ring *ring = &dev->rings[dev->n_rings - 1];
    gpushmem_command command = {};
    uint64_t words[GPUSHMEM_COMMAND_WORDS];
    command.opcode = GPUSHMEM_CMD_PUT_INLINE;
    command.bytes = 8;
    command.pe = 12345;
    command.remote = (uint64_t)word;
    uint64_t index = __atomic_fetch_add(ring->head, 1, __ATOMIC_RELAXED);
    gpushmem_command_pack(&command, gpushmem_ring_lap(index, ring->entries_log2), words);
    memcpy(ring->slots + index * GPUSHMEM_COMMAND_WORDS, words, sizeof words);
    CHECK(gpushmem_quiet() == GPUSHMEM_ERR_PE);
    CHECK(strstr(gpushmem_last_error(), "12345"));
    CHECK_OK(gpushmem_quiet());
    // No command at all: the ring is closed, and whoever waits for it is told.
    index = __atomic_fetch_add(ring->head, 1, __ATOMIC_RELAXED);
    memset(ring->slots + index * GPUSHMEM_COMMAND_WORDS, 0xee, GPUSHMEM_COMMAND_BYTES);
    CHECK_OK(GPUSHMEM_LAUNCH(quiet, 1, 1, NULL));
    EXPECT_ERROR(GPUSHMEM_ERR_RING, "ring");
    CHECK(gpushmem_quiet() == GPUSHMEM_ERR_RING);
#endif
}

// Headers of another interface: refused before anything is written, and the sentence says which to
// build again.
static void test_other_interfaces(void)
{
    gpushmem_dev dev;
    dev.abi = 77;
    CHECK(gpushmem_device_handle_abi(&dev, GPUSHMEM_DEVICE_ABI - 1) == GPUSHMEM_ERR_UNSUPPORTED);
    CHECK(strstr(gpushmem_last_error(), "compile the program again"));
    CHECK(gpushmem_device_handle_abi(&dev, GPUSHMEM_DEVICE_ABI + 1) == GPUSHMEM_ERR_UNSUPPORTED);
    CHECK(strstr(gpushmem_last_error(), "install the library"));
    CHECK(dev.abi == 77);
}

#if !defined(__CUDACC__)
// A call of the block by one of its threads alone: the others return, or are elsewhere.
__global__ void put_alone(uint64_t *words, int way)
{
    if (threadIdx.x == 1)
        gpushmem_dev_uint64_put_block(words, words + 1, 1, gpushmem_dev_my_pe());
    else if (way) {
        __syncthreads();
        __syncthreads();
    }
}

// The same of a warp.
__global__ void put_alone_by_warp(uint64_t *words, int way)
{
    if (threadIdx.x == 33)
        gpushmem_dev_uint64_put_warp(words, words + 1, 1, gpushmem_dev_my_pe());
    else if (way) {
        __syncwarp();
        __syncwarp();
    }
}

// Not so: lanes of which some vote before all put, and a warp that makes no call.
__global__ void put_after_votes(uint64_t *words)
{
    if (threadIdx.x >= 32)
        return;
    if (threadIdx.x < 16)
        __ballot_sync(0xffffu, 1);
    gpushmem_dev_uint64_put_warp(words, words + 1, 1, gpushmem_dev_my_pe());
}

// Not so: threads that have left before, or leave after, calls of warps and threads.
__global__ void put_by_few(uint64_t *words)
{
    if (threadIdx.x >= 40)
        return;
    __syncthreads();
    if (threadIdx.x < 32)
        gpushmem_dev_uint64_put_warp(words, words + 1, 1, gpushmem_dev_my_pe());
    __syncthreads();
    gpushmem_dev_quiet();
}

// Calls of kernels' functions by the host: each is told, and does nothing.
static void test_outside_kernels(uint64_t *words)
{
    gpushmem_dev_uint64_p(words, 1, 0);
    CHECK(strstr(gpushmem_last_error(), "gpushmem_dev_uint64_p was called by host code"));
    gpushmem_dev_put_block(words, words + 1, 1, 0);
    CHECK(strstr(gpushmem_last_error(), "gpushmem_dev_put_block"));
    CHECK(gpushmem_dev_uint64_atomic_fetch_add(words, 1, 0) == 0);
    CHECK(gpushmem_dev_uint64_wait_until(words, GPUSHMEM_CMP_NE, 0) == GPUSHMEM_ERR_ADDRESS);
    gpushmem_dev_barrier_all_warp();
    gpushmem_dev_quiet();
    CHECK(gpushmem_dev_uint64_sum_reduce_block(GPUSHMEM_TEAM_WORLD, words, words + 1, 1) ==
          GPUSHMEM_ERR_INVALID);
    CHECK(check_read(words) == 0);
    CHECK_OK(gpushmem_device_error());
}

static void test_lone_calls(uint64_t *words)
{
    CHECK_OK(GPUSHMEM_LAUNCH(put_alone, 1, 4, NULL, words, 0));
    EXPECT_ERROR(GPUSHMEM_ERR_INVALID, "1 of the 4 threads");
    CHECK_OK(GPUSHMEM_LAUNCH(put_alone, 2, 33, NULL, words, 1));
    EXPECT_ERROR(GPUSHMEM_ERR_INVALID, "1 of the 33 threads");
    CHECK(strstr(gpushmem_last_error(), "32 were in __syncthreads, 0 had left"));
    RUN(put_by_few, 2, 64, words);
    for (int way = 0; way < 2; way++) {
        CHECK_OK(GPUSHMEM_LAUNCH(put_alone_by_warp, 2, 40, NULL, words, way));
        EXPECT_ERROR(GPUSHMEM_ERR_INVALID, "1 of the 8 threads of a warp");
    }
    RUN(put_after_votes, 1, 64, words);
}
#endif

// A kernel that no host call waits for: finalize says what it did wrong.
static int run_left(void)
{
    log_begin();
    check_begin();
    int *word = (int *)gpushmem_calloc(1, sizeof *word);
    CHECK_OK(GPUSHMEM_LAUNCH(put_to, 2, 4, NULL, word, 77));
    gpushmem_free(word);
    gpushmem_finalize(); // its status depends on when the kernel ran
    CHECK(lines_with("ERROR kernel: ") == 1 && lines_with("towards PE 77, which") == 1);
    return check_failures != 0;
}

int main(int argc, char **)
{
    if (argc > 1)
        return run_left();
    log_begin();
    int me = check_begin(), n = gpushmem_n_pes();
    uint64_t *word = (uint64_t *)gpushmem_calloc(2, 8), *result = (uint64_t *)gpushmem_calloc(1, 8);
    char text[128];
    struct gpushmem_proxy_times times;
    gpushmem_dev dev;

    CHECK(gpushmem_proxy_times_read(NULL) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_proxy_times_read(&times) == GPUSHMEM_ERR_UNSUPPORTED); // no kernel yet
    CHECK_OK(GPUSHMEM_LAUNCH(put_to, 2, 4, NULL, (int *)word, n));
    snprintf(text, sizeof text, "towards PE %d, which is not among the job's PEs 0 to %d", n,
             n - 1);
    EXPECT_ERROR(GPUSHMEM_ERR_PE, text);
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK(lines_with(text) == 1 && lines_with("ERROR kernel: ") == 1);
    // no proxy, or it takes no times
    CHECK(gpushmem_proxy_times_read(&times) == GPUSHMEM_ERR_UNSUPPORTED);

    CHECK_OK(GPUSHMEM_LAUNCH(put_to, 2, 4, NULL, (int *)word, -1));
    EXPECT_ERROR(GPUSHMEM_ERR_PE, "block (1,0,0), thread (3,0,0)");

    int beside;
    CHECK_OK(GPUSHMEM_LAUNCH(put_to, 2, 4, NULL, &beside, me));
    EXPECT_ERROR(GPUSHMEM_ERR_ADDRESS, "kernels pass addresses from gpushmem_malloc");
    CHECK_OK(GPUSHMEM_LAUNCH(put_to, 2, 4, NULL, (int *)NULL, me));
    EXPECT_ERROR(GPUSHMEM_ERR_ADDRESS, "NULL is not in the symmetric heap (0x");

    for (int way = 0; way < 5; way++) {
        CHECK_OK(GPUSHMEM_LAUNCH(move_too_much, 1, 1, NULL, word, way));
        EXPECT_ERROR(GPUSHMEM_ERR_ADDRESS, " reach beyond the end of the symmetric heap (0x");
    }

    gpushmem_uint64_p(result, 1, me);
    CHECK_OK(gpushmem_quiet());
    CHECK_OK(GPUSHMEM_LAUNCH(fetch_from, 1, 1, NULL, word, n, result));
    EXPECT_ERROR(GPUSHMEM_ERR_PE, "PE");
    CHECK(check_read(result) == 0);

    for (int way = 0; way < MISALIGNED; way++) {
        CHECK_OK(GPUSHMEM_LAUNCH(misaligned, 1, 1, NULL, word, way, result));
        EXPECT_ERROR(GPUSHMEM_ERR_ALIGNMENT,
                     way < 2    ? "is not a multiple of 8, the size of its word"
                     : way == 2 ? "is not a multiple of 4, the size of its word"
                                : "block (0,0,0)");
    }
    CHECK(check_read(word) == 0);

#if !defined(__CUDACC__)
    test_lone_calls(word);
#endif
    CHECK_OK(gpushmem_device_handle(&dev));
    for (int way = 0; way < BEYOND; way++) {
        CHECK_OK(
            GPUSHMEM_LAUNCH(beyond_the_program, 1, 1, NULL, (uint64_t *)dev.sync, way, result));
        EXPECT_ERROR(GPUSHMEM_ERR_ADDRESS, "symmetric heap");
    }
    RUN(put_to, 2, 4, (int *)dev.sync - 1, me); // the program's last word
    CHECK(lines_with("further ones are told by") == 1 && lines_with("ERROR kernel: ") == 16);

    test_operators(word, result);
    test_moves(word);
#if !defined(__CUDACC__)
    test_outside_kernels(word);
#endif
    int *status = (int *)gpushmem_calloc(1, sizeof *status);
    if (n == 1) { // with more PEs the limit is one for each other's way into init as well: long
        CHECK_OK(GPUSHMEM_LAUNCH(wait_in_vain, 1, 1, NULL, word, status));
        EXPECT_ERROR(GPUSHMEM_ERR_TIMEOUT, "), which is 0, to be != 0");
        CHECK(check_read(status) == GPUSHMEM_ERR_TIMEOUT);
    }
    gpushmem_uint64_p(word, 1, me);
    CHECK_OK(gpushmem_quiet());
    RUN(wait_and_see, 1, 1, word, status);
    CHECK(check_read(status) == 1);
    gpushmem_free(status);

    CHECK(GPUSHMEM_LAUNCH(quiet, 0, 1, NULL) != 0);
    CHECK(strstr(gpushmem_last_error(), "not launched"));
    CHECK(gpushmem_device_handle(NULL) == GPUSHMEM_ERR_INVALID);

    test_other_interfaces();
    CHECK_OK(gpushmem_device_handle(&dev));
    CHECK_OK(gpushmem_barrier_all());
    gpushmem_free(result);
    if (dev.flags & GPUSHMEM_DEV_ALL_DIRECT) {
        gpushmem_free(word);
        return check_end("errors");
    }
#if defined(__CUDACC__) // test_bad_commands writes into rings from the host
    gpushmem_free(word);
    return check_end("errors");
#endif
    test_bad_commands(&dev, word);
    // The closed ring is told by each barrier from now on, finalize's included.
    CHECK(gpushmem_finalize() == GPUSHMEM_ERR_RING);
    CHECK(gpushmem_device_handle(&dev) == GPUSHMEM_ERR_STATE);
    if (gpushmem_init() || gpushmem_device_handle(&dev))
        check_failures++;
    CHECK(dev.generation == 2);
    return check_end("errors");
}
