// SPDX-License-Identifier: BSD-3-Clause
// A baton goes round among threads, each handing it on in another way (p behind fence, put_signal,
// an atomic behind quiet) and waiting for it in another way; whoever holds it reads and writes
// plain shared data. ThreadSanitizer sees a race if any of these ways does not order what it
// promises. Meanwhile other threads create and destroy contexts, and count.
#include <pthread.h>

#include "check.h"

enum { RUNNERS = 6, OTHERS = 2, CHURN = 100 };

static int laps;
static uint64_t *batons;  // symmetric: batons[i] counts how often runner i has received the baton
static uint64_t *payload; // symmetric, plain accesses by the holder
static uint64_t *counter; // symmetric, atomics
static long plain;        // an ordinary variable, guarded by the baton alone

static void hand_on(gpushmem_ctx_t ctx, int way, int to, uint64_t lap)
{
    uint64_t seen = payload[0] + 1;
    switch (way % 4) {
    case 0:
        CHECK_OK(gpushmem_ctx_uint64_put(ctx, payload, &seen, 1, 0));
        CHECK_OK(gpushmem_ctx_fence(ctx));
        CHECK_OK(gpushmem_ctx_uint64_p(ctx, &batons[to], lap, 0));
        break;
    case 1:
        CHECK_OK(gpushmem_ctx_uint64_put_signal(ctx, payload, &seen, 1, &batons[to], lap,
                                                GPUSHMEM_SIGNAL_SET, 0));
        break;
    case 2:
        payload[0] = seen; // a plain store: quiet covers it
        CHECK_OK(gpushmem_ctx_quiet(ctx));
        CHECK_OK(gpushmem_ctx_uint64_atomic_set(ctx, &batons[to], lap, 0));
        break;
    default:
        CHECK_OK(gpushmem_ctx_uint64_put_signal_nbi(ctx, payload, &seen, 1, &batons[to], 1,
                                                    GPUSHMEM_SIGNAL_ADD, 0));
        CHECK_OK(gpushmem_ctx_quiet(ctx)); // `seen` must live until then
        break;
    }
}

static void receive(int way, int me, uint64_t lap)
{
    uint64_t *baton = &batons[me];
    size_t at = 1;
    switch (way % 5) {
    case 0: CHECK_OK(gpushmem_uint64_wait_until(baton, GPUSHMEM_CMP_EQ, lap)); break;
    case 1: CHECK(gpushmem_signal_wait_until(baton, GPUSHMEM_CMP_GE, lap) == lap); break;
    case 2:
        while (!gpushmem_uint64_test(baton, GPUSHMEM_CMP_EQ, lap))
            ;
        break;
    case 3: CHECK(gpushmem_uint64_wait_until_any(baton, 1, NULL, GPUSHMEM_CMP_GE, lap) == 0); break;
    default:
        CHECK(gpushmem_uint64_wait_until_some(baton, 1, &at, NULL, GPUSHMEM_CMP_GE, lap) == 1 &&
              at == 0);
        break;
    }
}

static void *run(void *argument)
{
    int me = (int)(intptr_t)argument;
    gpushmem_ctx_t ctx;
    CHECK_OK(gpushmem_ctx_create(me % 2 ? GPUSHMEM_CTX_PRIVATE : GPUSHMEM_CTX_SHARED, &ctx));
    for (uint64_t lap = 1; lap <= (uint64_t)laps; ++lap) {
        int way = me + (int)lap;
        if (me != 0 || lap != 1)
            receive(way, me, me == 0 ? lap - 1 : lap);
        CHECK(payload[0] == (lap - 1) * RUNNERS + (uint64_t)me && plain == (long)payload[0]);
        ++plain;
        hand_on(way % 3 ? ctx : GPUSHMEM_CTX_DEFAULT, way, (me + 1) % RUNNERS, lap);
    }
    CHECK_OK(gpushmem_ctx_destroy(ctx));
    return NULL;
}

static void *churn(void *argument)
{
    (void)argument;
    for (int i = 0; i < CHURN; ++i) {
        gpushmem_ctx_t ctx;
        uint64_t before = 0;
        CHECK_OK(gpushmem_ctx_create(0, &ctx));
        CHECK_OK(gpushmem_ctx_uint64_atomic_fetch_inc_nbi(ctx, &before, counter, 0));
        CHECK_OK(gpushmem_ctx_destroy(ctx)); // delivers `before`
        CHECK(before < OTHERS * CHURN);
        CHECK(gpushmem_uint64_p(counter + 1000000000, 1, 0) == GPUSHMEM_ERR_ADDRESS);
        CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_ADDRESS);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK_OK(gpushmem_init_thread(GPUSHMEM_THREAD_MULTIPLE, NULL));
    laps = check_rounds(argc, argv, 200);
    batons = gpushmem_calloc(RUNNERS, sizeof *batons);
    payload = gpushmem_calloc(1, sizeof *payload);
    counter = gpushmem_calloc(1, sizeof *counter);
    CHECK(batons != NULL && payload != NULL && counter != NULL);
    pthread_t threads[RUNNERS + OTHERS];
    for (int i = 0; i < RUNNERS + OTHERS; ++i)
        CHECK(pthread_create(&threads[i], NULL, i < RUNNERS ? run : churn, (void *)(intptr_t)i) ==
              0);
    for (int i = 0; i < RUNNERS + OTHERS; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(plain == (long)laps * RUNNERS && payload[0] == (uint64_t)plain);
    CHECK(gpushmem_uint64_atomic_fetch(counter, 0) == OTHERS * CHURN);
    CHECK_OK(gpushmem_free(counter));
    CHECK_OK(gpushmem_free(payload));
    CHECK_OK(gpushmem_free(batons));
    CHECK_OK(gpushmem_finalize());
    return 0;
}
