// SPDX-License-Identifier: BSD-3-Clause
// Each PE passes its number to the right, by OpenSHMEM's names.
#include <shmem.h>
#include <stdio.h>

static int from;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_int_p(&from, me, (me + 1) % n);
    shmem_barrier_all();
    int good = from == (me + n - 1) % n;
    shmem_finalize();
    puts(good ? "ring: ok" : "ring: wrong");
    return !good;
}
