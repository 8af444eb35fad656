// SPDX-License-Identifier: BSD-3-Clause
// A PE that joins the job and leaves it. Prints its processor time in ms before main, which is the
// linker's, and from gpushmem_init to the end of gpushmem_finalize. start.sh runs many of them.
#include <gpushmem/gpushmem.h>
#include <stdio.h>
#include <sys/resource.h>

static double cpu_ms(void)
{
    struct rusage use = {0};
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e3 +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e3;
}

int main(void)
{
    double before = cpu_ms();
    if (gpushmem_init() || gpushmem_finalize())
        return fprintf(stderr, "start: %s\n", gpushmem_last_error()), 1;
    char line[64]; // written at once: lines of many PEs do not mix
    int bytes = snprintf(line, sizeof line, "%.3f %.3f\n", before, cpu_ms() - before);
    return fwrite(line, 1, (size_t)bytes, stdout) != (size_t)bytes;
}
