// SPDX-License-Identifier: BSD-3-Clause
// How the public functions are made: each exists twice, with the handle as first argument and with
// the implicit one.
#ifndef GPUSHMEM_DEVICE_API_CUH
#define GPUSHMEM_DEVICE_API_CUH

#include "gpushmem/device/context.cuh"
#include "gpushmem/impl/signatures.h"

// GPSH_API(return type, name, (parameters), (their names), body): the body sees `dev`.
#define GPSH_API(RESULT, NAME, PARAMETERS, ARGUMENTS, ...)                                         \
    GPSH_DEV RESULT NAME(const struct gpushmem_dev &dev, GPSH_LIST PARAMETERS)                     \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    GPSH_DEV RESULT NAME(GPSH_LIST PARAMETERS)                                                     \
    {                                                                                              \
        return NAME(GPSH_DEV_IMPLICIT, GPSH_LIST ARGUMENTS);                                       \
    }

// The same without parameters.
#define GPSH_API_0(RESULT, NAME, ...)                                                              \
    GPSH_DEV RESULT NAME(const struct gpushmem_dev &dev)                                           \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    GPSH_DEV RESULT NAME(void)                                                                     \
    {                                                                                              \
        return NAME(GPSH_DEV_IMPLICIT);                                                            \
    }

