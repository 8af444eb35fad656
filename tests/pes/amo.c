// SPDX-License-Identifier: BSD-3-Clause
// Every atomic over every type, with and without a context, towards every PE; then all PEs hammer
// the same words.
#include "check.h"

static char *area; // one 64-byte line on each PE for each PE, and one more that all share
static int me, n_pes;

#define PLAIN(F, ...) gpushmem_##F(__VA_ARGS__)
#define CTX(F, ...)   gpushmem_ctx_##F(ctx, __VA_ARGS__)

// The word sits between two others, which must never change: 32-bit results are not written as 64
// bits.
#define BEGIN(TYPE)                                                                                \
    TYPE *word = (TYPE *)(void *)(area + 64 * me) + 1;                                             \
    TYPE around[3], got = 0;                                                                       \
    fill(around, sizeof around, 77);                                                               \
    CHECK_OK(gpushmem_putmem(word - 1, around, sizeof around, pe));                                \
    CHECK_OK(gpushmem_quiet());
#define END(TYPE)                                                                                  \
    TYPE now[3];                                                                                   \
    CHECK_OK(gpushmem_ctx_quiet(ctx));                                                             \
    CHECK_OK(gpushmem_getmem(now, word - 1, sizeof now, pe));                                      \
    CHECK(memcmp(&now[0], &around[0], sizeof(TYPE)) == 0 &&                                        \
          memcmp(&now[2], &around[2], sizeof(TYPE)) == 0);
#define EXPECT(expected) CHECK_THAT(got == (expected), "towards PE %d", pe)
#define FINISH()         CHECK_OK(gpushmem_ctx_quiet(ctx))

