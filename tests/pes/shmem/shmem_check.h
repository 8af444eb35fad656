// SPDX-License-Identifier: BSD-3-Clause
// What the OpenSHMEM programs here share: they know nothing but shmem.h.
#ifndef GPUSHMEM_TESTS_SHMEM_CHECK_H
#define GPUSHMEM_TESTS_SHMEM_CHECK_H

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A failed check ends the job.
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "PE %d: %s:%d: not true: %s\n", shmem_my_pe(), __FILE__, __LINE__,     \
                    #condition);                                                                   \
            shmem_global_exit(1);                                                                  \
        }                                                                                          \
    } while (0)

#endif
