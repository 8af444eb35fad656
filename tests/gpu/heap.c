// SPDX-License-Identifier: BSD-3-Clause
// The host API on a heap that the host must not touch itself: everything goes through calls. Runs
// on host heaps too.
#include <gpushmem/gpushmem.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition) && failures++ < 20)                                                       \
            fprintf(stderr, "PE %d, line %d: not true: %s (%s)\n", gpushmem_my_pe(), __LINE__,     \
                    #condition, gpushmem_last_error());                                            \
    } while (0)

enum { BIG = 3 << 20 };

static unsigned char pattern(int pe, size_t i)
{
    return (unsigned char)(i * 7 + i / 251 + (size_t)pe * 31 + 1);
}

// Copies of all sizes, from and to program memory and the heap, at odd addresses too.
static void test_copies(int me, int right, int left)
{
    static const size_t sizes[] = {1,  2,    3,    4,     7,     8,       15,
                                   64, 1000, 4096, 16384, 65536, 1 << 20, BIG - 64};
    unsigned char *inbox = gpushmem_calloc(1, BIG), *outbox = gpushmem_malloc(BIG),
                  *mine = malloc(BIG), *seen = malloc(BIG);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t n = sizes[k], shift = k % 5;
        for (size_t i = 0; i < n; i++)
            mine[i] = pattern(me, i + k);
        CHECK(!gpushmem_putmem(inbox + shift, mine, n, right)); // from program memory
        memset(mine, 0, n);                                     // the source may be reused
        CHECK(!gpushmem_barrier_all());
        CHECK(!gpushmem_getmem(seen, inbox + shift, n, me));
        size_t wrong = 0;
        for (size_t i = 0; i < n; i++)
            wrong += seen[i] != pattern(left, i + k);
        CHECK(wrong == 0);
        CHECK(!gpushmem_putmem(outbox, seen, n, me)); // into our own heap, and from there on
        CHECK(!gpushmem_barrier_all());
        CHECK(!gpushmem_putmem_nbi(inbox + shift, outbox, n, right));
        CHECK(!gpushmem_barrier_all());
        // a get into the heap: what we sent
        CHECK(!gpushmem_getmem(outbox, inbox + shift, n, right));
        CHECK(!gpushmem_getmem(mine, outbox, n, me));
        CHECK(!memcmp(mine, seen, n));
        CHECK(!gpushmem_barrier_all());
    }
    free(seen);
    free(mine);
    gpushmem_free(outbox);
    gpushmem_free(inbox);
}

static void test_words(int me, int n, int right, int left)
{
    uint64_t *word = gpushmem_calloc(4, sizeof *word);
    uint32_t *half = gpushmem_calloc(2, sizeof *half);
    gpushmem_uint64_p(word, (uint64_t)me + 100, right);
    CHECK(!gpushmem_uint64_wait_until(word, GPUSHMEM_CMP_EQ, (uint64_t)left + 100));
    CHECK(gpushmem_uint64_g(word, me) == (uint64_t)left + 100);
    CHECK(!gpushmem_barrier_all());
    for (int i = 0; i < 10; i++) { // everybody counts on PE 0
        gpushmem_uint64_atomic_add(word + 1, (uint64_t)me + 1, 0);
        gpushmem_uint32_atomic_fetch_inc(half, 0);
    }
    CHECK(!gpushmem_barrier_all());
    CHECK(gpushmem_uint64_atomic_fetch(word + 1, 0) == 10 * (uint64_t)n * ((uint64_t)n + 1) / 2);
    CHECK(gpushmem_uint32_atomic_fetch(half, 0) == 10 * (uint32_t)n);
    CHECK(!gpushmem_barrier_all());
    uint64_t before = gpushmem_uint64_atomic_compare_swap(word + 2, 0, 7, right);
    CHECK(before == 0);
    CHECK(gpushmem_uint64_atomic_compare_swap(word + 2, 0, 8, right) == 7);
    CHECK(gpushmem_uint64_atomic_swap(word + 2, 9, right) == 7);
    gpushmem_uint64_atomic_or(word + 2, 6, right);
    CHECK(gpushmem_uint64_atomic_fetch_and(word + 2, 12, right) == 15);
    CHECK(gpushmem_uint64_atomic_fetch_xor(word + 2, 1, right) == 12);
    gpushmem_uint64_atomic_set(word + 2, 77, right);
    uint64_t fetched = 0;
    gpushmem_uint64_atomic_fetch_add_nbi(&fetched, word + 2, 1, right);
    CHECK(!gpushmem_quiet());
    CHECK(fetched == 77);
    CHECK(!gpushmem_barrier_all());
    CHECK(gpushmem_uint64_g(word + 2, me) == 78);
    gpushmem_free(half);
    gpushmem_free(word);
}

