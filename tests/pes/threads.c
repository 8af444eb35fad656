// SPDX-License-Identifier: BSD-3-Clause
// GPUSHMEM_THREAD_MULTIPLE: several threads of every PE use the default context, shared contexts
// and private ones at once.
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, WORDS = 32 };

static int me, n_pes, rounds;
static uint64_t *counters;  // [2] on PE 0 and everywhere
static uint64_t *mailboxes; // [n_pes][THREADS][WORDS]
static uint64_t *flags;     // [n_pes][THREADS]
static uint64_t *echoes;    // [n_pes][THREADS]
static gpushmem_ctx_t shared_ctx;

static uint64_t *place(uint64_t *table, int pe, int thread)
{
    return &table[pe * THREADS + thread];
}

// Thread t sends to thread t of the right neighbour, data before flag, and waits for what comes
// from the left one.
static void talk(gpushmem_ctx_t ctx, int thread)
{
    int right = (me + 1) % n_pes, left = (me + n_pes - 1) % n_pes;
    uint64_t data[WORDS];
    uint64_t *there = &mailboxes[(me * THREADS + thread) * WORDS],
             *here = &mailboxes[(left * THREADS + thread) * WORDS];
    for (uint64_t i = 1; i <= (uint64_t)rounds; ++i) {
        for (uint64_t k = 0; k < WORDS; ++k)
            data[k] = i * 100 + k;
        if (i % 2) {
            CHECK_OK(gpushmem_ctx_uint64_put(ctx, there, data, WORDS, right));
            CHECK_OK(gpushmem_ctx_fence(ctx));
            CHECK_OK(gpushmem_ctx_uint64_p(ctx, place(flags, me, thread), i, right));
        } else {
            CHECK_OK(gpushmem_ctx_uint64_put_signal(
                ctx, there, data, WORDS, place(flags, me, thread), i, GPUSHMEM_SIGNAL_SET, right));
        }
        CHECK_OK(gpushmem_uint64_wait_until(place(flags, left, thread), GPUSHMEM_CMP_GE, i));
        for (uint64_t k = 0; k < WORDS; ++k)
            CHECK_THAT(here[k] == i * 100 + k, "thread %d, round %" PRIu64 ", word %" PRIu64,
                       thread, i, k);
        CHECK_OK(gpushmem_ctx_uint64_p(ctx, place(echoes, me, thread), i, left));
        CHECK_OK(gpushmem_uint64_wait_until(place(echoes, right, thread), GPUSHMEM_CMP_GE, i));
    }
}

static void count(gpushmem_ctx_t ctx)
{
    uint64_t ticket = 0;
    for (int i = 0; i < rounds; ++i) {
        CHECK_OK(gpushmem_ctx_uint64_atomic_add(ctx, &counters[0], 2, i % n_pes));
        uint64_t now = gpushmem_ctx_uint64_atomic_fetch_inc(ctx, &counters[1], 0);
        CHECK(i == 0 || now > ticket); // one thread's tickets grow
        ticket = now;
        CHECK_OK(gpushmem_ctx_quiet(ctx));
    }
}

static void *work(void *argument)
{
    int thread = (int)(intptr_t)argument;
    gpushmem_ctx_t private_ctx;
    CHECK_OK(gpushmem_ctx_create(GPUSHMEM_CTX_PRIVATE, &private_ctx));
    talk(GPUSHMEM_CTX_DEFAULT, thread);
    count(GPUSHMEM_CTX_DEFAULT);
    count(shared_ctx);
    count(private_ctx);
    // Errors belong to the thread that made them.
    CHECK(gpushmem_uint64_p(counters, 1, n_pes + thread) == GPUSHMEM_ERR_PE);
    char expected[32];
    snprintf(expected, sizeof expected, "no PE %d;", n_pes + thread);
    CHECK_THAT(strstr(gpushmem_last_error(), expected) != NULL, "%s", gpushmem_last_error());
    CHECK_OK(gpushmem_ctx_destroy(private_ctx));
    return NULL;
}

// `raised`: what one thread had at first is for several from a second init on.
int main(int argc, char **argv)
{
    int provided = -1, queried = -1;
    bool raised = argc > 2 && strcmp(argv[2], "raised") == 0;
    if (raised) {
        CHECK_OK(gpushmem_init_thread(GPUSHMEM_THREAD_SINGLE, NULL));
        CHECK_OK(gpushmem_ctx_create(GPUSHMEM_CTX_SHARED, &shared_ctx));
    }
    CHECK_OK(gpushmem_init_thread(GPUSHMEM_THREAD_MULTIPLE, &provided));
    CHECK_OK(gpushmem_query_thread(&queried));
    CHECK(provided == GPUSHMEM_THREAD_MULTIPLE && queried == provided);
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    rounds = check_rounds(argc, argv, 1000);
    counters = gpushmem_calloc(2, sizeof *counters);
    mailboxes = gpushmem_calloc((size_t)n_pes * THREADS * WORDS, sizeof *mailboxes);
    flags = gpushmem_calloc((size_t)n_pes * THREADS, sizeof *flags);
    echoes = gpushmem_calloc((size_t)n_pes * THREADS, sizeof *echoes);
    CHECK(counters != NULL && mailboxes != NULL && flags != NULL && echoes != NULL);
    if (!raised)
        CHECK_OK(gpushmem_ctx_create(GPUSHMEM_CTX_SHARED, &shared_ctx));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; ++i)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) == 0);
    for (int i = 0; i < THREADS; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_OK(gpushmem_barrier_all());
    uint64_t calls = 3 * THREADS * (uint64_t)n_pes * (uint64_t)rounds, sum = 0;
    for (int pe = 0; pe < n_pes; ++pe)
        sum += gpushmem_uint64_atomic_fetch(&counters[0], pe);
    CHECK(sum == 2 * calls);
    CHECK(gpushmem_uint64_atomic_fetch(&counters[1], 0) == calls);
    CHECK_OK(gpushmem_ctx_destroy(shared_ctx));
    CHECK_OK(gpushmem_free(echoes));
    CHECK_OK(gpushmem_free(flags));
    CHECK_OK(gpushmem_free(mailboxes));
    CHECK_OK(gpushmem_free(counters));
    CHECK_OK(gpushmem_finalize());
    if (raised)
        CHECK_OK(gpushmem_finalize());
    return 0;
}
