// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // mkdtemp
#include "scratch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int gpsh_scratch_dir(const char *name, size_t longest, char *dir, size_t bytes)
{
    const char *parent = getenv("TMPDIR");
    if (!parent || parent[0] != '/' || strlen(parent) > longest)
        parent = "/tmp";
    int n = snprintf(dir, bytes, "%s/%s-XXXXXX", parent, name); // the six letters are mkdtemp's
    if (n < 0 || (size_t)n >= bytes) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return mkdtemp(dir) ? 0 : -1;
}
