// SPDX-License-Identifier: BSD-3-Clause
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
