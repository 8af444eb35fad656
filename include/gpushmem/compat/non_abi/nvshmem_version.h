// SPDX-License-Identifier: BSD-3-Clause
// Versions that programs compare: of the OpenSHMEM that the API follows, and of the NVSHMEM whose
// API this is. gpushmem's own is in the name that nvshmem_info_get_name gives.
#ifndef GPUSHMEM_COMPAT_NVSHMEM_VERSION_H
#define GPUSHMEM_COMPAT_NVSHMEM_VERSION_H

#include "gpushmem/types.h"

#define NVSHMEM_MAJOR_VERSION 1
#define NVSHMEM_MINOR_VERSION 3

#define NVSHMEM_VENDOR_MAJOR_VERSION   3
#define NVSHMEM_VENDOR_MINOR_VERSION   8
#define NVSHMEM_VENDOR_PATCH_VERSION   0
#define NVSHMEM_VENDOR_PACKAGE_VERSION 0
#define NVSHMEM_VENDOR_VERSION                                                                     \
    (NVSHMEM_VENDOR_MAJOR_VERSION * 10000 + NVSHMEM_VENDOR_MINOR_VERSION * 100 +                   \
     NVSHMEM_VENDOR_PATCH_VERSION)

#define NVSHMEM_MAX_NAME_LEN        256
#define GPSH_NVSHMEM_TEXT_(a, b, c) #a "." #b "." #c
#define GPSH_NVSHMEM_TEXT(a, b, c)  GPSH_NVSHMEM_TEXT_(a, b, c)
// clang-format off
#define NVSHMEM_VENDOR_STRING \
    "gpushmem " GPSH_NVSHMEM_TEXT(GPUSHMEM_VERSION_MAJOR, GPUSHMEM_VERSION_MINOR, \
                                  GPUSHMEM_VERSION_PATCH) \
    ", as NVSHMEM " GPSH_NVSHMEM_TEXT(NVSHMEM_VENDOR_MAJOR_VERSION, NVSHMEM_VENDOR_MINOR_VERSION, \
                                      NVSHMEM_VENDOR_PATCH_VERSION)
// clang-format on

#endif
