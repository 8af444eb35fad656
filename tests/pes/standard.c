// SPDX-License-Identifier: BSD-3-Clause
// Small calls of the standard: blocked strided transfers, realloc, hints, what is accessible,
// signals by name, sessions, information.
#include "check.h"

enum { BLOCKS = 7, LENGTH = 3, HERE = 5, THERE = 11, ROOM = 200 };

static int me, n_pes, right, left;

// Each PE puts blocks to the next one; between the blocks nothing changes.
#define DEFINE_BLOCKS(NAME, TYPE)                                                                  \
    static void NAME##_blocks(void)                                                                \
    {                                                                                              \
        TYPE *area = gpushmem_calloc(ROOM, sizeof *area), source[ROOM], back[ROOM], zero;          \
        CHECK(area != NULL);                                                                       \
        memset(&zero, 0, sizeof zero);                                                             \
        fill(source, sizeof source, (unsigned)me);                                                 \
        memset(back, 0, sizeof back);                                                              \
        CHECK_OK(gpushmem_##NAME##_ibput(area + 1, source, THERE, HERE, LENGTH, BLOCKS, right));   \
        CHECK_OK(gpushmem_barrier_all());                                                          \
        CHECK_OK(gpushmem_ctx_##NAME##_ibget(GPUSHMEM_CTX_DEFAULT, back, area + 1, HERE, THERE,    \
                                             LENGTH, BLOCKS, right));                              \
        for (size_t i = 0; i < BLOCKS * HERE; ++i) {                                               \
            bool moved = i % HERE < LENGTH;                                                        \
            CHECK_THAT(memcmp(&back[i], moved ? &source[i] : &zero, sizeof zero) == 0, "%zu", i);  \
        }                                                                                          \
        CHECK_OK(gpushmem_##NAME##_get(source, area, ROOM, me));                                   \
        for (size_t i = 0; i < ROOM; ++i) {                                                        \
            bool gap = i == 0 || (i - 1) % THERE >= LENGTH || i > BLOCKS * THERE;                  \
            CHECK_THAT(!gap || memcmp(&source[i], &zero, sizeof zero) == 0, "%zu", i);             \
        }                                                                                          \
        CHECK_OK(gpushmem_free(area));                                                             \
    }
GPUSHMEM_RMA_TYPES(DEFINE_BLOCKS)

static void test_block_edges(void)
{
    int64_t *area = gpushmem_calloc(ROOM, sizeof *area), mine[ROOM] = {1, 2, 3, 4, 5, 6};
    CHECK(area != NULL);
    // blocks that touch; nothing; the last block ends with the heap's object
    CHECK_OK(gpushmem_ibput64(area, mine, 2, 2, 2, 3, right));
    CHECK_OK(gpushmem_ibput64(NULL, NULL, 2, 2, 2, 0, right));
    CHECK_OK(gpushmem_ibget64(NULL, NULL, 1, 1, 0, 9, right));
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_int64_get(mine, area, 7, me));
    for (int i = 0; i < 7; ++i)
        CHECK(mine[i] == (i < 6 ? i + 1 : 0));
    CHECK(gpushmem_ibput32(area, mine, 1, 4, 2, 3, right) == GPUSHMEM_ERR_INVALID);
    CHECK(strstr(gpushmem_last_error(), "start at 2"));
    CHECK(gpushmem_ibget8(mine, area, 4, 0, 1, 3, right) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_ibput128(area, mine, PTRDIFF_MAX, 1, 1, 3, right) == GPUSHMEM_ERR_ADDRESS);
    CHECK(gpushmem_ibput64(area, mine, PTRDIFF_MAX, PTRDIFF_MAX, SIZE_MAX / 16, 1, right) ==
          GPUSHMEM_ERR_ADDRESS);
    CHECK(gpushmem_ibput64(area, mine, 2, 2, 2, 3, n_pes) == GPUSHMEM_ERR_PE);
    CHECK(gpushmem_ctx_ibput64(GPUSHMEM_CTX_INVALID, area, mine, 2, 2, 2, 3, right) ==
          GPUSHMEM_ERR_INVALID);
    CHECK_OK(gpushmem_free(area));
}

