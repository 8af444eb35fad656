// SPDX-License-Identifier: BSD-3-Clause
// A heap that grows: allocations that do not fit get more memory on every PE, old and new blocks
// serve every kind of call, also both in one; at the limit the sentence says so. The heap may be in
// GPU memory: its words are read by calls.
//
//   growth                       it has 4M at first, and 64M at most
//   growth fails PE N FAILURES   the first N times it cannot grow, as that PE's driver fails so
//                                (FAKE_CUDA_FAIL); then it can
//   growth full GIB              no GPU has that much more memory
//   growth fixed                 it does not grow
//   growth threads               other threads use it meanwhile
//   growth realloc               a block that grows moves into it
#define _POSIX_C_SOURCE 200809L // setenv
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

enum { BLOCKS = 12 };
static const size_t BLOCK = 3 << 20; // the heap has 4M at first

static long *blocks[BLOCKS];
static uint64_t *signals;
static int me, n, next, before;

static uint64_t heap_bytes(void)
{
    struct gpushmem_heap_info info;
    CHECK_OK(gpushmem_heap_info(&info));
    return info.bytes;
}

static long at(const long *word)
{
    return gpushmem_long_g(word, me);
}

// Where the processor or kernels reach a peer's first piece they reach the others.
static void check_address(int i)
{
    char *first = gpushmem_ptr(blocks[0], next), *here = gpushmem_ptr(blocks[i], next);
    struct gpushmem_peer_info peer;
    CHECK_OK(gpushmem_peer_info(next, &peer));
    CHECK(!first == !here && (first || !peer.device_direct));
    CHECK(!first || here - first == (char *)blocks[i] - (char *)blocks[0]);
}

static void exchange(int i)
{
    size_t last = BLOCK / sizeof(long) - 1;
    long source[3] = {100 * me + i, 200 * me + i, 300 * me + i};
    CHECK_OK(gpushmem_long_p(&blocks[i][last], me + i, next));
    CHECK_OK(gpushmem_long_put(blocks[i] + 7, source, 3, next));
    // a signal in the first piece for data in this one, and the other way round
    CHECK_OK(gpushmem_long_put_signal(blocks[i] + 20, source, 3, &signals[i], (uint64_t)i + 1,
                                      GPUSHMEM_SIGNAL_SET, next));
    CHECK_OK(gpushmem_long_put_signal(blocks[0] + 100 + 4 * i, source, 3,
                                      (uint64_t *)(void *)&blocks[i][50], 1, GPUSHMEM_SIGNAL_ADD,
                                      next));
    CHECK_OK(gpushmem_long_atomic_inc(&blocks[i][60], 0));
    CHECK_OK(gpushmem_int_atomic_add((int *)(void *)&blocks[i][61], 3, 0));
    CHECK_OK(gpushmem_uint64_wait_until(&signals[i], GPUSHMEM_CMP_EQ, (uint64_t)i + 1));
    CHECK(at(&blocks[i][21]) == 200 * before + i);
    CHECK_OK(gpushmem_uint64_wait_until((uint64_t *)(void *)&blocks[i][50], GPUSHMEM_CMP_EQ, 1));
    CHECK(at(&blocks[0][102 + 4 * i]) == 300 * before + i);
    CHECK_OK(gpushmem_barrier_all());
    CHECK(at(&blocks[i][last]) == before + i && at(&blocks[i][9]) == 300 * before + i);
    CHECK(gpushmem_long_g(&blocks[i][60], 0) == n &&
          gpushmem_int_g((int *)&blocks[i][61], 0) == 3 * n);
    long *big = blocks[i] + 1000, got = -1;
    CHECK_OK(gpushmem_putmem(big + last / 2, big, BLOCK / 4, next)); // from there to there
    CHECK_OK(gpushmem_long_get(&got, &blocks[i][last], 1, next));
    CHECK(got == me + i);
    check_address(i);
    CHECK_OK(gpushmem_barrier_all());
}

// What an allocation that succeeds has tried on the way is no failure, and a block that does not
// fit into the heap moves into a larger one.
static void test_realloc(void)
{
    const size_t words = BLOCK / sizeof(long), more = (size_t)11 << 20;
    uint64_t first = heap_bytes();
    gpushmem_clear_error();
    long *block = gpushmem_calloc(1, BLOCK);
    CHECK_OK(gpushmem_long_p(&block[words - 1], 7 + me, next));
    CHECK_OK(gpushmem_barrier_all());
    long *larger = gpushmem_realloc(block, more);
    CHECK_THAT(larger && heap_bytes() > first, "%s", gpushmem_last_error());
    CHECK_THAT(gpushmem_last_error_code() == 0, "left behind: %s", gpushmem_last_error());
    CHECK(at(&larger[words - 1]) == 7 + before && at(larger) == 0);
    CHECK_OK(gpushmem_long_p(&larger[more / sizeof(long) - 1], me, next));
    CHECK_OK(gpushmem_barrier_all());
    CHECK(at(&larger[more / sizeof(long) - 1]) == before);
    CHECK(!gpushmem_realloc(larger, 70 << 20) && strstr(gpushmem_last_error(), "gpushmem_realloc"));
    CHECK(strstr(gpushmem_last_error(), "it may have") && at(&larger[words - 1]) == 7 + before);
    CHECK_OK(gpushmem_free(larger));
}

