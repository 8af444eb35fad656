// SPDX-License-Identifier: BSD-3-Clause
// What device tests have in common: counting failures on the host and from kernels, and one verdict
// per PE.
#ifndef TESTS_DEVICE_CHECK_H
#define TESTS_DEVICE_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "gpushmem/device.cuh"
#include "gpushmem/gpushmem.h"

static int check_failures;

// Whether PEs compare their collective calls, as GPUSHMEM_CHECK=1 says.
static inline bool check_compares(void)
{
    const char *check = getenv("GPUSHMEM_CHECK");
    return check && atoi(check);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            if (check_failures++ < 20)                                                             \
                fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);          \
        }                                                                                          \
    } while (0)

// For calls with a status.
#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        int check_status = (call);                                                                 \
        if (check_status && check_failures++ < 20)                                                 \
            fprintf(stderr, "%s:%d: %s: %d, %s\n", __FILE__, __LINE__, #call, check_status,        \
                    gpushmem_last_error());                                                        \
    } while (0)

// Symmetric memory from the host, which must not touch it: it may be on a GPU.
template <typename T> static inline T check_read(const T *symmetric)
{
    T value = {};
    CHECK_OK(gpushmem_getmem(&value, symmetric, sizeof value, gpushmem_my_pe()));
    return value;
}

static inline void check_clear(void *symmetric, size_t bytes)
{
    void *zeros = calloc(1, bytes);
    CHECK_OK(gpushmem_putmem(symmetric, zeros, bytes, gpushmem_my_pe()));
    CHECK_OK(gpushmem_quiet());
    free(zeros);
}

static inline int check_begin(void)
{
    if (gpushmem_init()) {
        fprintf(stderr, "init: %s\n", gpushmem_last_error());
        exit(1);
    }
    return gpushmem_my_pe();
}

static inline int check_end(const char *name)
{
    int me = gpushmem_my_pe();
    CHECK_OK(gpushmem_finalize());
    if (check_failures)
        fprintf(stderr, "%s: PE %d: %d failures\n", name, me, check_failures);
    return check_failures != 0;
}

// Runs the kernel to its end.
#define RUN(kernel, grid, block, ...)                                                              \
    do {                                                                                           \
        CHECK_OK(GPUSHMEM_LAUNCH(kernel, grid, block, NULL, __VA_ARGS__));                         \
        CHECK_OK(gpushmem_launch_wait(NULL));                                                      \
    } while (0)

#endif
