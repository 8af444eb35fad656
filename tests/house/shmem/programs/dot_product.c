// SPDX-License-Identifier: BSD-3-Clause
// A dot product and the largest element, by reductions of an active set, with two work arrays in
// turn.
#include <shmem.h>
#include <stdio.h>

enum { N = 1000 };

long pSync[2][_SHMEM_REDUCE_SYNC_SIZE];
double pWrk[2][_SHMEM_REDUCE_MIN_WRKDATA_SIZE > 1 ? _SHMEM_REDUCE_MIN_WRKDATA_SIZE : 1];
double part, dot, most;

int main(void)
{
    double x[N], y[N];
    start_pes(0);
    int me = _my_pe(), n = _num_pes(), wrong = 0;
    for (int i = 0; i < _SHMEM_REDUCE_SYNC_SIZE; i++)
        pSync[0][i] = pSync[1][i] = _SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    for (int round = 1; round <= 20; round++) {
        part = 0;
        for (int i = 0; i < N; i++) {
            x[i] = round;
            y[i] = me + 1;
            part += x[i] * y[i];
        }
        shmem_double_sum_to_all(&dot, &part, 1, 0, 0, n, pWrk[0], pSync[0]);
        shmem_double_max_to_all(&most, &part, 1, 0, 0, n, pWrk[1], pSync[1]);
        wrong |= dot != (double)round * N * n * (n + 1) / 2 || most != (double)round * N * n;
    }
    if (wrong)
        printf("PE %d: %g %g\n", me, dot, most);
    return wrong;
}
