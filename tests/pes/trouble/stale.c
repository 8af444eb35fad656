// SPDX-License-Identifier: BSD-3-Clause
// With GPUSHMEM_CHECK=1 host calls that name memory outside of an allocated block are refused by
// name, until there is a block again; and who reads a freed one through a pointer sees that. So are
// handles of contexts that are none.
#include <pthread.h>

#include "../check.h"

static int next; // the PE that this one works on
static char local[4096];

// The call failed, and its sentence has both words.
static void told(const char *call, bool failed, const char *function, const char *why)
{
    CHECK_THAT(failed && gpushmem_last_error_code() == GPUSHMEM_ERR_ADDRESS &&
                   strstr(gpushmem_last_error(), function) && strstr(gpushmem_last_error(), why),
               "%s: %s", call, gpushmem_last_error());
}
#define TOLD(function, arguments, why)                                                             \
    told(#function #arguments, gpushmem_##function arguments == GPUSHMEM_ERR_ADDRESS,              \
         "gpushmem_" #function ": ", why)

static void refused_moves(long *x, const char *why)
{
    long *here = (long *)(void *)local;
    TOLD(putmem, (x, local, 8, next), why);
    TOLD(getmem, (local, x, 8, next), why);
    TOLD(putmem_nbi, (x, local, 1, next), why);
    TOLD(getmem_nbi, (local, x, 1, gpushmem_my_pe()), why);
    TOLD(put64, (x, local, 1, next), why);
    TOLD(long_put, (x, here, 1, next), why);
    TOLD(long_p, (x, 1, next), why);
    TOLD(long_iput, (x, here, 1, 1, 1, next), why);
    TOLD(long_iget, (here, x, 1, 1, 1, next), why);
    gpushmem_clear_error();
    told("g", gpushmem_long_g(x, next) == 0, "gpushmem_long_g: ", why);
    CHECK(gpushmem_ptr(x, next) == NULL);
}

static void refused_words(uint64_t *x, const char *why)
{
    uint64_t before = 0;
    TOLD(uint64_atomic_add, (x, 1, next), why);
    TOLD(uint64_atomic_fetch_add_status, (x, 1, next, &before), why);
    TOLD(uint64_atomic_compare_swap_status, (x, 0, 1, next, &before), why);
    TOLD(uint64_atomic_fetch_add_nbi, (&before, x, 1, next), why);
    TOLD(signal_op, (x, 1, GPUSHMEM_SIGNAL_SET, next), why);
    TOLD(signal_op, (x, 1, GPUSHMEM_SIGNAL_ADD, next), why);
    TOLD(signal_wait_until_status, (x, GPUSHMEM_CMP_GE, 0, &before), why);
    TOLD(uint64_wait_until, (x, GPUSHMEM_CMP_GE, 0), why);
    TOLD(uint64_wait_until_all, (x, 1, NULL, GPUSHMEM_CMP_GE, 0), why);
}

static void refused(void *x, const char *why)
{
    uint64_t *good = gpushmem_calloc(2, sizeof *good);
    int *source = gpushmem_calloc(64, sizeof *source);
    CHECK(good && source);
    refused_moves(x, why);
    refused_words(x, why);
    TOLD(putmem_signal, (x, local, 8, good, 1, GPUSHMEM_SIGNAL_SET, next), why);
    TOLD(putmem_signal, (good + 1, local, 8, x, 1, GPUSHMEM_SIGNAL_SET, next), why);
    TOLD(int_sum_reduce, (GPUSHMEM_TEAM_WORLD, x, source, 2), why);
    TOLD(int_broadcast, (GPUSHMEM_TEAM_WORLD, source, x, 2, 0), why);
    TOLD(putmem_on_stream, (x, local, 8, next, NULL), why);
    TOLD(int_fcollect_on_stream, (GPUSHMEM_TEAM_WORLD, x, source, 2, NULL), why);
    CHECK_OK(gpushmem_putmem(x, local, 0, next)); // nothing names nothing
    CHECK_OK(gpushmem_barrier_all());
    CHECK(good[0] == 0 && good[1] == 0);
    CHECK_OK(gpushmem_free(source));
    CHECK_OK(gpushmem_free(good));
}

static void test_freed(void)
{
    for (size_t bytes = 64; bytes < 100000; bytes = bytes * 7 + 3) {
        unsigned char *x = gpushmem_malloc(bytes), *keep = gpushmem_malloc(1);
        char why[96];
        CHECK(x && keep);
        memset(x, 1, bytes);
        CHECK_OK(gpushmem_barrier_all());
        CHECK_OK(gpushmem_putmem(x, local, 8, next));
        CHECK_OK(gpushmem_free(x));
        CHECK_THAT(x[0] == 0xdf && x[bytes - 1] == 0xdf, "%#x %#x", x[0], x[bytes - 1]);
        snprintf(why, sizeof why, "the block of %zu bytes", bytes);
        TOLD(putmem, (x, local, 8, next), why);
        TOLD(putmem, (x + bytes - 1, local, 1, next), "was freed");
        unsigned char *again = gpushmem_malloc(bytes);
        CHECK(again == x);
        CHECK_OK(gpushmem_putmem(again, local, 8, next));
        CHECK_OK(gpushmem_free(again));
        CHECK_OK(gpushmem_free(keep));
    }
    // as large as what is allocated meanwhile cannot be
    void *x = gpushmem_malloc(1 << 20);
    CHECK_OK(gpushmem_free(x));
    char *far = (char *)x + (1 << 19);
    refused(far, "no block");
}

static void test_ends(void)
{
    const size_t sizes[] = {1, 8, 255, 256, 257, 4095, 70001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t bytes = sizes[i];
        char *x = gpushmem_malloc(bytes), *y = gpushmem_malloc(8), why[96];
        CHECK(x && y);
        snprintf(why, sizeof why, "run past the end of the block of %zu bytes", bytes);
        CHECK_OK(gpushmem_putmem(x + bytes - 1, local, 1, next));
        CHECK_OK(gpushmem_putmem(x + bytes, local, 0, next));
        TOLD(putmem, (x + bytes - 1, local, 2, next), why);
        TOLD(getmem, (local, x, bytes + 1, next), why);
        CHECK_OK(gpushmem_barrier_all());
        CHECK_OK(gpushmem_free(y));
        CHECK_OK(gpushmem_free(x));
    }
    long *x = gpushmem_malloc(10 * sizeof *x);
    long *here = (long *)(void *)local;
    CHECK_OK(gpushmem_long_iput(x, here, 3, 1, 4, next));
    TOLD(long_iput, (x, here, 3, 1, 5, next), "run past the end of the block of 80 bytes");
    refused(x + 10, "run past the end of the block of 80 bytes");
    CHECK_OK(gpushmem_free(x));
}

static void test_blocks(void)
{
    char *x = gpushmem_malloc(100), *wall = gpushmem_malloc(100);
    CHECK(x && wall);
    memset(x, 5, 100);
    char *y = gpushmem_realloc(x, 5000);
    CHECK(y && y != x && y[99] == 5 && (unsigned char)x[99] == 0xdf);
    TOLD(putmem, (x, local, 1, next), "the block of 100 bytes");
    CHECK_OK(gpushmem_putmem(y + 4999, local, 1, next));
    TOLD(putmem, (y + 4999, local, 2, next), "block of 5000 bytes");
    char *z = gpushmem_align(65536, 300);
    CHECK(z && ((uintptr_t)z & 65535) == 0);
    CHECK_OK(gpushmem_putmem(z, local, 300, next));
    TOLD(putmem, (z - 1, local, 1, next), "in no block");
    TOLD(putmem, (z, local, 301, next), "block of 300 bytes");
    TOLD(putmem, (z + (1 << 20), local, 1, next), "never allocated");
    CHECK(gpushmem_free(z + (1 << 20)) == GPUSHMEM_ERR_ADDRESS);
    CHECK(gpushmem_free(z + 1) == GPUSHMEM_ERR_ADDRESS);
    CHECK_OK(gpushmem_putmem(z, local, 300, next));
    CHECK(gpushmem_realloc(y, 0) == NULL);
    TOLD(putmem, (y, local, 1, next), "the block of 5000 bytes");
    CHECK_OK(gpushmem_free(z));
    CHECK(gpushmem_free(z) == GPUSHMEM_ERR_ADDRESS);
    CHECK_OK(gpushmem_free(wall));
}

// Memory beside the blocks: static data, and buffers of the program.
static void test_others(void)
{
    static long word;
    CHECK_OK(gpushmem_long_p(&word, 4, next));
    char *buffer = aligned_alloc(2 << 20, 2 << 20);
    CHECK(buffer);
    memset(buffer, 7, 2 << 20);
    char *symmetric = gpushmem_buffer_register_symmetric(buffer, 2 << 20);
    CHECK(symmetric);
    CHECK_OK(gpushmem_putmem(buffer + 5, local, 100, next));
    CHECK_OK(gpushmem_putmem(symmetric + 500, local, 100, next));
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_buffer_unregister_symmetric(buffer));
    CHECK(buffer[4] == 7 && buffer[5] == 0 && buffer[(2 << 20) - 1] == 7);
    TOLD(putmem, (symmetric, local, 100, next), "was freed");
    free(buffer);
}

