// SPDX-License-Identifier: BSD-3-Clause
// What the holder of a lock has put, without waiting for it, has arrived when the next PE gets the
// lock, though the network holds it back. Three PEs, over the software HCA.
#define _GNU_SOURCE // nanosleep, RTLD_DEFAULT
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "../../pes/check.h"

enum { LARGE = 1 << 20, WORDS = LARGE / 8, LOCKS = 3 }; // locks whose queues are on each of the PEs

static _Atomic uint64_t *hold;

static void *let_go(void *unused)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    atomic_store(hold, 0);
    return unused;
}

static void put_held_back(uint64_t *words, uint64_t value, long *lock)
{
    static uint64_t source[WORDS];
    pthread_t thread;
    source[WORDS - 1] = value;
    atomic_store(hold, LARGE / 16);
    CHECK(pthread_create(&thread, NULL, let_go, NULL) == 0);
    CHECK_OK(gpushmem_uint64_put_nbi(words, source, WORDS, 2));
    CHECK_OK(gpushmem_clear_lock(lock));
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(void)
{
    CHECK_OK(gpushmem_init());
    hold = (_Atomic uint64_t *)dlsym(RTLD_DEFAULT, "gpushmem_softhca_hold_bytes");
    CHECK_THAT(hold != NULL && gpushmem_n_pes() == 3, "three PEs, and the software HCA preloaded");
    uint64_t *words = gpushmem_calloc(WORDS, sizeof *words);
    long *locks = gpushmem_calloc(LOCKS, sizeof *locks);
    CHECK(words && locks);
    for (int i = 0; i < LOCKS; ++i) {
        const uint64_t value = (uint64_t)i + 1;
        if (gpushmem_my_pe() == 0)
            CHECK_OK(gpushmem_set_lock(&locks[i]));
        CHECK_OK(gpushmem_barrier_all());
        if (gpushmem_my_pe() == 0)
            put_held_back(words, value, &locks[i]);
        if (gpushmem_my_pe() == 1) {
            CHECK_OK(gpushmem_set_lock(&locks[i]));
            CHECK(gpushmem_uint64_g(&words[WORDS - 1], 2) == value);
            CHECK_OK(gpushmem_clear_lock(&locks[i]));
        }
        CHECK_OK(gpushmem_barrier_all());
    }
    CHECK_OK(gpushmem_free(locks));
    CHECK_OK(gpushmem_free(words));
    CHECK_OK(gpushmem_finalize());
    return 0;
}
