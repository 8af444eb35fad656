// SPDX-License-Identifier: BSD-3-Clause
// How the public functions are made: each exists twice, with the handle as first argument and with
// the implicit one.
#ifndef GPUSHMEM_DEVICE_API_CUH
#define GPUSHMEM_DEVICE_API_CUH

#include "gpushmem/device/sync.cuh"

#define GPSH_UNPACK(...) __VA_ARGS__

// GPSH_API(return type, name, (parameters), (their names), body): the body sees `dev`.
#define GPSH_API(RESULT, NAME, PARAMETERS, ARGUMENTS, BODY)                                        \
    GPSH_DEV RESULT NAME(const struct gpushmem_dev &dev, GPSH_UNPACK PARAMETERS)                   \
    {                                                                                              \
        BODY;                                                                                      \
    }                                                                                              \
    GPSH_DEV RESULT NAME(GPSH_UNPACK PARAMETERS)                                                   \
    {                                                                                              \
        return NAME(gpsh_dev_implicit, GPSH_UNPACK ARGUMENTS);                                     \
    }

// The same without parameters.
#define GPSH_API_0(RESULT, NAME, BODY)                                                             \
    GPSH_DEV RESULT NAME(const struct gpushmem_dev &dev)                                           \
    {                                                                                              \
        BODY;                                                                                      \
    }                                                                                              \
    GPSH_DEV RESULT NAME(void)                                                                     \
    {                                                                                              \
        return NAME(gpsh_dev_implicit);                                                            \
    }

// X(SUFFIX, SCOPE, arguments...) for thread, warp and block.
#define GPSH_SCOPES(X, ...)                                                                        \
    X(, gpsh_scope_thread, __VA_ARGS__)                                                            \
    X(_warp, gpsh_scope_warp, __VA_ARGS__)                                                         \
    X(_block, gpsh_scope_block, __VA_ARGS__)

#endif
