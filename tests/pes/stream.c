// SPDX-License-Identifier: BSD-3-Clause
// Operations of streams in a program without kernels: of the only stream there is, NULL, done at
// once; of every type and size.
#include "check.h"

enum { N = 5 };

static char *inbox, *outbox; // symmetric
static uint64_t *sig;
static int me, n_pes, right, left;

// Every PE sends to its right neighbour by put_signal and put, and fetches from its left one.
#define ROUND(LABEL, TYPE, BYTES)                                                                  \
    static void round_##LABEL(unsigned seed)                                                       \
    {                                                                                              \
        char expected[N * 16];                                                                     \
        TYPE *there = (TYPE *)(void *)inbox, *here = (TYPE *)(void *)outbox;                       \
        fill(outbox, N *(BYTES), seed + (unsigned)me);                                             \
        fill(expected, N *(BYTES), seed + (unsigned)left);                                         \
        CHECK_OK(gpushmem_barrier_all_on_stream(NULL));                                            \
        CHECK_OK(gpushmem_##LABEL##_signal_on_stream(there, here, N, sig, seed,                    \
                                                     GPUSHMEM_SIGNAL_SET, right, NULL));           \
        CHECK_OK(gpushmem_signal_wait_until_on_stream(sig, GPUSHMEM_CMP_EQ, seed, NULL));          \
        CHECK(!memcmp(inbox, expected, N * (BYTES)));                                              \
        CHECK_OK(gpushmem_sync_all_on_stream(NULL));                                               \
        memset(inbox, 0, N *(BYTES));                                                              \
        CHECK_OK(gpushmem_barrier_all_on_stream(NULL));                                            \
        CHECK_OK(gpushmem_##LABEL##_on_stream(there, here, N, right, NULL));                       \
        CHECK_OK(gpushmem_quiet_on_stream(NULL));                                                  \
        CHECK_OK(gpushmem_barrier_all_on_stream(NULL));                                            \
        CHECK(!memcmp(inbox, expected, N * (BYTES)));                                              \
    }
#define FETCH(LABEL, TYPE, BYTES)                                                                  \
    static void fetch_##LABEL(unsigned seed)                                                       \
    {                                                                                              \
        char expected[N * 16], got[N * 16] = {0};                                                  \
        fill(expected, N *(BYTES), seed + (unsigned)left);                                         \
        CHECK_OK(gpushmem_##LABEL##_on_stream((TYPE *)(void *)got, (TYPE *)(void *)outbox, N,      \
                                              left, NULL));                                        \
        CHECK(!memcmp(got, expected, N * (BYTES)));                                                \
        CHECK_OK(gpushmem_barrier_all_on_stream(NULL));                                            \
    }
#define BY_TYPE(NAME, TYPE)                                                                        \
    ROUND(NAME##_put, TYPE, sizeof(TYPE)) FETCH(NAME##_get, TYPE, sizeof(TYPE))
#define BY_SIZE(BITS) ROUND(put##BITS, void, BITS / 8) FETCH(get##BITS, void, BITS / 8)
GPUSHMEM_RMA_TYPES(BY_TYPE)
GPUSHMEM_RMA_SIZES(BY_SIZE)
ROUND(putmem, void, 1)
FETCH(getmem, void, 1)

static void all_types(void)
{
    unsigned seed = 0;
#define RUN_TYPE(NAME, TYPE) round_##NAME##_put(++seed), fetch_##NAME##_get(seed);
#define RUN_SIZE(BITS)       round_put##BITS(++seed), fetch_get##BITS(seed);
    GPUSHMEM_RMA_TYPES(RUN_TYPE)
    GPUSHMEM_RMA_SIZES(RUN_SIZE)
    round_putmem(++seed), fetch_getmem(seed);
}

int main(void)
{
    CHECK(gpushmem_putmem_on_stream(NULL, NULL, 0, 0, NULL) == GPUSHMEM_ERR_STATE);
    CHECK(gpushmem_barrier_all_on_stream(NULL) == GPUSHMEM_ERR_STATE);
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    right = (me + 1) % n_pes;
    left = (me + n_pes - 1) % n_pes;
    inbox = gpushmem_calloc(N, 16);
    outbox = gpushmem_calloc(N, 16);
    sig = gpushmem_calloc(1, sizeof *sig);
    all_types();
    gpushmem_stream_t foreign = (gpushmem_stream_t)(void *)&me;
    CHECK(gpushmem_putmem_on_stream(inbox, outbox, 1, me, foreign) == GPUSHMEM_ERR_UNSUPPORTED);
    CHECK(strstr(gpushmem_last_error(),
                 "gpushmem_putmem_on_stream: the symmetric heap is in host memory"));
    gpushmem_free(sig);
    gpushmem_free(outbox);
    gpushmem_free(inbox);
    CHECK_OK(gpushmem_finalize());
    CHECK(gpushmem_quiet_on_stream(NULL) == GPUSHMEM_ERR_STATE);
    return 0;
}
