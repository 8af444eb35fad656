// SPDX-License-Identifier: BSD-3-Clause
// Wrong arguments: each is refused with its code and a sentence that names the function and the
// value, and harms nothing.
#define _GNU_SOURCE // setenv
#include "check.h"

static int me, n_pes;
static uint64_t *word;

// `call` returns `code`, and the sentence has all the words in it.
static void expect(int got, int code, int line, const char *call, const char *const *words)
{
    if (got != code)
        fprintf(stderr, "PE %d: line %d: %s returned %d, expected %d\n", me, line, call, got, code);
    CHECK(got == code && gpushmem_last_error_code() == code);
    for (; *words != NULL; ++words)
        CHECK_THAT(strstr(gpushmem_last_error(), *words) != NULL, "line %d: '%s' is not in: %s",
                   line, *words, gpushmem_last_error());
}
#define REFUSED(call, code, ...)                                                                   \
    expect((call), code, __LINE__, #call, (const char *const[]){__VA_ARGS__, NULL})
// The same for functions that return a value, 0 on failure.
#define NOTHING(call, code, ...)                                                                   \
    do {                                                                                           \
        gpushmem_clear_error();                                                                    \
        CHECK((call) == 0);                                                                        \
        expect(gpushmem_last_error_code(), code, __LINE__, #call,                                  \
               (const char *const[]){__VA_ARGS__, NULL});                                          \
    } while (0)

static void before_init(void)
{
    uint64_t local = 0;
    REFUSED(gpushmem_uint64_p(&local, 1, 0), GPUSHMEM_ERR_STATE, "gpushmem_uint64_p",
            "gpushmem_init");
    REFUSED(gpushmem_putmem(&local, &local, 8, 0), GPUSHMEM_ERR_STATE, "gpushmem_putmem");
    REFUSED(gpushmem_int_iput(NULL, NULL, 1, 1, 4, 0), GPUSHMEM_ERR_STATE, "gpushmem_int_iput");
    REFUSED(gpushmem_uint64_atomic_inc(&local, 0), GPUSHMEM_ERR_STATE,
            "gpushmem_uint64_atomic_inc");
    NOTHING(gpushmem_uint64_atomic_fetch(&local, 0), GPUSHMEM_ERR_STATE,
            "gpushmem_uint64_atomic_fetch");
    NOTHING(gpushmem_uint64_g(&local, 0), GPUSHMEM_ERR_STATE, "gpushmem_uint64_g");
    REFUSED(gpushmem_signal_op(&local, 1, GPUSHMEM_SIGNAL_SET, 0), GPUSHMEM_ERR_STATE,
            "gpushmem_signal_op");
    REFUSED(gpushmem_uint64_wait_until(&local, GPUSHMEM_CMP_EQ, 0), GPUSHMEM_ERR_STATE,
            "gpushmem_uint64_wait_until");
    REFUSED(gpushmem_fence(), GPUSHMEM_ERR_STATE, "gpushmem_fence");
    REFUSED(gpushmem_quiet(), GPUSHMEM_ERR_STATE, "gpushmem_quiet");
    REFUSED(gpushmem_barrier_all(), GPUSHMEM_ERR_STATE, "gpushmem_barrier_all");
    REFUSED(gpushmem_sync_all(), GPUSHMEM_ERR_STATE, "gpushmem_sync_all");
    gpushmem_ctx_t ctx = GPUSHMEM_CTX_INVALID;
    REFUSED(gpushmem_ctx_create(0, &ctx), GPUSHMEM_ERR_STATE, "gpushmem_ctx_create");
    CHECK(ctx == GPUSHMEM_CTX_INVALID && gpushmem_my_pe() < 0 && gpushmem_n_pes() < 0);
    CHECK(gpushmem_malloc(8) == NULL && gpushmem_last_error_code() == GPUSHMEM_ERR_STATE);
    CHECK(strcmp(gpushmem_strerror(GPUSHMEM_ERR_PE), gpushmem_strerror(GPUSHMEM_ERR_STATE)) != 0);
}

static void wrong_pe(void)
{
    char beyond[32], range[32];
    uint64_t local = 0;
    snprintf(beyond, sizeof beyond, "no PE %d", n_pes);
    snprintf(range, sizeof range, "0 to %d", n_pes - 1);
    REFUSED(gpushmem_uint64_p(word, 1, n_pes), GPUSHMEM_ERR_PE, "gpushmem_uint64_p:", beyond,
            range);
    REFUSED(gpushmem_uint64_put(word, &local, 1, -1), GPUSHMEM_ERR_PE,
            "gpushmem_uint64_put:", "no PE -1", range);
    REFUSED(gpushmem_getmem(&local, word, 0, n_pes), GPUSHMEM_ERR_PE, "gpushmem_getmem:", beyond);
    REFUSED(gpushmem_uint64_iget(&local, word, 1, 1, 1, -7), GPUSHMEM_ERR_PE,
            "gpushmem_uint64_iget:", "no PE -7");
    REFUSED(gpushmem_uint64_atomic_set(word, 1, n_pes), GPUSHMEM_ERR_PE,
            "gpushmem_uint64_atomic_set:", beyond);
    NOTHING(gpushmem_uint64_atomic_swap(word, 1, n_pes), GPUSHMEM_ERR_PE,
            "gpushmem_uint64_atomic_swap:", beyond);
    NOTHING(gpushmem_uint64_g(word, n_pes), GPUSHMEM_ERR_PE, "gpushmem_uint64_g:", beyond);
    REFUSED(gpushmem_ctx_uint64_p(GPUSHMEM_CTX_DEFAULT, word, 1, n_pes), GPUSHMEM_ERR_PE,
            "gpushmem_ctx_uint64_p:");
    REFUSED(gpushmem_putmem_signal(word, &local, 8, word + 1, 1, GPUSHMEM_SIGNAL_SET, n_pes),
            GPUSHMEM_ERR_PE, "gpushmem_putmem_signal:", beyond);
    REFUSED(gpushmem_pe_fence(n_pes), GPUSHMEM_ERR_PE, "gpushmem_pe_fence:", beyond);
    REFUSED(gpushmem_pe_quiet(NULL, 2), GPUSHMEM_ERR_INVALID, "gpushmem_pe_quiet:", "2 PEs",
            "NULL");
    REFUSED(gpushmem_pe_quiet((const int[]){me, n_pes}, 2), GPUSHMEM_ERR_PE,
            "gpushmem_pe_quiet:", beyond);
}

static void wrong_address(void)
{
    struct gpushmem_heap_info heap;
    uint64_t local[2] = {0, 0};
    CHECK_OK(gpushmem_heap_info(&heap));
    REFUSED(gpushmem_uint64_p(&local[0], 1, me), GPUSHMEM_ERR_ADDRESS,
            "gpushmem_uint64_p:", "not in the symmetric heap", "gpushmem_malloc");
    REFUSED(gpushmem_uint64_p(NULL, 1, me), GPUSHMEM_ERR_ADDRESS,
            "gpushmem_uint64_p: NULL is not in the symmetric heap", "did gpushmem_malloc fail");
    REFUSED(gpushmem_buffer_register(NULL, 8), GPUSHMEM_ERR_INVALID, "(nil), 8", "not NULL");
    REFUSED(gpushmem_uint64_put(word, local, heap.bytes, me), GPUSHMEM_ERR_ADDRESS,
            "gpushmem_uint64_put:", "beyond the end");
    REFUSED(gpushmem_uint64_put(word, local, SIZE_MAX / 4, me), GPUSHMEM_ERR_ADDRESS,
            "gpushmem_uint64_put:"); // overflows
    REFUSED(gpushmem_uint64_get(local, local, 1, me), GPUSHMEM_ERR_ADDRESS, "gpushmem_uint64_get:");
    REFUSED(gpushmem_uint64_iput(word, local, PTRDIFF_MAX, 1, 3, me), GPUSHMEM_ERR_ADDRESS,
            "gpushmem_uint64_iput:");
    REFUSED(gpushmem_uint64_iput(word, local, 1, 1, SIZE_MAX, me), GPUSHMEM_ERR_ADDRESS,
            "gpushmem_uint64_iput:");
    REFUSED(gpushmem_uint64_iput(word, local, 0, 1, 2, me), GPUSHMEM_ERR_INVALID,
            "gpushmem_uint64_iput:", "start at 1");
    REFUSED(gpushmem_uint64_iget(local, word, 1, -1, 2, me), GPUSHMEM_ERR_INVALID,
            "gpushmem_uint64_iget:", "-1");
    REFUSED(gpushmem_uint64_atomic_inc(local, me), GPUSHMEM_ERR_ADDRESS,
            "gpushmem_uint64_atomic_inc:");
    NOTHING(gpushmem_uint64_atomic_fetch_add(local, 1, me), GPUSHMEM_ERR_ADDRESS,
            "gpushmem_uint64_atomic_fetch_add:");
    REFUSED(gpushmem_signal_op(local, 1, GPUSHMEM_SIGNAL_ADD, me), GPUSHMEM_ERR_ADDRESS,
            "gpushmem_signal_op:");
    REFUSED(gpushmem_uint64_put_signal(local, local, 1, word, 1, GPUSHMEM_SIGNAL_SET, me),
            GPUSHMEM_ERR_ADDRESS, "gpushmem_uint64_put_signal:");
    REFUSED(gpushmem_uint64_wait_until(local, GPUSHMEM_CMP_EQ, 0), GPUSHMEM_ERR_ADDRESS,
            "gpushmem_uint64_wait_until:");
    REFUSED(gpushmem_uint64_test(local, GPUSHMEM_CMP_EQ, 0), GPUSHMEM_ERR_ADDRESS,
            "gpushmem_uint64_test:");
    NOTHING(gpushmem_signal_fetch(local), GPUSHMEM_ERR_ADDRESS, "gpushmem_signal_fetch:");
    NOTHING(gpushmem_uint64_test_some(local, 2, (size_t[2]){0}, NULL, GPUSHMEM_CMP_EQ, 0),
            GPUSHMEM_ERR_ADDRESS, "gpushmem_uint64_test_some:");
    CHECK(gpushmem_uint64_wait_until_any(local, 2, NULL, GPUSHMEM_CMP_EQ, 0) == SIZE_MAX);
    CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_ADDRESS);
    CHECK(local[0] == 0 && local[1] == 0);
}

