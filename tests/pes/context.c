// SPDX-License-Identifier: BSD-3-Clause
// Contexts: many of them, each with its own quiet; created and destroyed over and over; and the
// whole library again after finalize.
#include "check.h"

enum { CONTEXTS = 12, WORDS = 64 };

static int me, n_pes;

static void independent(void)
{
    static const long options[] = {GPUSHMEM_CTX_SHARED, GPUSHMEM_CTX_SERIALIZED,
                                   GPUSHMEM_CTX_PRIVATE,
                                   GPUSHMEM_CTX_PRIVATE | GPUSHMEM_CTX_NOSTORE};
    gpushmem_ctx_t contexts[CONTEXTS];
    uint64_t *table = gpushmem_calloc((size_t)n_pes * CONTEXTS, sizeof *table);
    CHECK(table != NULL);
    int right = (me + 1) % n_pes, left = (me + n_pes - 1) % n_pes;
    for (int i = 0; i < CONTEXTS; ++i) {
        long found = -1;
        CHECK_OK(gpushmem_ctx_create(options[i % 4], &contexts[i]));
        CHECK(contexts[i] != GPUSHMEM_CTX_INVALID);
        CHECK_OK(gpushmem_ctx_get_options(contexts[i], &found));
        CHECK(found == options[i % 4]);
    }
    static uint64_t values[CONTEXTS];
    for (int i = 0; i < CONTEXTS; ++i) {
        values[i] = (uint64_t)(me * 100 + i);
        CHECK_OK(gpushmem_ctx_uint64_put_nbi(contexts[i], &table[me * CONTEXTS + i], &values[i], 1,
                                             right));
    }
    for (int i = CONTEXTS - 1; i >= 0; --i) { // each quiet completes its own context's operations
        CHECK_OK(gpushmem_ctx_quiet(contexts[i]));
        CHECK(gpushmem_uint64_g(&table[me * CONTEXTS + i], right) == values[i]);
    }
    CHECK_OK(gpushmem_barrier_all());
    for (int i = 0; i < CONTEXTS; ++i)
        CHECK(table[left * CONTEXTS + i] == (uint64_t)(left * 100 + i));
    CHECK_OK(gpushmem_barrier_all());
    // destroy completes, too
    for (int i = 0; i < CONTEXTS; ++i) {
        values[i] = (uint64_t)(me * 1000 + i);
        CHECK_OK(gpushmem_ctx_uint64_put_nbi(contexts[i], &table[me * CONTEXTS + i], &values[i], 1,
                                             right));
        CHECK_OK(gpushmem_ctx_destroy(contexts[i]));
        CHECK(gpushmem_uint64_g(&table[me * CONTEXTS + i], right) == values[i]);
    }
    CHECK_OK(gpushmem_free(table));
}

static void churn(int rounds)
{
    uint64_t *words = gpushmem_calloc(WORDS, sizeof *words);
    CHECK(words != NULL);
    for (int i = 0; i < rounds; ++i) {
        gpushmem_ctx_t ctx;
        CHECK_OK(gpushmem_ctx_create(i % 2 ? GPUSHMEM_CTX_PRIVATE : 0, &ctx));
        CHECK_OK(gpushmem_ctx_uint64_atomic_add(ctx, &words[i % WORDS], 1, (me + i) % n_pes));
        CHECK_OK(gpushmem_ctx_fence(ctx));
        CHECK_OK(gpushmem_ctx_pe_fence(ctx, (me + i) % n_pes));
        CHECK_OK(gpushmem_ctx_destroy(ctx));
    }
    CHECK_OK(gpushmem_barrier_all());
    uint64_t sum = 0;
    for (int pe = 0; pe < n_pes; ++pe)
        for (int i = 0; i < WORDS; ++i)
            sum += gpushmem_uint64_atomic_fetch(&words[i], pe);
    CHECK(sum == (uint64_t)rounds * (uint64_t)n_pes);
    CHECK_OK(gpushmem_free(words));
}

// On the invalid context fence, quiet and destroy do nothing, and others refuse it.
static void invalid(void)
{
    uint64_t *word = gpushmem_calloc(1, sizeof *word);
    CHECK(word != NULL);
    CHECK_OK(gpushmem_ctx_fence(GPUSHMEM_CTX_INVALID));
    CHECK_OK(gpushmem_ctx_quiet(GPUSHMEM_CTX_INVALID));
    CHECK_OK(gpushmem_ctx_pe_fence(GPUSHMEM_CTX_INVALID, 0));
    CHECK_OK(gpushmem_ctx_pe_quiet(GPUSHMEM_CTX_INVALID, &me, 1));
    CHECK_OK(gpushmem_ctx_destroy(GPUSHMEM_CTX_INVALID));
    CHECK(gpushmem_ctx_uint64_p(GPUSHMEM_CTX_INVALID, word, 1, me) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_ctx_uint64_atomic_inc(GPUSHMEM_CTX_INVALID, word, me) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_ctx_signal_op(GPUSHMEM_CTX_INVALID, word, 1, GPUSHMEM_SIGNAL_SET, me) ==
          GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_ctx_destroy(GPUSHMEM_CTX_DEFAULT) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_ctx_create(64, &(gpushmem_ctx_t){0}) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_ctx_create(0, NULL) == GPUSHMEM_ERR_INVALID);
    gpushmem_ctx_t twice;
    CHECK_OK(gpushmem_ctx_create(0, &twice));
    CHECK_OK(gpushmem_ctx_destroy(twice));
    CHECK(gpushmem_ctx_destroy(twice) == GPUSHMEM_ERR_INVALID);
    CHECK_THAT(strstr(gpushmem_last_error(), "gpushmem_ctx_destroy") != NULL, "%s",
               gpushmem_last_error());
    CHECK(gpushmem_ctx_uint64_p(twice, word, 1, me) == GPUSHMEM_ERR_INVALID);
    CHECK_THAT(strstr(gpushmem_last_error(), "was destroyed") != NULL, "%s", gpushmem_last_error());
    CHECK(gpushmem_ctx_uint64_atomic_inc(twice, word, me) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_ctx_get_options(twice, &(long){0}) == GPUSHMEM_ERR_INVALID);
    CHECK_OK(gpushmem_ctx_fence(twice));
    CHECK_OK(gpushmem_ctx_quiet(twice));
    CHECK(*word == 0);
    CHECK_OK(gpushmem_free(word));
}

// What is still in flight on a context that nobody destroyed arrives before finalize lets anybody
// go.
static void left_behind(int generation)
{
    static uint64_t value[WORDS];
    gpushmem_ctx_t ctx;
    uint64_t *words = gpushmem_calloc(WORDS, sizeof *words);
    CHECK(words != NULL);
    for (int i = 0; i < WORDS; ++i)
        value[i] = (uint64_t)(generation + i);
    CHECK_OK(gpushmem_ctx_create(0, &ctx));
    CHECK_OK(gpushmem_ctx_uint64_put_nbi(ctx, words, value, WORDS, (me + 1) % n_pes));
    CHECK_OK(gpushmem_free(words));
}

int main(int argc, char **argv)
{
    for (int generation = 0; generation < 3; ++generation) {
        CHECK(gpushmem_initialized() == 0);
        CHECK_OK(gpushmem_init());
        CHECK(gpushmem_initialized() == 1);
        me = gpushmem_my_pe();
        n_pes = gpushmem_n_pes();
        independent();
        churn(check_rounds(argc, argv, 500));
        invalid();
        left_behind(generation);
        CHECK_OK(gpushmem_finalize());
    }
    return 0;
}
