// SPDX-License-Identifier: BSD-3-Clause
// usage: heap_size MIB [MEMORY]
// Every PE's heap has MIB, all of which one block may take. With MEMORY, PE 1 has a machine of that
// many MiB.
#define _GNU_SOURCE // RTLD_NEXT
#include <dlfcn.h>
#include <gpushmem/gpushmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long memory_mib; // 0: as much as there is

__attribute__((visibility("default"))) long sysconf(int name)
{
    long (*real)(int) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "sysconf");
    return name == _SC_PHYS_PAGES && memory_mib ? (memory_mib << 20) / real(_SC_PAGESIZE)
                                                : real(name);
}

static int failed(const char *call)
{
    printf("%s: %s\n", call, gpushmem_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    enum { ROUNDED_MIB = 2 }; // by pages of a GPU
    const char *rank = getenv("GPUSHMEM_RUN_PE");
    if (argc < 2)
        return 2;
    if (argc > 2 && rank && !strcmp(rank, "1"))
        memory_mib = atol(argv[2]);
    size_t wanted = (size_t)atol(argv[1]) << 20;
    struct gpushmem_heap_info info;
    if (gpushmem_init() || gpushmem_heap_info(&info))
        return failed("init");
    if (info.bytes < wanted || info.bytes > wanted + (ROUNDED_MIB << 20)) {
        printf("the heap has %llu bytes, wanted were %zu\n", (unsigned long long)info.bytes,
               wanted);
        return 1;
    }
    void *whole = gpushmem_malloc(wanted);
    if (!whole)
        return failed("malloc");
    gpushmem_free(whole);
    return gpushmem_finalize() ? failed("finalize") : 0;
}