// What the library has behind the program's part of the heap is no place for anybody's calls, in
// whole or in part.
static void beyond_the_program(char *end, size_t at)
{
    uint64_t local[4] = {0}, *bad = (uint64_t *)(void *)(end + at);
    REFUSED(gpushmem_putmem(end - 8, local, 8 + at + 8, me), GPUSHMEM_ERR_ADDRESS,
            "beyond the end");
    REFUSED(gpushmem_uint64_p(bad, 1, me), GPUSHMEM_ERR_ADDRESS, "not in the symmetric heap");
    REFUSED(gpushmem_getmem(local, bad, 16, me), GPUSHMEM_ERR_ADDRESS, "gpushmem_getmem:");
    REFUSED(gpushmem_uint64_iput(bad - 1 - at / 8, local, (ptrdiff_t)(1 + at / 8), 1, 2, me),
            GPUSHMEM_ERR_ADDRESS, "gpushmem_uint64_iput:");
    REFUSED(gpushmem_uint64_atomic_inc(bad, me), GPUSHMEM_ERR_ADDRESS, "atomic_inc:");
    NOTHING(gpushmem_uint64_g(bad, me), GPUSHMEM_ERR_ADDRESS, "gpushmem_uint64_g:");
    REFUSED(gpushmem_signal_op(bad, 1, GPUSHMEM_SIGNAL_SET, me), GPUSHMEM_ERR_ADDRESS,
            "signal_op:");
    REFUSED(gpushmem_uint64_put_signal(word, local, 1, bad, 1, GPUSHMEM_SIGNAL_SET, me),
            GPUSHMEM_ERR_ADDRESS, "put_signal:");
    REFUSED(gpushmem_uint64_wait_until(bad, GPUSHMEM_CMP_EQ, 0), GPUSHMEM_ERR_ADDRESS,
            "wait_until:");
    REFUSED(gpushmem_uint64_test(bad, GPUSHMEM_CMP_EQ, 0), GPUSHMEM_ERR_ADDRESS, "test:");
    REFUSED(gpushmem_putmem_on_stream(end - 8, local, 8 + at + 8, me, NULL), GPUSHMEM_ERR_ADDRESS,
            "putmem_on_stream:");
    REFUSED(gpushmem_uint64_sum_reduce(GPUSHMEM_TEAM_WORLD, bad, word, 1), GPUSHMEM_ERR_ADDRESS,
            "sum_reduce:");
    CHECK(gpushmem_ptr(bad, me) == NULL && !gpushmem_addr_accessible(bad, me));
    REFUSED(gpushmem_free(bad), GPUSHMEM_ERR_ADDRESS, "gpushmem_free", "not an address",
            "pass what gpushmem_malloc returned");
    REFUSED(gpushmem_ctx_create(0, NULL), GPUSHMEM_ERR_INVALID, "address of a gpushmem_ctx_t");
    REFUSED(gpushmem_uint64_put(word, local, (size_t)-1, me), GPUSHMEM_ERR_ADDRESS,
            "was the number of elements negative?");
}

