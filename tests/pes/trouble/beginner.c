// SPDX-License-Identifier: BSD-3-Clause
// Mistakes of first programs that end in a crash: what is said of them.
//   beginner late      the heap is read after finalize
//   beginner alone     PE 0 alone allocates, and nobody looks whether an allocation is NULL
#include <gpushmem/gpushmem.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc != 2 || gpushmem_init())
        return 2;
    if (!strcmp(argv[1], "alone") && gpushmem_my_pe() == 0)
        (void)gpushmem_malloc(64);
    volatile long *sum = gpushmem_calloc(2, sizeof *sum);
    sum[1] = 7;
    if (!strcmp(argv[1], "late"))
        gpushmem_finalize();
    return (int)sum[1];
}
