// SPDX-License-Identifier: BSD-3-Clause
// Barriers, fence and quiet under stress: nobody leaves early, nothing is seen too late.
#include "check.h"

static int me, n_pes;

// Each PE counts its barriers in everybody's memory: after a barrier all counts are there, and none
// is ahead by more than the one barrier a fast PE may already have entered.
static void barriers(int rounds)
{
    uint32_t *counts = gpushmem_calloc((size_t)n_pes, sizeof *counts);
    CHECK(counts != NULL);
    for (uint32_t i = 1; i <= (uint32_t)rounds; ++i) {
        for (int pe = 0; pe < n_pes; ++pe)
            CHECK_OK(gpushmem_uint32_p(&counts[me], i, pe));
        CHECK_OK(gpushmem_barrier_all());
        for (int pe = 0; pe < n_pes; ++pe) {
            uint32_t count = gpushmem_uint32_g(&counts[pe], me);
            CHECK_THAT(count == i || count == i + 1, "barrier %u: PE %d counts %u", i, pe, count);
        }
    }
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_free(counts));
}

// sync_all: all have arrived. Back to back, as fast as they come.
static void syncs(int rounds)
{
    uint64_t *arrivals = gpushmem_calloc(1, sizeof *arrivals);
    CHECK(arrivals != NULL);
    for (uint64_t i = 1; i <= (uint64_t)rounds; ++i) {
        if (i % 100 == 0) {
            (void)gpushmem_uint64_atomic_fetch_inc(arrivals, 0);
            CHECK_OK(gpushmem_sync_all());
            CHECK(gpushmem_uint64_atomic_fetch(arrivals, 0) >= i / 100 * (uint64_t)n_pes);
        }
        CHECK_OK(gpushmem_sync_all());
    }
    CHECK_OK(gpushmem_free(arrivals));
}

// fence: a block, then its number, and over again; the reader never finds a block older than the
// number.
static void fences(int rounds)
{
    enum { WORDS = 9 };
    uint32_t *number = gpushmem_calloc(2, sizeof *number);
    uint32_t *block = gpushmem_calloc(WORDS, sizeof *block);
    CHECK(number != NULL && block != NULL);
    uint32_t *echo = number + 1, words[WORDS];
    int right = (me + 1) % n_pes, left = (me + n_pes - 1) % n_pes;
    for (uint32_t i = 1; i <= (uint32_t)rounds; ++i) {
        for (int k = 0; k < WORDS; ++k)
            words[k] = i;
        CHECK_OK(gpushmem_uint32_put(block, words, WORDS, right));
        CHECK_OK(i % 2 ? gpushmem_fence() : gpushmem_pe_fence(right));
        if (i % 4 < 2) // a flag may be put or set by an atomic: fence orders both
            CHECK_OK(gpushmem_uint32_p(number, i, right));
        else
            CHECK_OK(gpushmem_uint32_atomic_set(number, i, right));
        CHECK_OK(gpushmem_uint32_wait_until(number, GPUSHMEM_CMP_GE, i));
        for (int k = 0; k < WORDS; ++k)
            CHECK_THAT(block[k] == i, "round %u: word %d is %u", i, k, block[k]);
        CHECK_OK(gpushmem_uint32_p(echo, i, left));
        CHECK_OK(gpushmem_uint32_wait_until(echo, GPUSHMEM_CMP_GE, i));
    }
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_free(block));
    CHECK_OK(gpushmem_free(number));
}

// fence covers an atomic followed by a put, too: the two may take different ways.
static void fence_after_atomic(int rounds)
{
    uint64_t *words = gpushmem_calloc(3, sizeof *words);
    CHECK(words != NULL);
    uint64_t *sum = words, *flag = words + 1, *echo = words + 2;
    int right = (me + 1) % n_pes, left = (me + n_pes - 1) % n_pes;
    for (uint64_t i = 1; i <= (uint64_t)rounds; ++i) {
        CHECK_OK(gpushmem_uint64_atomic_add(sum, 3, right));
        CHECK_OK(gpushmem_fence());
        CHECK_OK(gpushmem_uint64_p(flag, i, right));
        CHECK_OK(gpushmem_uint64_wait_until(flag, GPUSHMEM_CMP_GE, i));
        CHECK(gpushmem_uint64_atomic_fetch(sum, me) == 3 * i);
        CHECK_OK(gpushmem_uint64_p(echo, i, left));
        CHECK_OK(gpushmem_uint64_wait_until(echo, GPUSHMEM_CMP_GE, i));
    }
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_free(words));
}

// quiet is completion, also for a third PE: of two PEs that put, quiet, then get what the other
// put, one at least sees it (store buffering would let both miss).
static void quiets(int rounds)
{
    uint32_t *flags = gpushmem_calloc(2, sizeof *flags);
    uint32_t *seen = gpushmem_calloc(2, sizeof *seen);
    CHECK(flags != NULL && seen != NULL);
    int owner = n_pes - 1;
    for (uint32_t i = 1; i <= (uint32_t)rounds; ++i) {
        CHECK_OK(gpushmem_sync_all());
        if (me < 2) {
            CHECK_OK(gpushmem_uint32_p(&flags[me], i, owner));
            CHECK_OK(i % 2 ? gpushmem_quiet() : gpushmem_pe_quiet(&owner, 1));
            CHECK_OK(gpushmem_uint32_p(&seen[me], gpushmem_uint32_g(&flags[1 - me], owner), 0));
        }
        CHECK_OK(gpushmem_barrier_all());
        if (me == 0 && n_pes > 1)
            CHECK_THAT(seen[0] == i || seen[1] == i, "round %u: both missed the other's put", i);
    }
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_free(seen));
    CHECK_OK(gpushmem_free(flags));
}

// Stores through gpushmem_ptr count as puts for fence, quiet and barriers.
static void pointers(void)
{
    long *word = gpushmem_calloc((size_t)n_pes, sizeof *word);
    CHECK(word != NULL);
    for (int pe = 0; pe < n_pes; ++pe) {
        long *there = gpushmem_ptr(word + me, pe);
        if (there != NULL)
            *there = me + 100;
        else
            CHECK_OK(gpushmem_long_p(word + me, me + 100, pe));
    }
    CHECK_OK(gpushmem_barrier_all());
    for (int pe = 0; pe < n_pes; ++pe)
        CHECK(word[pe] == pe + 100);
    CHECK(gpushmem_ptr(word, me) == (void *)word);
    CHECK_OK(gpushmem_free(word));
}

int main(int argc, char **argv)
{
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    int rounds = check_rounds(argc, argv, 100000);
    // with more PEs than cores a barrier costs system calls
    syncs(n_pes > 3 ? rounds / 10 : rounds);
    barriers(rounds / 20);
    fences(rounds / 20);
    fence_after_atomic(rounds / 20);
    quiets(rounds / 20);
    pointers();
    CHECK_OK(gpushmem_pe_quiet(NULL, 0));
    CHECK_OK(gpushmem_finalize());
    return 0;
}