static void the_librarys_part(void)
{
    struct gpushmem_heap_info heap;
    char range[64];
    CHECK_OK(gpushmem_heap_info(&heap));
    char *rest = gpushmem_malloc(heap.largest_free_bytes), *begin = (char *)word;
    CHECK(rest != NULL);
    char *end = rest + heap.largest_free_bytes;
    CHECK(end == begin + heap.bytes);
    CHECK_OK(gpushmem_putmem(end - 8, &(uint64_t){1}, 8, me)); // all that programs have
    CHECK(gpushmem_ptr(end - 1, me) == end - 1);
    snprintf(range, sizeof range, "(%p to %p)", (void *)begin, (void *)end);
    REFUSED(gpushmem_putmem(end - 4, &(uint64_t){1}, 8, me), GPUSHMEM_ERR_ADDRESS, range);
    beyond_the_program(end, 0);
    beyond_the_program(end, 8192);
    CHECK_OK(gpushmem_free(rest));
}

static void wrong_alignment(void)
{
    uint64_t *odd = (uint64_t *)(void *)((char *)word + 4);
    uint32_t *odd4 = (uint32_t *)(void *)((char *)word + 2);
    REFUSED(gpushmem_uint64_atomic_inc(odd, me), GPUSHMEM_ERR_ALIGNMENT,
            "gpushmem_uint64_atomic_inc:", "multiple of 8");
    NOTHING(gpushmem_uint64_atomic_fetch(odd, me), GPUSHMEM_ERR_ALIGNMENT,
            "gpushmem_uint64_atomic_fetch:");
    REFUSED(gpushmem_uint32_atomic_set(odd4, 1, me), GPUSHMEM_ERR_ALIGNMENT,
            "gpushmem_uint32_atomic_set:", "multiple of 4");
    REFUSED(gpushmem_signal_op(odd, 1, GPUSHMEM_SIGNAL_SET, me), GPUSHMEM_ERR_ALIGNMENT,
            "gpushmem_signal_op:");
    REFUSED(gpushmem_uint64_wait_until(odd, GPUSHMEM_CMP_EQ, 0), GPUSHMEM_ERR_ALIGNMENT,
            "gpushmem_uint64_wait_until:");
    CHECK_OK(gpushmem_uint64_put(odd, &(uint64_t){0}, 1,
                                 me)); // a put of any alignment is legal on this machine
}