// Each PE's block keeps its own content; `bytes` of it count.
static void check_content(const char *block, size_t bytes)
{
    char *seen = malloc(bytes), *expected = malloc(bytes);
    CHECK(seen && expected);
    fill(expected, bytes, (unsigned)me + 7);
    CHECK_OK(gpushmem_getmem(seen, block, bytes, me));
    CHECK(memcmp(seen, expected, bytes) == 0);
    free(expected);
    free(seen);
}

static void test_realloc(void)
{
    enum { SMALL = 1000, LARGE = 100000 };
    struct gpushmem_heap_info before, after;
    char *content = malloc(SMALL);
    CHECK_OK(gpushmem_heap_info(&before));
    char *block = gpushmem_realloc(NULL, SMALL);
    CHECK(block && content);
    fill(content, SMALL, (unsigned)me + 7);
    // what others put before is there, wherever the block goes
    fill(content, SMALL, (unsigned)right + 7);
    CHECK_OK(gpushmem_putmem_nbi(block, content, SMALL, right));
    block = gpushmem_realloc(block, LARGE);
    CHECK(block != NULL);
    check_content(block, SMALL);
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_putmem(block + LARGE - 1, content, 1, right)); // and all of it is there
    block = gpushmem_realloc(block, SMALL / 2);
    CHECK(block != NULL);
    check_content(block, SMALL / 2);
    CHECK(gpushmem_realloc(block, (size_t)1 << 50) == NULL);
    CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_NO_MEMORY);
    check_content(block, SMALL / 2); // still there
    CHECK(gpushmem_realloc(block + 8, SMALL) == NULL);
    CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_ADDRESS);
    CHECK(gpushmem_realloc(&before, SMALL) == NULL);
    CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_ADDRESS);
    if (n_pes > 1) {
        CHECK(gpushmem_realloc(block, me ? SMALL : LARGE) == NULL);
        CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_ASYMMETRY);
        CHECK(gpushmem_realloc(me ? block : NULL, SMALL) == NULL);
        CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_ASYMMETRY);
        CHECK(strstr(gpushmem_last_error(), "gpushmem_realloc(NULL, 1000)"));
        check_content(block, SMALL / 2);
    }
    gpushmem_clear_error();
    CHECK(gpushmem_realloc(block, 0) == NULL && gpushmem_last_error_code() == 0);
    CHECK(gpushmem_realloc(NULL, 0) == NULL && gpushmem_last_error_code() == 0);
    CHECK_OK(gpushmem_heap_info(&after));
    CHECK(after.used_bytes == before.used_bytes && after.allocations == before.allocations);
    free(content);
}

static void test_hints(void)
{
    long hints = GPUSHMEM_MALLOC_ATOMICS_REMOTE | GPUSHMEM_MALLOC_SIGNAL_REMOTE;
    char *block = gpushmem_malloc_with_hints(64, hints), *other = gpushmem_malloc_with_hints(64, 0);
    CHECK(block && other && block != other);
    CHECK(gpushmem_addr_accessible(block + 63, right) == 1);
    CHECK(gpushmem_malloc_with_hints(64, 1L << 20) == NULL);
    CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_INVALID);
    if (n_pes > 1) {
        CHECK(gpushmem_malloc_with_hints(64, me ? hints : 0) == NULL);
        CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_ASYMMETRY);
    }
    gpushmem_clear_error();
    CHECK(gpushmem_malloc_with_hints(0, hints) == NULL && gpushmem_last_error_code() == 0);
    CHECK_OK(gpushmem_free(other));
    CHECK_OK(gpushmem_free(block));
}

