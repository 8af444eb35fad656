// SPDX-License-Identifier: BSD-3-Clause
// The least that uses the library: each PE tells its number to the next one.
#include <gpushmem/gpushmem.h>
#include <stdio.h>

int main(void)
{
    if (gpushmem_init())
        return 1;
    long *word = gpushmem_calloc(1, sizeof *word);
    int me = gpushmem_my_pe(), n = gpushmem_n_pes();
    if (!word || gpushmem_long_p(word, me + 1, (me + 1) % n) || gpushmem_barrier_all())
        return 1;
    printf("PE %d of %d got %ld\n", me, n, *word);
    gpushmem_free(word);
    return gpushmem_finalize();
}