static void wrong_values(void)
{
    REFUSED(gpushmem_signal_op(word, 1, 7, me), GPUSHMEM_ERR_INVALID,
            "gpushmem_signal_op:", "operation 7");
    REFUSED(gpushmem_uint64_wait_until(word, 6, 0), GPUSHMEM_ERR_INVALID,
            "gpushmem_uint64_wait_until:", "comparison 6");
    REFUSED(gpushmem_uint64_test(word, -1, 0), GPUSHMEM_ERR_INVALID,
            "gpushmem_uint64_test:", "comparison -1");
    REFUSED(gpushmem_uint64_test_all_vector(word, 1, NULL, GPUSHMEM_CMP_EQ, NULL),
            GPUSHMEM_ERR_INVALID, "NULL");
    NOTHING(gpushmem_uint64_wait_until_some(word, 1, NULL, NULL, GPUSHMEM_CMP_EQ, 0),
            GPUSHMEM_ERR_INVALID, "NULL");
    REFUSED(gpushmem_uint64_atomic_fetch_nbi(NULL, word, me), GPUSHMEM_ERR_INVALID,
            "gpushmem_uint64_atomic_fetch_nbi:");
}

// Of each kind of call, as far as the other arguments are good: nothing is moved or signalled.
static void no_local_memory(void)
{
    static const char null[] = "local address is NULL";
    uint64_t *const nowhere = NULL;
    REFUSED(gpushmem_uint64_put(word, nowhere, 1, me), GPUSHMEM_ERR_INVALID,
            "gpushmem_uint64_put:", null);
    REFUSED(gpushmem_uint64_get(nowhere, word, 1, me), GPUSHMEM_ERR_INVALID,
            "gpushmem_uint64_get:", null);
    REFUSED(gpushmem_putmem_nbi(word, nowhere, 3, me), GPUSHMEM_ERR_INVALID, null);
    REFUSED(gpushmem_getmem_nbi(nowhere, word, 3, me), GPUSHMEM_ERR_INVALID, null);
    REFUSED(gpushmem_put32(word, nowhere, 2, me), GPUSHMEM_ERR_INVALID, "gpushmem_put32:", null);
    REFUSED(gpushmem_ctx_char_get(GPUSHMEM_CTX_DEFAULT, NULL, (char *)word, 1, me),
            GPUSHMEM_ERR_INVALID, "gpushmem_ctx_char_get:", null);
    REFUSED(gpushmem_uint64_iput(word, nowhere, 1, 1, 1, me), GPUSHMEM_ERR_INVALID,
            "gpushmem_uint64_iput:", null);
    REFUSED(gpushmem_iget16(nowhere, word, 1, 1, 2, me), GPUSHMEM_ERR_INVALID, null);
    REFUSED(gpushmem_uint64_ibput(word, nowhere, 1, 1, 1, 1, me), GPUSHMEM_ERR_INVALID, null);
    REFUSED(gpushmem_ibget32(nowhere, word, 2, 2, 2, 1, me), GPUSHMEM_ERR_INVALID, null);
    REFUSED(gpushmem_uint64_put_signal(word, nowhere, 1, word + 1, 1, GPUSHMEM_SIGNAL_SET, me),
            GPUSHMEM_ERR_INVALID, "gpushmem_uint64_put_signal:", null);
    REFUSED(gpushmem_putmem_signal_nbi(word, nowhere, 9, word + 1, 1, GPUSHMEM_SIGNAL_ADD, me),
            GPUSHMEM_ERR_INVALID, null);
    REFUSED(gpushmem_uint64_atomic_fetch_status(word, me, nowhere), GPUSHMEM_ERR_INVALID, null);
    REFUSED(gpushmem_uint64_atomic_swap_nbi(nowhere, word, 5, me), GPUSHMEM_ERR_INVALID, null);
    REFUSED(gpushmem_putmem_on_stream(word, nowhere, 8, me, NULL), GPUSHMEM_ERR_INVALID, null);
    CHECK_OK(gpushmem_quiet());
    CHECK(gpushmem_uint64_g(word, me) == 0 && gpushmem_uint64_g(word + 1, me) == 0);
}

