// SPDX-License-Identifier: BSD-3-Clause
// How the public functions are made: each exists twice, with the handle as first argument and with
// the implicit one.
#ifndef GPUSHMEM_DEVICE_API_CUH
#define GPUSHMEM_DEVICE_API_CUH

#include "gpushmem/device/context.cuh"

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

// For what a context may do: the same as gpushmem_dev_NAME, and with a context before the
// parameters as gpushmem_dev_ctx_NAME. The body sees `dev`, as `via` the handle whose rings it
// uses, and as `pe` a number of the job.
#define GPSH_API_CTX(RESULT, NAME, PARAMETERS, ARGUMENTS, BODY)                                    \
    GPSH_API(RESULT, gpushmem_dev_##NAME, PARAMETERS, ARGUMENTS, GPSH_VIA_DEFAULT; BODY)           \
    GPSH_API(RESULT, gpushmem_dev_ctx_##NAME,                                                      \
             (struct gpushmem_dev_ctx ctx, GPSH_UNPACK PARAMETERS), (ctx, GPSH_UNPACK ARGUMENTS),  \
             GPSH_VIA(RESULT, ctx);                                                                \
             BODY)

// What a refused call returns.
template <typename T> GPSH_DEV T gpsh_dev_nothing(void)
{
    return T();
}

#define GPSH_VIA_DEFAULT const struct gpushmem_dev &via = dev
#define GPSH_VIA(RESULT, ctx)                                                                      \
    if (!gpsh_dev_check_ctx(dev, ctx))                                                             \
        return gpsh_dev_nothing<RESULT>();                                                         \
    const struct gpushmem_dev &via = gpsh_dev_via(dev, ctx);                                       \
    pe = gpsh_dev_ctx_pe(dev, ctx, pe)

// X(SUFFIX, SCOPE, arguments...) for thread, warp and block.
#define GPSH_SCOPES(X, ...)                                                                        \
    X(, gpsh_scope_thread, __VA_ARGS__)                                                            \
    X(_warp, gpsh_scope_warp, __VA_ARGS__)                                                         \
    X(_block, gpsh_scope_block, __VA_ARGS__)

#endif