// For what a context may do: the same as gpushmem_dev_NAME, and with a context before the
// parameters as gpushmem_dev_ctx_NAME. The body sees `dev`, as `via` the handle whose rings it
// uses, and as `pe` a number of the job.
#define GPSH_API_CTX(RESULT, NAME, PARAMETERS, ARGUMENTS, ...)                                     \
    GPSH_API(RESULT, gpushmem_dev_##NAME, PARAMETERS, ARGUMENTS, GPSH_VIA_DEFAULT; __VA_ARGS__)    \
    GPSH_API(RESULT, gpushmem_dev_ctx_##NAME, (struct gpushmem_dev_ctx ctx, GPSH_LIST PARAMETERS), \
             (ctx, GPSH_LIST ARGUMENTS), GPSH_VIA(RESULT, ctx);                                    \
             __VA_ARGS__)

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

// What puts and gets do, by VERB and REST of gpushmem/impl/signatures.h, for elements of SIZE
// bytes.
#define GPSH_DO_MOVE(WAY, BLOCKING, SCOPE, DEV, VIA, SIZE)                                         \
    gpsh_dev_move<SCOPE, WAY>(DEV, VIA, dest, source, gpsh_dev_bytes(nelems, SIZE), pe, BLOCKING)
#define GPSH_DO_SIGNAL(BLOCKING, SCOPE, DEV, VIA, SIZE)                                            \
    gpsh_dev_put_signal<SCOPE>(DEV, VIA, dest, source, gpsh_dev_bytes(nelems, SIZE), sig, signal,  \
                               sig_op, pe, BLOCKING)
#define GPSH_DO_put(...)            GPSH_DO_MOVE(gpsh_way_put, true, __VA_ARGS__)
#define GPSH_DO_get(...)            GPSH_DO_MOVE(gpsh_way_get, true, __VA_ARGS__)
#define GPSH_DO_put_nbi(...)        GPSH_DO_MOVE(gpsh_way_put, false, __VA_ARGS__)
#define GPSH_DO_get_nbi(...)        GPSH_DO_MOVE(gpsh_way_get, false, __VA_ARGS__)
#define GPSH_DO_put_signal(...)     GPSH_DO_SIGNAL(true, __VA_ARGS__)
#define GPSH_DO_put_signal_nbi(...) GPSH_DO_SIGNAL(false, __VA_ARGS__)
#define GPSH_DO_iput(SCOPE, DEV, VIA, SIZE)                                                        \
    gpsh_dev_move_strided<SCOPE, gpsh_way_put>(DEV, VIA, dest, source, dst, sst, nelems, SIZE, pe)
#define GPSH_DO_iget(SCOPE, DEV, VIA, SIZE)                                                        \
    gpsh_dev_move_strided<SCOPE, gpsh_way_get>(DEV, VIA, dest, source, dst, sst, nelems, SIZE, pe)

// What atomics take as value and as comparand, by their form.
#define GPSH_DO_WORD(DEV, VIA, OP, TYPE, FETCH)                                                    \
    gpsh_dev_amo_typed<TYPE>(DEV, VIA, OP, (TYPE *)source, (TYPE)0, (TYPE)0, pe, FETCH)
#define GPSH_DO_COUNT(DEV, VIA, OP, TYPE, FETCH)                                                   \
    gpsh_dev_amo_typed<TYPE>(DEV, VIA, OP, dest, (TYPE)1, (TYPE)0, pe, FETCH)
#define GPSH_DO_VALUE(DEV, VIA, OP, TYPE, FETCH)                                                   \
    gpsh_dev_amo_typed<TYPE>(DEV, VIA, OP, dest, value, (TYPE)0, pe, FETCH)
#define GPSH_DO_COMPARE(DEV, VIA, OP, TYPE, FETCH)                                                 \
    gpsh_dev_amo_typed<TYPE>(DEV, VIA, OP, dest, value, cond, pe, FETCH)

// What waits for several words do.
#define GPSH_DO_wait_until_all(DEV, TYPE, WORDS)  gpsh_dev_wait_all<TYPE>(DEV, WORDS)
#define GPSH_DO_wait_until_any(DEV, TYPE, WORDS)  gpsh_dev_wait_any<TYPE>(DEV, WORDS)
#define GPSH_DO_wait_until_some(DEV, TYPE, WORDS) gpsh_dev_wait_some<TYPE>(DEV, WORDS, indices)
#define GPSH_DO_test_all(DEV, TYPE, WORDS)        gpsh_dev_words_test_all<TYPE>(DEV, WORDS)
#define GPSH_DO_test_any(DEV, TYPE, WORDS)        gpsh_dev_test_any<TYPE>(DEV, WORDS)
#define GPSH_DO_test_some(DEV, TYPE, WORDS)       gpsh_dev_test_some<TYPE>(DEV, WORDS, indices)
#define GPSH_RESULT_all                           int
#define GPSH_RESULT_any                           size_t
#define GPSH_RESULT_some                          size_t

// What collectives that move data do.
#define GPSH_DO_COLL(KIND, WIDTH)                                                                  \
    gpsh_dev_coll_op(GPUSHMEM_COLL_##KIND, team, dest, source, nelems, WIDTH)
#define GPSH_DO_ROOT(SCOPE, DEV, KIND, WIDTH)                                                      \
    gpsh_dev_collective<SCOPE>(DEV, GPSH_DO_COLL(KIND, WIDTH), root)
#define GPSH_DO_PART(SCOPE, DEV, KIND, WIDTH)                                                      \
    gpsh_dev_collective<SCOPE>(DEV, GPSH_DO_COLL(KIND, WIDTH))
#define GPSH_DO_APART(SCOPE, DEV, KIND, WIDTH)                                                     \
    gpsh_dev_collective_strided<SCOPE>(DEV, GPSH_DO_COLL(KIND, WIDTH), dst, sst)
#define GPSH_DO_FOLD(SCOPE, DEV, KIND, WIDTH, NUMBER, FOLD)                                        \
    gpsh_dev_collective_fold<SCOPE>(DEV, GPSH_DO_COLL(KIND, WIDTH), NUMBER, GPUSHMEM_COLL_##FOLD)

// X(SUFFIX, SCOPE, arguments...) for thread, warp and block.
#define GPSH_SCOPES(X, ...)                                                                        \
    X(, gpsh_scope_thread, __VA_ARGS__)                                                            \
    X(_warp, gpsh_scope_warp, __VA_ARGS__)                                                         \
    X(_block, gpsh_scope_block, __VA_ARGS__)

#endif
