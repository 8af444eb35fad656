// SPDX-License-Identifier: BSD-3-Clause
// Each PE passes its number to the right, in C with type-generic names.
#include <gpushmem/gpushmem.h>
#include <stdio.h>

int main(void)
{
    if (gpushmem_init() < 0) {
        fprintf(stderr, "%s\n", gpushmem_last_error());
        return 1;
    }
    int me = gpushmem_my_pe(), n = gpushmem_n_pes();
    int *from = gpushmem_malloc(sizeof *from);
    gpushmem_p(from, me, (me + 1) % n);
    gpushmem_barrier_all();
    int good = from != NULL && *from == (me + n - 1) % n;
    gpushmem_free(from);
    gpushmem_finalize();
    puts(good ? "ring: ok" : "ring: wrong");
    return !good;
}
