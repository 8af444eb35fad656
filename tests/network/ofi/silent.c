// SPDX-License-Identifier: BSD-3-Clause
// A PE that makes no call is reached all the same: PE 1 only looks at a word of its own memory,
// while PE 0 puts, gets, adds and signals to it and waits for each. Without somebody who serves PE
// 1, the job would hang.
#define _GNU_SOURCE // usleep
#include <string.h>
#include <unistd.h>

#include "../../pes/check.h"

enum { LARGE = 1 << 20, ROUNDS = 50 };

static struct {
    uint64_t sum, signal, over;
    char bytes[LARGE];
} * shared;
static char source[LARGE], back[LARGE];

static void disturb(uint64_t round)
{
    memset(source, (int)round, sizeof source);
    CHECK(gpushmem_putmem(shared->bytes, source, LARGE, 1) == 0);
    CHECK(gpushmem_quiet() == 0);
    CHECK(gpushmem_getmem(back, shared->bytes, LARGE, 1) == 0);
    CHECK(memcmp(back, source, LARGE) == 0);
    CHECK(gpushmem_uint64_atomic_fetch_add(&shared->sum, 1, 1) == round);
    CHECK(gpushmem_putmem_signal(shared->bytes, source, 100, &shared->signal, round,
                                 GPUSHMEM_SIGNAL_SET, 1) == 0);
    CHECK(gpushmem_quiet() == 0);
}

int main(void)
{
    const uint64_t one = 1;
    CHECK(gpushmem_init() == 0 && gpushmem_n_pes() == 2);
    shared = gpushmem_calloc(1, sizeof *shared);
    CHECK(shared != NULL);
    CHECK(gpushmem_barrier_all() == 0);
    if (gpushmem_my_pe() == 0) {
        for (uint64_t round = 0; round < ROUNDS; round++)
            disturb(round);
        CHECK(gpushmem_putmem(&shared->over, &one, sizeof one, 1) == 0);
        CHECK(gpushmem_quiet() == 0);
    } else {
        while (!__atomic_load_n(&shared->over, __ATOMIC_ACQUIRE))
            usleep(1000);
        CHECK(shared->sum == ROUNDS && shared->signal == ROUNDS - 1);
    }
    CHECK(gpushmem_barrier_all() == 0);
    gpushmem_free(shared);
    CHECK(gpushmem_finalize() == 0);
    return 0;
}
