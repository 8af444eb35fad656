// SPDX-License-Identifier: BSD-3-Clause
// What the NVSHMEM programs here share: they know nothing but nvshmem.h.
#ifndef GPUSHMEM_TESTS_NVSHMEM_CHECK_H
#define GPUSHMEM_TESTS_NVSHMEM_CHECK_H

#include <nvshmem.h>
#include <nvshmemx.h>

// A failed check ends the job.
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "PE %d: %s:%d: not true: %s\n", nvshmem_my_pe(), __FILE__, __LINE__,   \
                    #condition);                                                                   \
            nvshmem_global_exit(1);                                                                \
        }                                                                                          \
    } while (0)

#endif
