// SPDX-License-Identifier: BSD-3-Clause
// Mistakes of first programs that end in a crash: what is said of them.
//   beginner late      the heap is read after finalize
//   beginner alone     PE 0 alone allocates, and nobody looks whether an allocation is NULL
//   beginner full      more is allocated than there is
//   beginner early     a call before init
#include <gpushmem/gpushmem.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    long word = 0;
    if (!strcmp(argv[1], "early"))
        (void)gpushmem_long_p(&word, 1, 0);
    if (gpushmem_init())
        return 2;
    if (!strcmp(argv[1], "alone") && gpushmem_my_pe() == 0)
        (void)gpushmem_malloc(64);
    volatile long *sum = gpushmem_calloc(!strcmp(argv[1], "full") ? 1 << 28 : 2, sizeof *sum);
    sum[1] = 7;
    if (!strcmp(argv[1], "late"))
        gpushmem_finalize();
    return (int)sum[1];
}
