// SPDX-License-Identifier: BSD-3-Clause
// put_signal and signal_op, of every type and size, with and without a context; ordering of data
// and signal under stress.
#include "check.h"

enum { N = 17, SLOT = N * 16 };

static char *area;        // one slot on each PE for each PE
static uint64_t *signals; // one signal on each PE for each PE
static uint64_t counts[64];
static int me, n_pes;

#define PLAIN(F, ...) gpushmem_##F(__VA_ARGS__)
#define CTX(F, ...)   gpushmem_ctx_##F(ctx, __VA_ARGS__)

// Sends to the right neighbour's slot and checks what the left neighbour sends here in the same
// round.
#define CHECK_ROUND(T, CALL)                                                                       \
    fill(source, N * sizeof(T), seed + (unsigned)me);                                              \
    CHECK_OK(CALL);                                                                                \
    CHECK(gpushmem_signal_wait_until(&signals[left], GPUSHMEM_CMP_GE, value) == value);            \
    fill(expected, N * sizeof(T), seed + (unsigned)left);                                          \
    CHECK_THAT(memcmp(area + SLOT * left, (const char *)expected, N * sizeof(T)) == 0,             \
               "from PE %d", left);                                                                \
    CHECK(gpushmem_signal_fetch(&signals[left]) == value);                                         \
    CHECK_OK(gpushmem_barrier_all());                                                              \
    CHECK_OK(gpushmem_ctx_quiet(ctx));                                                             \
    ++seed;

#define DEFINE(LABEL, T, FORM, SEND)                                                               \
    static void LABEL##_##FORM(gpushmem_ctx_t ctx, int distance)                                   \
    {                                                                                              \
        static unsigned seed = sizeof(T);                                                          \
        int right = (me + distance) % n_pes, left = (me + n_pes - distance) % n_pes;               \
        T source[N], expected[N], *there = (T *)(void *)(area + SLOT * me);                        \
        uint64_t *sig = &signals[me], value = ++counts[distance];                                  \
        CHECK_ROUND(T,                                                                             \
                    FORM(SEND##_signal, there, source, N, sig, value, GPUSHMEM_SIGNAL_SET, right)) \
        value = ++counts[distance];                                                                \
        CHECK_ROUND(T, FORM(SEND##_signal, there, source, N, sig, 1, GPUSHMEM_SIGNAL_ADD, right))  \
        value = ++counts[distance];                                                                \
        CHECK_ROUND(T,                                                                             \
                    FORM(SEND##_signal_nbi, there, source, N, sig, 1, GPUSHMEM_SIGNAL_ADD, right)) \
        value = ++counts[distance]; /* the signal alone */                                         \
        --seed;                                                                                    \
        CHECK_ROUND(                                                                               \
            T, FORM(SEND##_signal_nbi, NULL, NULL, 0, sig, value, GPUSHMEM_SIGNAL_SET, right))     \
        value = ++counts[distance];                                                                \
        --seed;                                                                                    \
        CHECK_ROUND(T, FORM(signal_op, sig, 1, GPUSHMEM_SIGNAL_ADD, right))                        \
        value = ++counts[distance];                                                                \
        --seed;                                                                                    \
        CHECK_ROUND(T, FORM(signal_op, sig, value, GPUSHMEM_SIGNAL_SET, right))                    \
    }
#define BOTH(LABEL, T, SEND)                                                                       \
    DEFINE(LABEL, T, PLAIN, SEND)                                                                  \
    DEFINE(LABEL, T, CTX, SEND)
#define DEFINE_TYPE(NAME, TYPE) BOTH(NAME, TYPE, NAME##_put)
GPUSHMEM_RMA_TYPES(DEFINE_TYPE)

typedef struct element128 {
    uint64_t half[2];
} element128;
BOTH(size8, uint8_t, put8)
BOTH(size16, uint16_t, put16)
BOTH(size32, uint32_t, put32)
BOTH(size64, uint64_t, put64)
BOTH(size128, element128, put128)
BOTH(mem, char, putmem)

// A stream of messages over a window of buffers, each acknowledged by a signal: whoever sees a
// signal sees its data.
static void stream(int rounds)
{
    enum { WORDS = 600, WINDOW = 4 };
    uint64_t(*box)[WORDS] = gpushmem_calloc(WINDOW, sizeof *box);
    uint64_t *arrived = gpushmem_calloc(2, sizeof *arrived);
    uint64_t *acknowledged = arrived + 1;
    static uint64_t source[WINDOW][WORDS];
    CHECK(box != NULL && arrived != NULL);
    int right = (me + 1) % n_pes, left = (me + n_pes - 1) % n_pes;
    for (uint64_t i = 0; i < (uint64_t)rounds; ++i) {
        uint64_t *data = source[i % WINDOW];
        size_t words = (size_t)(i * 37 % WORDS) + 1;
        if (i >= WINDOW) {
            CHECK(gpushmem_signal_wait_until(acknowledged, GPUSHMEM_CMP_GT, i - WINDOW) >
                  i - WINDOW);
            CHECK_OK(gpushmem_pe_quiet(&right, 1)); // the source is free again
        }
        for (size_t k = 0; k < words; ++k)
            data[k] = i * 1000003 + k;
        CHECK_OK(gpushmem_uint64_put_signal_nbi(box[i % WINDOW], data, words, arrived, 1,
                                                GPUSHMEM_SIGNAL_ADD, right));
        CHECK(gpushmem_signal_wait_until(arrived, GPUSHMEM_CMP_GT, i) > i);
        for (size_t k = 0; k < words; ++k)
            CHECK_THAT(box[i % WINDOW][k] == i * 1000003 + k, "message %" PRIu64 " word %zu", i, k);
        CHECK_OK(gpushmem_signal_op(acknowledged, i + 1, GPUSHMEM_SIGNAL_SET, left));
    }
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_free(arrived));
    CHECK_OK(gpushmem_free(box));
}

// Tells the script that waits for it that this PE and those that it has met in allocations are at
// work: tests/network/ofi/apart.sh does something to their links then.
static void tell_begun(void)
{
    const char *name = getenv("APART_BEGUN");
    FILE *pipe = name ? fopen(name, "we") : NULL;
    CHECK(!name || (pipe && fprintf(pipe, "PE %d\n", me) > 0 && fclose(pipe) == 0));
}

int main(int argc, char **argv)
{
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    area = gpushmem_calloc((size_t)n_pes, SLOT);
    signals = gpushmem_calloc((size_t)n_pes, sizeof *signals);
    CHECK(area != NULL && signals != NULL);
    tell_begun();
    gpushmem_ctx_t ctx;
    CHECK_OK(gpushmem_ctx_create(0, &ctx));
    for (int distance = 0; distance < n_pes && distance < 2; ++distance) {
#define RUN(LABEL)                                                                                 \
    LABEL##_PLAIN(GPUSHMEM_CTX_DEFAULT, distance);                                                 \
    LABEL##_CTX(ctx, distance);
#define RUN_TYPE(NAME, TYPE) RUN(NAME)
        GPUSHMEM_RMA_TYPES(RUN_TYPE)
        RUN(size8)
        RUN(size16)
        RUN(size32)
        RUN(size64)
        RUN(size128)
        RUN(mem)
    }
    stream(check_rounds(argc, argv, 20000));
    CHECK_OK(gpushmem_ctx_destroy(ctx));
    CHECK_OK(gpushmem_free(signals));
    CHECK_OK(gpushmem_free(area));
    CHECK_OK(gpushmem_finalize());
    return 0;
}