static void test_accessible(void)
{
    char *block = gpushmem_malloc(64), outside;
    CHECK(block != NULL);
    gpushmem_clear_error();
    for (int pe = 0; pe < n_pes; ++pe)
        CHECK(gpushmem_pe_accessible(pe) == 1 && gpushmem_addr_accessible(block, pe) == 1 &&
              gpushmem_addr_accessible(&outside, pe) == 0);
    CHECK(gpushmem_pe_accessible(-1) == 0 && gpushmem_pe_accessible(n_pes) == 0);
    CHECK(gpushmem_addr_accessible(block, n_pes) == 0 && gpushmem_addr_accessible(NULL, 0) == 0);
    CHECK(gpushmem_last_error_code() == 0);
    CHECK_OK(gpushmem_free(block));
}

static void test_signals(void)
{
    uint64_t *sig = gpushmem_calloc(2, sizeof *sig);
    gpushmem_ctx_t ctx;
    CHECK(sig != NULL);
    CHECK_OK(gpushmem_ctx_create(0, &ctx));
    CHECK_OK(gpushmem_signal_set(sig, 40, right));
    CHECK(gpushmem_signal_wait_until(sig, GPUSHMEM_CMP_EQ, 40) == 40);
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_ctx_signal_add(ctx, sig, 2, right));
    CHECK_OK(gpushmem_signal_add(ctx, sig, 1, left)); // by its generic name
    CHECK(gpushmem_signal_wait_until(sig, GPUSHMEM_CMP_EQ, 43) == 43);
    CHECK(gpushmem_signal_set((uint64_t *)(void *)((char *)sig + 4), 1, right) ==
          GPUSHMEM_ERR_ALIGNMENT);
    CHECK(strstr(gpushmem_last_error(), "gpushmem_signal_set"));
    CHECK_OK(gpushmem_ctx_destroy(ctx));
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_free(sig));
}

static void test_sessions(void)
{
    const struct gpushmem_ctx_session_config config = {.total_ops = 100};
    gpushmem_ctx_t ctx;
    CHECK_OK(gpushmem_ctx_create(0, &ctx));
    CHECK_OK(gpushmem_ctx_session_start(ctx, GPUSHMEM_CTX_SESSION_BATCH, &config,
                                        GPUSHMEM_CTX_SESSION_TOTAL_OPS));
    CHECK_OK(gpushmem_ctx_session_stop(ctx));
    CHECK_OK(gpushmem_ctx_session_start(GPUSHMEM_CTX_DEFAULT, 0, NULL, 0));
    CHECK_OK(gpushmem_ctx_session_stop(GPUSHMEM_CTX_DEFAULT));
    CHECK(gpushmem_ctx_session_start(ctx, 4, NULL, 0) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_ctx_session_start(ctx, 0, &config, 2) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_ctx_session_start(ctx, 0, NULL, 1) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_ctx_session_stop(GPUSHMEM_CTX_INVALID) == GPUSHMEM_ERR_INVALID);
    CHECK_OK(gpushmem_ctx_destroy(ctx));
}

static void test_information(void)
{
    int major = -1, minor = -1;
    char name[GPUSHMEM_MAX_NAME_LEN];
    gpushmem_info_get_version(&major, &minor);
    CHECK(major == GPUSHMEM_VERSION_MAJOR && minor == GPUSHMEM_VERSION_MINOR);
    gpushmem_info_get_version(NULL, NULL);
    gpushmem_info_get_name(name);
    CHECK(strncmp(name, "gpushmem ", 9) == 0 && strstr(name, gpushmem_version_string()));
    gpushmem_info_get_name(NULL);
}

int main(void)
{
    test_information();
    CHECK(gpushmem_pe_accessible(0) == 0); // before init
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    right = (me + 1) % n_pes;
    left = (me + n_pes - 1) % n_pes;
#define RUN_BLOCKS(NAME, TYPE) NAME##_blocks();
    GPUSHMEM_RMA_TYPES(RUN_BLOCKS)
    test_block_edges();
    test_realloc();
    test_hints();
    test_accessible();
    test_signals();
    test_sessions();
    CHECK_OK(gpushmem_finalize());
    return 0;
}
