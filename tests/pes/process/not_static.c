// SPDX-License-Identifier: BSD-3-Clause
// Where static data cannot be symmetric, the call that wants it says why: argv[1] is in its
// sentence. With argv[2] a page of the data is made read-only before init, whose sentence it is
// with argv[3].
#include <gpushmem/gpushmem.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static _Alignas(4096) char page[8192];
static long flag = OTHER; // another program, with another OTHER

static int wrong(const char *what)
{
    fprintf(stderr, "PE %d: %s: %s\n", gpushmem_my_pe(), what, gpushmem_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    int next, status;
    if (argc > 2 && mprotect(page, 4096, PROT_READ))
        return wrong("mprotect");
    status = gpushmem_init();
    if (argc > 3)
        return status < 0 && strstr(gpushmem_last_error(), argv[1]) ? 0 : wrong("init");
    if (status)
        return wrong("init");
    next = (gpushmem_my_pe() + 1) % gpushmem_n_pes();
    if (gpushmem_long_p(&flag, 1, next) != GPUSHMEM_ERR_ADDRESS ||
        !strstr(gpushmem_last_error(), argv[1]))
        return wrong("long_p");
    if (gpushmem_ptr(&flag, next) || flag != OTHER)
        return wrong("ptr");
    if (gpushmem_barrier_all())
        return wrong("barrier");
    return gpushmem_finalize();
}