static void test_growth(void)
{
    uint64_t first = heap_bytes();
    if (n > 1) { // a PE whose heap has room is in another call: that is told, and nothing is lost
        CHECK(!gpushmem_malloc(me ? (size_t)40 << 20 : 64));
        CHECK_THAT(gpushmem_last_error_code() == GPUSHMEM_ERR_ASYMMETRY, "%s",
                   gpushmem_last_error());
        CHECK(heap_bytes() == first);
    }
    signals = gpushmem_calloc(BLOCKS, sizeof *signals);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = gpushmem_calloc(1, BLOCK);
        CHECK_THAT(blocks[i], "block %d: %s", i, gpushmem_last_error());
        exchange(i);
    }
    for (int i = 0; i < BLOCKS; i++) // those of all pieces together
        CHECK(at(&blocks[i][9]) == 300 * before + i);
    CHECK_OK(gpushmem_barrier_all());
    for (int i = 0; i < BLOCKS; i++)
        CHECK_OK(gpushmem_long_p(&blocks[i][9], -i, next));
    CHECK_OK(gpushmem_barrier_all());
    CHECK(at(&blocks[0][9]) == 0 && at(&blocks[BLOCKS - 1][9]) == -(BLOCKS - 1));
    CHECK(heap_bytes() > first && heap_bytes() >= BLOCKS * BLOCK && heap_bytes() <= 64 << 20);
    uint64_t grown = heap_bytes();
    CHECK(!gpushmem_malloc(70 << 20) && strstr(gpushmem_last_error(), "GPUSHMEM_HEAP_MAX"));
    CHECK(strstr(gpushmem_last_error(), "no block of 73400320 bytes is free"));
    CHECK_THAT(strstr(gpushmem_last_error(), "it may have 67108864 bytes in all"), "%s",
               gpushmem_last_error());
    CHECK(heap_bytes() == grown);
    CHECK(gpushmem_long_p((long *)(void *)((char *)blocks[0] + (200 << 20)), 1, next) ==
          GPUSHMEM_ERR_ADDRESS);
    // Between the first piece and what was added is the library's memory.
    char *end = (char *)signals + first, *added = (char *)blocks[BLOCKS - 1];
    CHECK(added > end && gpushmem_long_p((long *)(void *)end, 1, next) == GPUSHMEM_ERR_ADDRESS);
    CHECK(strstr(gpushmem_last_error(), ", and 0x") != NULL);
    CHECK(gpushmem_putmem(end - 8, added, (size_t)(added - end), next) == GPUSHMEM_ERR_ADDRESS);
    CHECK_OK(gpushmem_free(blocks[5]));
    CHECK((blocks[5] = gpushmem_malloc(BLOCK)) && heap_bytes() == grown);
    for (int i = 0; i < BLOCKS; i++)
        CHECK_OK(gpushmem_free(blocks[i]));
    CHECK_OK(gpushmem_free(signals));
}

static void fill_block(long *block, long value)
{
    for (size_t i = 0; i < BLOCK / sizeof *block; i += 20000)
        CHECK_OK(gpushmem_long_p(&block[i], value + (long)i, next));
    CHECK_OK(gpushmem_barrier_all());
    for (size_t i = 0; i < BLOCK / sizeof *block; i += 20000)
        CHECK(at(&block[i]) == value + (long)i);
    CHECK_OK(gpushmem_barrier_all());
}

// All PEs are told of the one that failed, with one code, and what they had is as it was.
static void check_told(size_t more, int whose, long *codes)
{
    CHECK(!gpushmem_malloc(more));
    long code = gpushmem_last_error_code();
    char pe[16];
    snprintf(pe, sizeof pe, "PE %d", whose);
    CHECK_THAT(me == whose || strstr(gpushmem_last_error(), pe), "%s", gpushmem_last_error());
    CHECK_OK(gpushmem_long_p(&codes[me], code, 0));
    CHECK_OK(gpushmem_barrier_all());
    for (int i = 0; i < n && me == 0; i++)
        CHECK_THAT(at(&codes[i]) == code && code < 0, "PE %d: %ld, PE 0: %ld", i, at(&codes[i]),
                   code);
}

static void test_failures(int whose, int times)
{
    uint64_t first = heap_bytes();
    size_t more = first + BLOCK;
    long *old = gpushmem_calloc(1, BLOCK), *codes = gpushmem_calloc((size_t)n, sizeof *codes);
    CHECK(old && codes);
    for (int i = 0; i < times; i++) {
        fill_block(old, i);
        check_told(more, whose, codes);
        CHECK(heap_bytes() == first);
    }
    fill_block(old, times);
    long *block = gpushmem_calloc(1, more);
    CHECK_THAT(block, "%s", gpushmem_last_error());
    fill_block(block, -1);
    fill_block(old, -2);
    CHECK_OK(gpushmem_free(block));
    CHECK_OK(gpushmem_free(codes));
    CHECK_OK(gpushmem_free(old));
}

