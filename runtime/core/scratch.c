// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // mkdtemp
#include "core/scratch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANDOM = 6 }; // letters at the end, which mkdtemp wants to be X and replaces

static int scratch_make(const char *parent, const char *name, char *dir, size_t bytes)
{
    int n = snprintf(dir, bytes, "%s/%s-", parent, name);
    if (n < 0 || (size_t)n + RANDOM >= bytes) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memset(dir + n, 'X', RANDOM);
    dir[n + RANDOM] = '\0';
    return mkdtemp(dir) ? 0 : -1;
}

int gpsh_scratch_dir(const char *name, size_t longest, char *dir, size_t bytes)
{
    const char *parent = getenv("TMPDIR");
    bool usable = parent && parent[0] == '/' && strlen(parent) <= longest;
    if (usable && scratch_make(parent, name, dir, bytes) == 0)
        return 0;
    return scratch_make("/tmp", name, dir, bytes);
}
