// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // readlink
// `gpushmem info --cflags` and `--libs`: what a compiler needs, from where this program is
// installed.
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

// The folder above the one that holds this program. False: it cannot be found.
static bool prefix_find(char prefix[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", prefix, PATH_MAX - 1);
    if (length < 0)
        return false;
    prefix[length] = '\0';
    for (int level = 0; level < 2; level++) {
        char *slash = strrchr(prefix, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return true;
}

#ifndef GPSH_TO_LIB // the build says where it installs libraries
#define GPSH_TO_LIB "lib"
#endif

// Where libraries lie below the prefix; packages may have moved them.
static const char *library_folder(const char *prefix)
{
    static const char *const folders[] = {GPSH_TO_LIB, "lib", "lib64"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char path[PATH_MAX + 64];
        snprintf(path, sizeof path, "%s/%s/libgpushmem.so", prefix, folders[i]);
        if (access(path, R_OK) == 0)
            return folders[i];
    }
    return NULL;
}

int gpsh_cli_print_flags(bool compile, bool link)
{
    char prefix[PATH_MAX], header[PATH_MAX + 64];
    const char *folder = prefix_find(prefix) ? library_folder(prefix) : NULL;
    snprintf(header, sizeof header, "%s/include/gpushmem/gpushmem.h", prefix);
    if (!folder || access(header, R_OK) != 0) {
        fprintf(stderr,
                "gpushmem info: there are no headers and no library beside this program, in %s; "
                "install the project (cmake --install BUILD --prefix DIR), or the packages for "
                "development\n",
                *prefix ? prefix : "/proc/self/exe");
        return 1;
    }
    if (compile)
        printf("-I%s/include%s", prefix, link ? " " : "\n");
    if (link)
        printf("-L%s/%s -Wl,-rpath,%s/%s -lgpushmem\n", prefix, folder, prefix, folder);
    return 0;
}