static void test_refused(size_t bytes, const char *why)
{
    uint64_t first = heap_bytes();
    long *old = gpushmem_calloc(1, BLOCK);
    CHECK_THAT(!gpushmem_malloc(bytes) && strstr(gpushmem_last_error(), why), "%s",
               gpushmem_last_error());
    CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_NO_MEMORY && heap_bytes() == first);
    fill_block(old, 5);
    CHECK_OK(gpushmem_free(old));
}

static _Atomic(long *) newest; // of the blocks that there are
static atomic_bool grown_up;

// Calls that look at the heap's size: well inside, in the newest block, beyond the end.
static void use_heap(int thread)
{
    long *block = atomic_load(&newest), value = thread, *far = blocks[0] + ((long)256 << 20);
    CHECK_OK(gpushmem_long_put(&blocks[0][10 * thread], &value, 1, next));
    CHECK_OK(gpushmem_long_p(&block[10 * thread], value, next));
    CHECK_OK(gpushmem_long_put(&block[10 * thread + 1], &block[10 * thread], 1, next));
    CHECK_OK(gpushmem_long_atomic_inc(&block[10 * thread + 2], next));
    CHECK(gpushmem_long_p(far, 1, next) == GPUSHMEM_ERR_ADDRESS);
    CHECK(gpushmem_addr_accessible(block, next) && !gpushmem_addr_accessible(far, next));
    CHECK(!gpushmem_ptr(far, next) && heap_bytes() >= BLOCK);
    CHECK_OK(gpushmem_buffer_register(&value, sizeof value));
    CHECK_OK(gpushmem_buffer_unregister(&value));
    CHECK_OK(gpushmem_quiet());
}

static void *use_until_grown(void *thread)
{
    while (!atomic_load(&grown_up))
        use_heap((int)(intptr_t)thread);
    use_heap((int)(intptr_t)thread);
    return NULL;
}

static void test_threads(void)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = gpushmem_calloc(1, BLOCK);
        CHECK_THAT(blocks[i], "block %d: %s", i, gpushmem_last_error());
        atomic_store(&newest, blocks[i]);
        for (intptr_t t = 0; t < THREADS && i == 0; t++)
            CHECK(pthread_create(&threads[t], NULL, use_until_grown, (void *)t) == 0);
    }
    atomic_store(&grown_up, true);
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_join(threads[t], NULL) == 0);
    CHECK(heap_bytes() >= BLOCKS * BLOCK);
    CHECK_OK(gpushmem_barrier_all());
    for (int i = 0; i < BLOCKS; i++)
        CHECK_OK(gpushmem_free(blocks[i]));
}

// A heap that has grown still begins where it did: at a multiple of what its first size gave.
static void test_alignment(void)
{
    size_t granted = 0;
    char *grown = gpushmem_malloc((size_t)32 << 20);
    CHECK_THAT(grown, "%s", gpushmem_last_error());
    CHECK_OK(gpushmem_free(grown));
    for (size_t alignment = 256; alignment <= (size_t)32 << 20; alignment *= 2) {
        char *block = gpushmem_align(alignment, 1000);
        if (!block) {
            CHECK_THAT(gpushmem_last_error_code() == GPUSHMEM_ERR_INVALID, "%zu: %s", alignment,
                       gpushmem_last_error());
            break;
        }
        CHECK_THAT((uintptr_t)block % alignment == 0, "%p for %zu", (void *)block, alignment);
        granted = alignment;
        CHECK_OK(gpushmem_free(block));
    }
    CHECK_THAT(granted == (size_t)2 << 20, "%zu of 3 MiB", granted);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *rank = getenv("GPUSHMEM_RUN_PE");
    int whose = argc > 2 ? atoi(argv[2]) : -1;
    if (rank && atoi(rank) == whose && argc > 4)
        setenv("FAKE_CUDA_FAIL", argv[4], 1);
    if (!strcmp(what, "threads"))
        CHECK_OK(gpushmem_init_thread(GPUSHMEM_THREAD_MULTIPLE, NULL));
    else
        CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n = gpushmem_n_pes();
    next = (me + 1) % n;
    before = (me + n - 1) % n;
    if (!strcmp(what, "fails"))
        test_failures(whose, atoi(argv[3]));
    else if (!strcmp(what, "full"))
        test_refused((size_t)whose << 30, "are free; free some of it");
    else if (!strcmp(what, "fixed"))
        test_refused((size_t)300 << 20, "GPUSHMEM_HEAP_MAX");
    else if (!strcmp(what, "threads"))
        test_threads();
    else if (!strcmp(what, "realloc"))
        test_realloc();
    else if (!strcmp(what, "aligned"))
        test_alignment();
    else
        test_growth();
    CHECK_OK(gpushmem_finalize());
    return 0;
}
