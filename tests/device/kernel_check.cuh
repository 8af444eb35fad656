// SPDX-License-Identifier: BSD-3-Clause
// EXPECT in kernels: counts by line, told by the host at the end.
#ifndef TESTS_DEVICE_KERNEL_CHECK_CUH
#define TESTS_DEVICE_KERNEL_CHECK_CUH

#include "check.h"

enum { CHECK_LINES = 4096 };

#define EXPECT(errors, condition)                                                                  \
    do {                                                                                           \
        if (!(condition))                                                                          \
            atomicAdd(&errors[__LINE__ % CHECK_LINES], 1);                                         \
    } while (0)

static inline int *check_errors_begin(void)
{
    int *errors = (int *)gpushmem_calloc(CHECK_LINES, sizeof(int));
    if (!errors) {
        fprintf(stderr, "no place for the errors of kernels: %s\n", gpushmem_last_error());
        exit(1);
    }
    return errors;
}

static inline void check_errors_end(const char *file, int *errors)
{
    static int counts[CHECK_LINES];
    CHECK_OK(gpushmem_int_get(counts, errors, CHECK_LINES, gpushmem_my_pe()));
    for (int i = 0; i < CHECK_LINES; i++)
        if (counts[i] && check_failures++ < 20)
            fprintf(stderr, "%s:%d: PE %d: %d times not true\n", file, i, gpushmem_my_pe(),
                    counts[i]);
    gpushmem_free(errors);
}

#endif