#define DEFINE_EXTENDED(NAME, TYPE, FORM)                                                          \
    static void extended_##NAME##_##FORM(gpushmem_ctx_t ctx, int pe)                               \
    {                                                                                              \
        BEGIN(TYPE)                                                                                \
        CHECK_OK(FORM(NAME##_atomic_set, word, 5, pe));                                            \
        FINISH();                                                                                  \
        got = FORM(NAME##_atomic_fetch, word, pe);                                                 \
        EXPECT(5);                                                                                 \
        got = FORM(NAME##_atomic_swap, word, 9, pe);                                               \
        EXPECT(5);                                                                                 \
        CHECK_OK(FORM(NAME##_atomic_swap_nbi, &got, word, 11, pe));                                \
        FINISH();                                                                                  \
        EXPECT(9);                                                                                 \
        CHECK_OK(FORM(NAME##_atomic_fetch_nbi, &got, word, pe));                                   \
        FINISH();                                                                                  \
        EXPECT(11);                                                                                \
        END(TYPE)                                                                                  \
    }
#define DEFINE_AMO(NAME, TYPE, FORM)                                                               \
    static void amo_##NAME##_##FORM(gpushmem_ctx_t ctx, int pe)                                    \
    {                                                                                              \
        BEGIN(TYPE)                                                                                \
        const TYPE high = (TYPE)((TYPE)1 << (8 * sizeof(TYPE) - 2));                               \
        CHECK_OK(FORM(NAME##_atomic_set, word, (TYPE)(high - 1), pe));                             \
        FINISH();                                                                                  \
        got = FORM(NAME##_atomic_fetch_inc, word, pe);                                             \
        EXPECT((TYPE)(high - 1));                                                                  \
        got = FORM(NAME##_atomic_fetch_add, word, 4, pe);                                          \
        EXPECT(high);                                                                              \
        CHECK_OK(FORM(NAME##_atomic_inc, word, pe));                                               \
        CHECK_OK(FORM(NAME##_atomic_add, word, (TYPE)-3, pe));                                     \
        FINISH();                                                                                  \
        got = FORM(NAME##_atomic_compare_swap, word, high, 1, pe); /* it is high + 2 */            \
        EXPECT((TYPE)(high + 2));                                                                  \
        got = FORM(NAME##_atomic_compare_swap, word, (TYPE)(high + 2), 1, pe);                     \
        EXPECT((TYPE)(high + 2));                                                                  \
        CHECK_OK(FORM(NAME##_atomic_fetch_inc_nbi, &got, word, pe));                               \
        FINISH();                                                                                  \
        EXPECT(1);                                                                                 \
        CHECK_OK(FORM(NAME##_atomic_fetch_add_nbi, &got, word, 40, pe));                           \
        FINISH();                                                                                  \
        EXPECT(2);                                                                                 \
        CHECK_OK(FORM(NAME##_atomic_compare_swap_nbi, &got, word, 42, 7, pe));                     \
        FINISH();                                                                                  \
        EXPECT(42);                                                                                \
        got = FORM(NAME##_atomic_fetch, word, pe);                                                 \
        EXPECT(7);                                                                                 \
        END(TYPE)                                                                                  \
    }
#define DEFINE_BITWISE(NAME, TYPE, FORM)                                                           \
    static void bitwise_##NAME##_##FORM(gpushmem_ctx_t ctx, int pe)                                \
    {                                                                                              \
        BEGIN(TYPE)                                                                                \
        CHECK_OK(FORM(NAME##_atomic_set, word, 0xf0, pe));                                         \
        FINISH();                                                                                  \
        got = FORM(NAME##_atomic_fetch_and, word, 0x3c, pe);                                       \
        EXPECT(0xf0);                                                                              \
        got = FORM(NAME##_atomic_fetch_or, word, 0x03, pe);                                        \
        EXPECT(0x30);                                                                              \
        got = FORM(NAME##_atomic_fetch_xor, word, 0x0f, pe);                                       \
        EXPECT(0x33);                                                                              \
        CHECK_OK(FORM(NAME##_atomic_and, word, 0x1f, pe)); /* 0x3c -> 0x1c */                      \
        FINISH();                                                                                  \
        CHECK_OK(FORM(NAME##_atomic_or, word, 0x40, pe)); /* 0x5c */                               \
        FINISH();                                                                                  \
        CHECK_OK(FORM(NAME##_atomic_xor, word, 0x50, pe)); /* 0x0c */                              \
        FINISH();                                                                                  \
        CHECK_OK(FORM(NAME##_atomic_fetch_and_nbi, &got, word, 0x06, pe));                         \
        FINISH();                                                                                  \
        EXPECT(0x0c);                                                                              \
        CHECK_OK(FORM(NAME##_atomic_fetch_or_nbi, &got, word, 0x01, pe));                          \
        FINISH();                                                                                  \
        EXPECT(0x04);                                                                              \
        CHECK_OK(FORM(NAME##_atomic_fetch_xor_nbi, &got, word, 0x07, pe));                         \
        FINISH();                                                                                  \
        EXPECT(0x05);                                                                              \
        got = FORM(NAME##_atomic_fetch, word, pe);                                                 \
        EXPECT(0x02);                                                                              \
        END(TYPE)                                                                                  \
    }
#define BOTH(DEFINE, NAME, TYPE)                                                                   \
    DEFINE(NAME, TYPE, PLAIN)                                                                      \
    DEFINE(NAME, TYPE, CTX)
#define EXTENDED(NAME, TYPE) BOTH(DEFINE_EXTENDED, NAME, TYPE)
#define AMO(NAME, TYPE)      BOTH(DEFINE_AMO, NAME, TYPE)
#define BITWISE(NAME, TYPE)  BOTH(DEFINE_BITWISE, NAME, TYPE)
GPUSHMEM_AMO_EXTENDED_TYPES(EXTENDED)
GPUSHMEM_AMO_TYPES(AMO)
GPUSHMEM_AMO_BITWISE_TYPES(BITWISE)

// Floating point is moved bit by bit: a signalling NaN and a negative zero arrive as they were.
static void bit_exact(int pe)
{
    double *word = (double *)(void *)(area + 64 * me);
    const uint64_t patterns[] = {UINT64_C(0x7ff4000000000001), UINT64_C(0x8000000000000000), 1};
    for (size_t i = 0; i < 3; ++i) {
        double value, got;
        memcpy(&value, &patterns[i], sizeof value);
        CHECK_OK(gpushmem_double_atomic_set(word, value, pe));
        CHECK_OK(gpushmem_quiet());
        got = gpushmem_double_atomic_fetch(word, pe);
        CHECK(memcmp(&got, &patterns[i], sizeof got) == 0);
    }
}

// All PEs update the words of every PE at once: nothing is lost, and no ticket is given twice.
static void hammer(int rounds)
{
    struct shared {
        uint64_t adds, ticket;
        uint32_t small, small_xor;
        int64_t swaps;
        uint64_t lock, guarded;
    } *shared = gpushmem_calloc(1, sizeof *shared);
    char *taken = calloc((size_t)rounds * (size_t)n_pes, 1);
    CHECK(shared != NULL && taken != NULL);
    for (int i = 0; i < rounds; ++i) {
        for (int pe = 0; pe < n_pes; ++pe) {
            CHECK_OK(gpushmem_uint64_atomic_add(&shared->adds, (uint64_t)me + 1, pe));
            CHECK_OK(gpushmem_uint32_atomic_inc(&shared->small, pe));
            CHECK_OK(gpushmem_uint32_atomic_xor(&shared->small_xor, 1u << me, pe));
        }
        uint64_t ticket = gpushmem_uint64_atomic_fetch_inc(&shared->ticket, 0);
        CHECK(ticket < (uint64_t)rounds * (uint64_t)n_pes && taken[ticket] == 0);
        taken[ticket] = 1;
        int64_t old = gpushmem_int64_atomic_fetch(&shared->swaps, 0);
        for (int64_t found;
             (found = gpushmem_int64_atomic_compare_swap(&shared->swaps, old, old + 1, 0)) != old;)
            old = found;
        if (i % 16 == 0) { // a spin lock around a plain word
            while (gpushmem_uint64_atomic_swap(&shared->lock, 1, 0) != 0)
                ;
            uint64_t guarded = gpushmem_uint64_g(&shared->guarded, 0);
            CHECK_OK(gpushmem_uint64_p(&shared->guarded, guarded + 1, 0));
            CHECK_OK(gpushmem_quiet());
            CHECK_OK(gpushmem_uint64_atomic_set(&shared->lock, 0, 0));
            CHECK_OK(gpushmem_quiet());
        }
    }
    CHECK_OK(gpushmem_barrier_all());
    uint64_t all = (uint64_t)n_pes * (uint64_t)rounds;
    uint64_t weight = (uint64_t)n_pes * (uint64_t)(n_pes + 1) / 2;
    CHECK(gpushmem_uint64_atomic_fetch(&shared->adds, me) == weight * (uint64_t)rounds);
    CHECK(gpushmem_uint32_atomic_fetch(&shared->small, me) == all);
    CHECK(gpushmem_uint32_atomic_fetch(&shared->small_xor, me) ==
          (rounds % 2 ? (1u << n_pes) - 1 : 0));
    CHECK(gpushmem_uint64_atomic_fetch(&shared->ticket, 0) == all);
    CHECK(gpushmem_int64_atomic_fetch(&shared->swaps, 0) == (int64_t)all);
    CHECK(gpushmem_uint64_g(&shared->guarded, 0) ==
          (uint64_t)n_pes * (uint64_t)((rounds + 15) / 16));
    // As many tickets as rounds, all different, and below n_pes x rounds on every PE: each was
    // taken once.
    uint64_t mine = 0;
    for (uint64_t i = 0; i < all; ++i)
        mine += (uint64_t)taken[i];
    CHECK(mine == (uint64_t)rounds);
    free(taken);
    CHECK_OK(gpushmem_free(shared));
}

// Atomics on 4 bytes leave the 4 bytes beside them alone, which their owner stores to and another
// PE puts into meanwhile. A fetch leaves its own word alone.
static void neighbours(int rounds)
{
    struct words {
        uint32_t counted, stored, put, summed;
        uint64_t fetched;
    } *words = gpushmem_calloc(1, sizeof *words);
    int right = (me + 1) % n_pes;
    CHECK(words != NULL);
    volatile uint32_t *stored = &words->stored;
    for (uint32_t i = 1; i <= (uint32_t)rounds; ++i) {
        *stored = i;
        CHECK_OK(gpushmem_uint32_p(&words->put, i, right));
        CHECK_OK(gpushmem_uint64_p(&words->fetched, i, right));
        for (int pe = 0; pe < n_pes; ++pe) {
            CHECK_OK(gpushmem_uint32_atomic_inc(&words->counted, pe));
            CHECK_OK(gpushmem_uint32_atomic_add(&words->summed, 2, pe));
            CHECK(gpushmem_uint64_atomic_fetch(&words->fetched, pe) <= (uint64_t)rounds);
        }
        CHECK_THAT(*stored == i, "round %u: what was stored to the upper half became %u", i,
                   *stored);
        CHECK_OK(gpushmem_quiet());
        uint32_t put = gpushmem_uint32_g(&words->put, right);
        CHECK_THAT(put == i, "round %u: what was put into the lower half became %u", i, put);
        uint64_t fetched = gpushmem_uint64_g(&words->fetched, right);
        CHECK_THAT(fetched == i, "round %u: what was put where others fetch became %" PRIu64, i,
                   fetched);
    }
    CHECK_OK(gpushmem_barrier_all());
    CHECK(gpushmem_uint32_atomic_fetch(&words->counted, me) == (uint32_t)(rounds * n_pes));
    CHECK(gpushmem_uint32_atomic_fetch(&words->summed, me) == 2 * (uint32_t)(rounds * n_pes));
    CHECK_OK(gpushmem_free(words));
}

int main(int argc, char **argv)
{
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    area = gpushmem_calloc((size_t)n_pes, 64);
    CHECK(area != NULL);
    gpushmem_ctx_t ctx;
    CHECK_OK(gpushmem_ctx_create(0, &ctx));
    for (int k = 0; k < n_pes; ++k) {
        int pe = (me + k) % n_pes;
#define RUN(GROUP, NAME)                                                                           \
    GROUP##_##NAME##_PLAIN(GPUSHMEM_CTX_DEFAULT, pe);                                              \
    GROUP##_##NAME##_CTX(ctx, pe);
#define RUN_EXTENDED(NAME, TYPE) RUN(extended, NAME)
#define RUN_AMO(NAME, TYPE)      RUN(amo, NAME)
#define RUN_BITWISE(NAME, TYPE)  RUN(bitwise, NAME)
        GPUSHMEM_AMO_EXTENDED_TYPES(RUN_EXTENDED)
        GPUSHMEM_AMO_TYPES(RUN_AMO)
        GPUSHMEM_AMO_BITWISE_TYPES(RUN_BITWISE)
        bit_exact(pe);
    }
    hammer(check_rounds(argc, argv, 3001));
    neighbours(check_rounds(argc, argv, 3001));
    CHECK_OK(gpushmem_ctx_destroy(ctx));
    CHECK_OK(gpushmem_free(area));
    CHECK_OK(gpushmem_finalize());
    return 0;
}
