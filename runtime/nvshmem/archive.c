// SPDX-License-Identifier: BSD-3-Clause
// libnvshmem.a, named by its path, links a host program without -lnvshmem_host: what the program
// calls are jumps into the shared library, which is loaded here before main. An archive can't tell
// the linker which library it needs, and a second runtime in the process must not be.
#define _GNU_SOURCE
#include "archive.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libnvshmem_host.so.3"

static void archive_refuse(const char *what)
{
    fprintf(stderr,
            "libnvshmem.a: %s: put the folder of " LIBRARY " into LD_LIBRARY_PATH or the program's "
            "run path, or its parent into NVSHMEM_HOME\n",
            what);
    _exit(127);
}

// By the program's run path and LD_LIBRARY_PATH first, as if it had been linked.
static void *archive_library(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library)
        return library;
    char why[512], path[PATH_MAX];
    snprintf(why, sizeof why, "%s", dlerror());
    const char *home = getenv("NVSHMEM_HOME");
    if (home && *home) {
        snprintf(path, sizeof path, "%s/lib/" LIBRARY, home);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (!library)
        archive_refuse(why);
    return library;
}

void gpsh_nvshmem_archive_fill(void **slots, const char *names, size_t n)
{
    void *library = archive_library();
    for (size_t i = 0; i < n; i++, names += strlen(names) + 1) {
        slots[i] = dlsym(library, names);
        if (!slots[i]) // the library is older than the archive
            archive_refuse(dlerror());
    }
}