static void test_signals(int me, int right, int left)
{
    enum { N = 100000 };
    uint64_t *signal = gpushmem_calloc(2, sizeof *signal);
    int *inbox = gpushmem_calloc(N, sizeof *inbox), *mine = malloc(N * sizeof *mine);
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < N; i++)
            mine[i] = me * 1000 + i + round;
        CHECK(!gpushmem_int_put_signal(inbox, mine, N, signal, 1, GPUSHMEM_SIGNAL_ADD, right));
        CHECK(gpushmem_signal_wait_until(signal, GPUSHMEM_CMP_GE, (uint64_t)round) >=
              (uint64_t)round);
        CHECK(gpushmem_int_g(inbox + N - 1, me) == left * 1000 + N - 1 + round);
        CHECK(gpushmem_int_g(inbox, me) == left * 1000 + round);
        CHECK(!gpushmem_barrier_all());
    }
    CHECK(!gpushmem_signal_op(signal + 1, 5, GPUSHMEM_SIGNAL_SET, right));
    CHECK(gpushmem_signal_wait_until(signal + 1, GPUSHMEM_CMP_EQ, 5) == 5);
    CHECK(gpushmem_signal_fetch(signal + 1) == 5);
    CHECK(!gpushmem_barrier_all());
    free(mine);
    gpushmem_free(inbox);
    gpushmem_free(signal);
}

static void test_strided(int me, int right, int left)
{
    short *grid = gpushmem_calloc(64, sizeof *grid);
    short column[16], seen[64];
    for (int i = 0; i < 16; i++)
        column[i] = (short)(me * 100 + i);
    CHECK(!gpushmem_short_iput(grid, column, 4, 1, 16, right));
    CHECK(!gpushmem_barrier_all());
    CHECK(!gpushmem_short_get(seen, grid, 64, me));
    for (int i = 0; i < 64; i++)
        CHECK(seen[i] == (i % 4 ? 0 : left * 100 + i / 4));
    gpushmem_free(grid);
}

// An address for the processor, or for the GPU whose memory the heap is: wherever kernels reach it.
static void test_addresses(int me, int right)
{
    uint64_t *word = gpushmem_calloc(2, sizeof *word);
    struct gpushmem_peer_info peer;
    CHECK(!gpushmem_peer_info(right, &peer));
    char *first = gpushmem_ptr(word, right), *second = gpushmem_ptr(word + 1, right);
    CHECK(!first == !(peer.device_direct || right == me));
    CHECK(!first == !second && (!first || second == first + sizeof *word));
    CHECK((first == (char *)word) == (right == me));
    gpushmem_free(word);
}

int main(void)
{
    if (gpushmem_init()) {
        fprintf(stderr, "init: %s\n", gpushmem_last_error());
        return 1;
    }
    int me = gpushmem_my_pe(), n = gpushmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    struct gpushmem_heap_info info;
    CHECK(!gpushmem_heap_info(&info));
    if (me == 0)
        printf("heap: %s, %s\n", info.kind, info.pages);
    test_copies(me, right, left);
    test_words(me, n, right, left);
    test_signals(me, right, left);
    test_strided(me, right, left);
    test_addresses(me, right);
    CHECK(!gpushmem_finalize());
    CHECK(!gpushmem_init()); // once more, with everything made anew
    CHECK(!gpushmem_barrier_all());
    CHECK(!gpushmem_finalize());
    return failures != 0;
}
