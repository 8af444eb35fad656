// SPDX-License-Identifier: BSD-3-Clause
// C = A B with rows on PEs: the blocks of B go round by get.
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 16 };

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), size = ROWS * n, wrong = 0;
    size_t block = (size_t)ROWS * (size_t)size;
    double *a = shmem_malloc(block * sizeof *a), *b = shmem_malloc(block * sizeof *b);
    double *c = calloc(block, sizeof *c), *other = malloc(block * sizeof *other);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < size; j++) {
            a[i * size + j] = me * ROWS + i + j;
            b[i * size + j] = me * ROWS + i == j ? 2 : 0;
        }
    shmem_barrier_all();
    for (int step = 0; step < n; step++) {
        int from = (me + step) % n;
        shmem_double_get(other, b, block, from);
        for (int i = 0; i < ROWS; i++)
            for (int k = 0; k < ROWS; k++)
                for (int j = 0; j < size; j++)
                    c[i * size + j] += a[i * size + from * ROWS + k] * other[k * size + j];
    }
    for (size_t i = 0; i < block; i++)
        wrong |= c[i] != 2 * a[i];
    shmem_barrier_all();
    shmem_free(a);
    shmem_free(b);
    free(c);
    free(other);
    shmem_finalize();
    return wrong;
}
