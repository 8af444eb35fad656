// SPDX-License-Identifier: BSD-3-Clause
#include <string.h>

#include "gpushmem/gpushmem.h"

void gpushmem_version(int *major, int *minor, int *patch)
{
    if (major)
        *major = GPUSHMEM_VERSION_MAJOR;
    if (minor)
        *minor = GPUSHMEM_VERSION_MINOR;
    if (patch)
        *patch = GPUSHMEM_VERSION_PATCH;
}

#define TEXT(x)  #x
#define VALUE(x) TEXT(x)

const char *gpushmem_version_string(void)
{
    return VALUE(GPUSHMEM_VERSION_MAJOR) "." VALUE(GPUSHMEM_VERSION_MINOR) "." VALUE(
        GPUSHMEM_VERSION_PATCH);
}

#define NAME                                                                                       \
    "gpushmem " VALUE(GPUSHMEM_VERSION_MAJOR) "." VALUE(GPUSHMEM_VERSION_MINOR) "." VALUE(         \
        GPUSHMEM_VERSION_PATCH)
_Static_assert(sizeof NAME <= GPUSHMEM_MAX_NAME_LEN, "programs have room for the name");

void gpushmem_info_get_version(int *major, int *minor)
{
    gpushmem_version(major, minor, NULL);
}

void gpushmem_info_get_name(char *name)
{
    if (name)
        memcpy(name, NAME, sizeof NAME);
}
