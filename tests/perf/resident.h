// SPDX-License-Identifier: BSD-3-Clause
#ifndef PERF_RESIDENT_H
#define PERF_RESIDENT_H

#include <stdio.h>
#include <unistd.h>

// Bytes of memory that this process has got so far; 0 if the system does not say.
static inline double perf_resident(void)
{
    unsigned long size, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu %lu", &size, &pages) != 2)
        pages = 0;
    if (file)
        fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

#endif
