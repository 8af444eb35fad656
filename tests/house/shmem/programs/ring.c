// SPDX-License-Identifier: BSD-3-Clause
// A token goes round in static variables.
#include <shmem.h>
#include <stdio.h>

static long token = -1;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), laps = 10;
    for (long lap = 0; lap < laps; lap++) {
        if (me == 0)
            shmem_long_p(&token, lap * n, 1 % n);
        shmem_long_wait_until(&token, SHMEM_CMP_GE, lap * n + (me + n - 1) % n);
        if (me != 0)
            shmem_long_p(&token, token + 1, (me + 1) % n);
    }
    int wrong = me == 0 ? token != laps * n - 1 : token != (laps - 1L) * n + me - 1;
    shmem_finalize();
    if (wrong)
        printf("PE %d: token %ld\n", me, token);
    return wrong;
}