// One that was never filled in, whatever it holds: no memory at all, or some of the program's.
static void refused_context(gpushmem_ctx_t ctx, long *x)
{
    long here = 0;
    long options;
    gpushmem_team_t team;
    int pes[] = {next};
#define STRANGE(function, arguments)                                                               \
    gpushmem_clear_error();                                                                        \
    (void)gpushmem_ctx_##function arguments;                                                       \
    CHECK_THAT(gpushmem_last_error_code() == GPUSHMEM_ERR_INVALID &&                               \
                   strstr(gpushmem_last_error(), "gpushmem_ctx_" #function ": ") &&                \
                   strstr(gpushmem_last_error(), "is no context of this PE"),                      \
               #function ": %s", gpushmem_last_error())
    STRANGE(putmem, (ctx, x, &here, 8, next));
    STRANGE(getmem_nbi, (ctx, &here, x, 8, next));
    STRANGE(long_p, (ctx, x, 1, next));
    STRANGE(long_g, (ctx, x, next));
    STRANGE(long_iput, (ctx, x, &here, 1, 1, 1, next));
    STRANGE(uint64_atomic_add, (ctx, (uint64_t *)x, 1, next));
    STRANGE(putmem_signal, (ctx, x, &here, 8, (uint64_t *)x, 1, GPUSHMEM_SIGNAL_SET, next));
    STRANGE(quiet, (ctx));
    STRANGE(fence, (ctx));
    STRANGE(pe_quiet, (ctx, pes, 1));
    STRANGE(pe_fence, (ctx, next));
    STRANGE(get_team, (ctx, &team));
    STRANGE(get_options, (ctx, &options));
    CHECK(gpushmem_ctx_destroy(ctx) == GPUSHMEM_ERR_INVALID);
}

static void test_contexts(void)
{
    long *x = gpushmem_calloc(2, sizeof *x);
    char words[512];
    gpushmem_ctx_t ctx, gone;
    memset(words, 0x41, sizeof words);
    CHECK_OK(gpushmem_ctx_create(0, &gone));
    CHECK_OK(gpushmem_ctx_create(0, &ctx));
    CHECK_OK(gpushmem_ctx_destroy(gone));
    refused_context((gpushmem_ctx_t)(uintptr_t)0xdeadbeef, x);
    refused_context((gpushmem_ctx_t)(void *)words, x);
    CHECK(gpushmem_ctx_long_p(gone, x, 1, next) == GPUSHMEM_ERR_INVALID &&
          strstr(gpushmem_last_error(), "was destroyed"));
    CHECK_OK(gpushmem_barrier_all());
    CHECK(x[0] == 0);
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_ctx_long_p(ctx, x, 1, next));
    CHECK_OK(gpushmem_ctx_quiet(ctx));
    CHECK_OK(gpushmem_barrier_all());
    CHECK(x[0] == 1);
    CHECK_OK(gpushmem_ctx_destroy(ctx));
    CHECK_OK(gpushmem_free(x));
}

static void test_growth(void)
{
    enum { LARGE = 16 << 20 };
    char *x = gpushmem_malloc(LARGE);
    CHECK_THAT(x, "%s", gpushmem_last_error());
    CHECK_OK(gpushmem_putmem(x + LARGE - 1, local, 1, next));
    TOLD(putmem, (x + LARGE - 1, local, 2, next), "block of 16777216 bytes");
    CHECK_OK(gpushmem_free(x));
    TOLD(putmem, (x + LARGE - 1, local, 1, next), "the block of 16777216 bytes");
}

static void *use(void *block)
{
    for (int i = 0; i < 3000; i++) {
        CHECK_OK(gpushmem_putmem(block, local, 64, next));
        TOLD(putmem, (block, local, 65, next), "block of 64 bytes");
    }
    return NULL;
}

// The books change while others look.
static void test_threads(void)
{
    pthread_t threads[2];
    void *block = gpushmem_malloc(64);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, use, block) == 0);
    for (int i = 0; i < 200; i++)
        CHECK_OK(gpushmem_free(gpushmem_malloc(100 + (size_t)i * 10)));
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_OK(gpushmem_free(block));
}

int main(void)
{
    int provided;
    CHECK_OK(gpushmem_init_thread(GPUSHMEM_THREAD_MULTIPLE, &provided));
    next = (gpushmem_my_pe() + 1) % gpushmem_n_pes();
    test_freed();
    test_ends();
    test_blocks();
    test_others();
    test_contexts();
    test_growth();
    test_threads();
    CHECK_OK(gpushmem_finalize());
    return 0;
}
