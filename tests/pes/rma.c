// SPDX-License-Identifier: BSD-3-Clause
// Every put, get, p, g, iput and iget, of every type and size, with and without a context, towards
// every PE.
#include "check.h"

enum { N = 33, SLOT = N * 16 + 64 };

static char *area; // one slot on each PE for each PE: PE i alone writes to slot i
static int me, n_pes;

static void *slot(void)
{
    return area + (size_t)me * SLOT;
}

// The two forms of each function.
#define PLAIN(F, ...) gpushmem_##F(__VA_ARGS__)
#define CTX(F, ...)   gpushmem_ctx_##F(ctx, __VA_ARGS__)
#define SAME(a, b, n) CHECK_THAT(memcmp(a, b, n) == 0, "towards PE %d", pe)

// Contiguous moves: F(put), F(get) and so on name the functions. T is the element's type.
#define CHECK_MOVES(T, FORM, PUT, GET)                                                             \
    fill(source, N * sizeof(T), seed++);                                                           \
    CHECK_OK(FORM(PUT, there, source, N, pe));                                                     \
    CHECK_OK(gpushmem_ctx_quiet(ctx));                                                             \
    CHECK_OK(FORM(GET, back, there, N, pe));                                                       \
    SAME(back, source, N * sizeof(T));                                                             \
    fill(source, N * sizeof(T), seed++);                                                           \
    CHECK_OK(FORM(PUT##_nbi, there, source, N, pe));                                               \
    CHECK_OK(gpushmem_ctx_quiet(ctx));                                                             \
    CHECK_OK(FORM(GET##_nbi, back, there, N, pe));                                                 \
    CHECK_OK(gpushmem_ctx_quiet(ctx));                                                             \
    SAME(back, source, N * sizeof(T));                                                             \
    CHECK_OK(FORM(PUT, NULL, NULL, 0, pe));                                                        \
    CHECK_OK(FORM(GET, NULL, NULL, 0, pe));                                                        \
    CHECK_OK(FORM(PUT##_nbi, there, NULL, 0, pe));                                                 \
    CHECK_OK(FORM(GET##_nbi, NULL, there, 0, pe));

// Every third element there is every second one here; what lies between must not change.
#define CHECK_STRIDES(T, FORM, IPUT, IGET, PUT, GET)                                               \
    fill(expected, N * sizeof(T), seed++);                                                         \
    fill(source, N * sizeof(T), seed++);                                                           \
    CHECK_OK(FORM(PUT, there, expected, N, pe));                                                   \
    CHECK_OK(gpushmem_ctx_fence(ctx));                                                             \
    CHECK_OK(FORM(IPUT, there, source, 3, 2, 11, pe));                                             \
    CHECK_OK(gpushmem_ctx_quiet(ctx));                                                             \
    for (int i = 0; i < 11; ++i)                                                                   \
        expected[3 * i] = source[2 * i];                                                           \
    CHECK_OK(FORM(GET, back, there, N, pe));                                                       \
    SAME(back, expected, N * sizeof(T));                                                           \
    fill(back, N * sizeof(T), seed);                                                               \
    fill(expected, N * sizeof(T), seed++);                                                         \
    for (int i = 0; i < 11; ++i)                                                                   \
        expected[2 * i] = source[2 * i];                                                           \
    CHECK_OK(FORM(IGET, back, there, 2, 3, 11, pe));                                               \
    SAME(back, expected, N * sizeof(T));                                                           \
    CHECK_OK(FORM(IPUT, NULL, NULL, 1, 1, 0, pe));                                                 \
    CHECK_OK(FORM(IGET, NULL, NULL, 1, 1, 0, pe));

#define CHECK_SINGLES(T, FORM, P, G, GET)                                                          \
    CHECK_OK(FORM(GET, expected, there, N, pe));                                                   \
    CHECK_OK(FORM(P, there + 5, source[1], pe));                                                   \
    CHECK_OK(gpushmem_ctx_quiet(ctx));                                                             \
    expected[5] = source[1];                                                                       \
    back[0] = FORM(G, there + 5, pe);                                                              \
    SAME(back, source + 1, sizeof(T));                                                             \
    CHECK_OK(FORM(GET, back, there, N, pe));                                                       \
    SAME(back, expected, N * sizeof(T));

#define DEFINE_FORM(NAME, TYPE, FORM)                                                              \
    static void NAME##_##FORM(gpushmem_ctx_t ctx, int pe)                                          \
    {                                                                                              \
        static unsigned seed = sizeof(TYPE);                                                       \
        TYPE source[N], back[N], expected[N], *there = slot();                                     \
        CHECK_MOVES(TYPE, FORM, NAME##_put, NAME##_get)                                            \
        CHECK_STRIDES(TYPE, FORM, NAME##_iput, NAME##_iget, NAME##_put, NAME##_get)                \
        CHECK_SINGLES(TYPE, FORM, NAME##_p, NAME##_g, NAME##_get)                                  \
    }
#define DEFINE_TYPE(NAME, TYPE)                                                                    \
    DEFINE_FORM(NAME, TYPE, PLAIN)                                                                 \
    DEFINE_FORM(NAME, TYPE, CTX)
GPUSHMEM_RMA_TYPES(DEFINE_TYPE)

typedef struct element128 {
    uint64_t half[2];
} element128;
typedef uint8_t element8;
typedef uint16_t element16;
typedef uint32_t element32;
typedef uint64_t element64;

#define DEFINE_SIZE_FORM(BITS, FORM)                                                               \
    static void size##BITS##_##FORM(gpushmem_ctx_t ctx, int pe)                                    \
    {                                                                                              \
        static unsigned seed = BITS;                                                               \
        element##BITS source[N], back[N], expected[N], *there = slot();                            \
        CHECK_MOVES_SIZED(element##BITS, FORM, BITS)                                               \
        CHECK_STRIDES(element##BITS, FORM, iput##BITS, iget##BITS, put##BITS, get##BITS)           \
    }
#define CHECK_MOVES_SIZED(T, FORM, BITS) CHECK_MOVES(T, FORM, put##BITS, get##BITS)
#define DEFINE_SIZE(BITS)                                                                          \
    DEFINE_SIZE_FORM(BITS, PLAIN)                                                                  \
    DEFINE_SIZE_FORM(BITS, CTX)
GPUSHMEM_RMA_SIZES(DEFINE_SIZE)

// putmem and getmem take any length from any address to any address.
#define DEFINE_MEM(FORM)                                                                           \
    static void mem_##FORM(gpushmem_ctx_t ctx, int pe)                                             \
    {                                                                                              \
        static unsigned seed;                                                                      \
        char source[SLOT], back[SLOT], *there = slot();                                            \
        CHECK_MOVES(char, FORM, putmem, getmem)                                                    \
        for (size_t bytes = 0; bytes <= 70; bytes += bytes < 20 ? 1 : 25) {                        \
            for (size_t offset = 0; offset < 8; offset += offset == 1 ? 2 : 1) {                   \
                fill(source, SLOT, seed++);                                                        \
                CHECK_OK(FORM(putmem, there, source, 96, pe));                                     \
                CHECK_OK(gpushmem_ctx_fence(ctx));                                                 \
                CHECK_OK(FORM(putmem, there + offset, source + 100 + 7 - offset, bytes, pe));      \
                CHECK_OK(gpushmem_ctx_quiet(ctx));                                                 \
                memcpy(source + offset, source + 100 + 7 - offset, bytes);                         \
                CHECK_OK(FORM(getmem, back + 1, there, 96, pe));                                   \
                SAME(back + 1, source, 96);                                                        \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_MEM(PLAIN)
DEFINE_MEM(CTX)

// Transfers around the sizes where paths change: inline, captured, bounced, striped, split.
static void large(int pe)
{
    enum { MOST = 1 << 20 };
    static const size_t sizes[] = {127, 129, 4095, 16384, 16385, 65537, MOST - 3};
    char *there = gpushmem_malloc((size_t)MOST * (size_t)n_pes);
    char *source = malloc(MOST), *back = malloc(MOST);
    CHECK(there != NULL && source != NULL && back != NULL);
    there += (size_t)me * MOST;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        fill(source, sizes[i], (unsigned)i);
        CHECK_OK(gpushmem_putmem(there + 1, source, sizes[i], pe));
        memset(source, 0, sizes[i]); // a blocking put has let go of the source
        CHECK_OK(gpushmem_quiet());
        CHECK_OK(gpushmem_getmem(back, there + 1, sizes[i], pe));
        fill(source, sizes[i], (unsigned)i);
        SAME(back, source, sizes[i]);
    }
    free(source);
    free(back);
    CHECK_OK(gpushmem_free(there - (size_t)me * MOST));
}

// Many operations in flight: more than any queue holds.
static void many(int pe)
{
    enum { COUNT = 5000 };
    static uint32_t source[COUNT];
    static uint32_t back[COUNT];
    uint32_t *there = gpushmem_malloc(sizeof source * (size_t)n_pes);
    CHECK(there != NULL);
    uint32_t *mine = there + (size_t)me * COUNT;
    for (uint32_t i = 0; i < COUNT; ++i)
        source[i] = i * 7 + (uint32_t)me;
    for (uint32_t i = 0; i < COUNT; ++i)
        CHECK_OK(gpushmem_uint32_put_nbi(mine + i, source + i, 1, pe));
    CHECK_OK(gpushmem_quiet());
    for (uint32_t i = 0; i < COUNT; ++i)
        CHECK_OK(gpushmem_uint32_get_nbi(back + i, mine + i, 1, pe));
    CHECK_OK(gpushmem_pe_quiet(&pe, 1));
    SAME(back, source, sizeof source);
    CHECK_OK(gpushmem_free(there));
}

int main(void)
{
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    area = gpushmem_calloc((size_t)n_pes, SLOT);
    CHECK_THAT(area != NULL, "%s", gpushmem_last_error());
    gpushmem_ctx_t ctx;
    CHECK_OK(gpushmem_ctx_create(0, &ctx));
    for (int k = 0; k < n_pes; ++k) {
        int pe = (me + k) % n_pes;
#define RUN_TYPE(NAME, TYPE)                                                                       \
    NAME##_PLAIN(GPUSHMEM_CTX_DEFAULT, pe);                                                        \
    NAME##_CTX(ctx, pe);
        GPUSHMEM_RMA_TYPES(RUN_TYPE)
#define RUN_SIZE(BITS)                                                                             \
    size##BITS##_PLAIN(GPUSHMEM_CTX_DEFAULT, pe);                                                  \
    size##BITS##_CTX(ctx, pe);
        GPUSHMEM_RMA_SIZES(RUN_SIZE)
        mem_PLAIN(GPUSHMEM_CTX_DEFAULT, pe);
        mem_CTX(ctx, pe);
        large(pe);
        many(pe);
    }
    CHECK_OK(gpushmem_ctx_destroy(ctx));
    CHECK_OK(gpushmem_free(area));
    CHECK_OK(gpushmem_finalize());
    return 0;
}