// With any addresses, and each of these does what else it does.
static void nothing_from_nowhere(void)
{
    uint64_t *const nowhere = NULL;
    CHECK_OK(gpushmem_uint64_put(nowhere, nowhere, 0, me));
    CHECK_OK(gpushmem_getmem_nbi(nowhere, word, 0, me));
    CHECK_OK(gpushmem_uint64_iput(word, nowhere, 1, 1, 0, me));
    CHECK_OK(gpushmem_iget8(nowhere, nowhere, 1, 1, 0, me));
    CHECK_OK(gpushmem_ibput8(nowhere, nowhere, 1, 1, 1, 0, me));
    CHECK_OK(gpushmem_putmem_signal(nowhere, nowhere, 0, word, 1, GPUSHMEM_SIGNAL_SET, me));
    CHECK_OK(gpushmem_quiet());
    CHECK(gpushmem_uint64_g(word, me) == 1);
    CHECK_OK(gpushmem_uint64_p(word, 0, me));
    CHECK_OK(gpushmem_quiet());
}

// Bounded waits say what was waited for.
static void waits_in_vain(void)
{
    REFUSED(gpushmem_uint64_wait_until(word, GPUSHMEM_CMP_EQ, 42), GPUSHMEM_ERR_TIMEOUT,
            "gpushmem_uint64_wait_until:", "20 ms", "GPUSHMEM_WAIT_TIMEOUT_MS",
            "which is 0, to be == 42");
    CHECK_OK(gpushmem_int64_p((int64_t *)word, -5, me));
    CHECK_OK(gpushmem_quiet());
    REFUSED(gpushmem_int64_wait_until((int64_t *)word, GPUSHMEM_CMP_GT, -1), GPUSHMEM_ERR_TIMEOUT,
            "is -5", "to be > -1");
    CHECK_OK(gpushmem_int64_p((int64_t *)word, 0, me));
    CHECK_OK(gpushmem_quiet());
    NOTHING(gpushmem_signal_wait_until(word, GPUSHMEM_CMP_GE, 1), GPUSHMEM_ERR_TIMEOUT,
            "gpushmem_signal_wait_until:");
    NOTHING(gpushmem_uint64_wait_until_some(word, 1, (size_t[1]){0}, NULL, GPUSHMEM_CMP_GE, 1),
            GPUSHMEM_ERR_TIMEOUT, "some:", "one of 1 words from heap offset", ">= its value");
    CHECK(gpushmem_uint64_wait_until_any(word, 1, NULL, GPUSHMEM_CMP_GE, 1) == SIZE_MAX);
    CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_TIMEOUT);
}

int main(void)
{
    before_init();
    setenv("GPUSHMEM_WAIT_TIMEOUT_MS", "20", 1);
    bool launched = getenv("PMIX_RANK") || getenv("PMI_RANK") || getenv("GPUSHMEM_RUN_PE");
    if (launched) // other PEs may be late, and no wait may time out
        setenv("GPUSHMEM_WAIT_TIMEOUT_MS", "100000", 1);
    gpushmem_clear_error();
    CHECK_OK(gpushmem_init());
    CHECK_THAT(gpushmem_last_error_code() == 0, "init succeeded and left: %s",
               gpushmem_last_error());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    word = gpushmem_calloc(4, sizeof *word);
    CHECK(word != NULL);
    wrong_pe();
    wrong_address();
    the_librarys_part();
    wrong_alignment();
    wrong_values();
    no_local_memory();
    nothing_from_nowhere();
    if (!launched)
        waits_in_vain();
    CHECK_OK(gpushmem_barrier_all());
    for (int i = 0; i < 4; ++i)
        CHECK(word[i] == 0);
    CHECK_OK(gpushmem_free(word));
    CHECK_OK(gpushmem_finalize());
    before_init();
    return 0;
}
