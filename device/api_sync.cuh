// SPDX-License-Identifier: BSD-3-Clause
// The public signals, waits, tests, fences and barriers (contracts: gpushmem/device.cuh).
#ifndef GPUSHMEM_DEVICE_API_SYNC_CUH
#define GPUSHMEM_DEVICE_API_SYNC_CUH

#include "gpushmem/device/api.cuh"

GPSH_API_0(int, gpushmem_dev_my_pe, return dev.my_pe)
GPSH_API_0(int, gpushmem_dev_n_pes, return dev.n_pes)
GPSH_API(void *, gpushmem_dev_ptr, (const void *address, int pe), (address, pe),
         return gpsh_dev_ptr(dev, address, pe))

GPSH_API_0(void, gpushmem_dev_fence, gpsh_dev_fence(dev, dev))
GPSH_API_0(void, gpushmem_dev_block_fence, gpsh_dev_fence_block(dev))
GPSH_API_0(void, gpushmem_dev_quiet, gpsh_dev_quiet(dev, dev))
GPSH_API(void, gpushmem_dev_pe_quiet, (int pe), (pe), gpsh_dev_pe_quiet(dev, dev, pe))

#define GPSH_API_CTX_LIFE(SUFFIX, SCOPE, UNUSED)                                                   \
    GPSH_API(int, gpushmem_dev_ctx_create##SUFFIX, (long options, struct gpushmem_dev_ctx *ctx),   \
             (options, ctx),                                                                       \
             return gpsh_dev_ctx_create<SCOPE>(dev, GPUSHMEM_TEAM_WORLD, options, ctx))            \
    GPSH_API(int, gpushmem_dev_team_create_ctx##SUFFIX,                                            \
             (gpushmem_team_t team, long options, struct gpushmem_dev_ctx *ctx),                   \
             (team, options, ctx), return gpsh_dev_ctx_create<SCOPE>(dev, team, options, ctx))     \
    GPSH_API(void, gpushmem_dev_ctx_destroy##SUFFIX, (struct gpushmem_dev_ctx ctx), (ctx),         \
             gpsh_dev_ctx_destroy<SCOPE>(dev, ctx))
GPSH_SCOPES(GPSH_API_CTX_LIFE, )
#undef GPSH_API_CTX_LIFE
GPSH_DEV gpushmem_team_t gpushmem_dev_ctx_get_team(struct gpushmem_dev_ctx ctx)
{
    return gpsh_dev_ctx_is_none(ctx) ? (gpushmem_team_t)GPUSHMEM_TEAM_INVALID : ctx.team;
}
GPSH_API(void, gpushmem_dev_ctx_fence, (struct gpushmem_dev_ctx ctx), (ctx),
         gpsh_dev_ctx_fence(dev, ctx))
GPSH_API(void, gpushmem_dev_ctx_quiet, (struct gpushmem_dev_ctx ctx), (ctx),
         gpsh_dev_ctx_quiet(dev, ctx))
GPSH_API(void, gpushmem_dev_ctx_pe_quiet, (struct gpushmem_dev_ctx ctx, int pe), (ctx, pe),
         gpsh_dev_ctx_pe_quiet(dev, ctx, pe))

GPSH_API_CTX(void, signal_op,
             (uint64_t * sig, uint64_t signal, enum gpushmem_signal_op sig_op, int pe),
             (sig, signal, sig_op, pe), gpsh_dev_signal(dev, via, sig, signal, sig_op, pe))
GPSH_API(uint64_t, gpushmem_dev_signal_fetch, (const uint64_t *sig), (sig),
         return gpsh_dev_load_acquire(sig))
GPSH_API(uint64_t, gpushmem_dev_signal_wait_until,
         (const uint64_t *sig, enum gpushmem_cmp cmp, uint64_t value), (sig, cmp, value),
         return gpsh_dev_wait_value<uint64_t>(dev, sig, cmp, value))
GPSH_API(void, gpushmem_dev_signal_wait_until_warp,
         (const uint64_t *sig, enum gpushmem_cmp cmp, uint64_t value), (sig, cmp, value),
         gpsh_dev_wait_together<gpsh_scope_warp>(dev, sig, cmp, value))
GPSH_API(void, gpushmem_dev_signal_wait_until_block,
         (const uint64_t *sig, enum gpushmem_cmp cmp, uint64_t value), (sig, cmp, value),
         gpsh_dev_wait_together<gpsh_scope_block>(dev, sig, cmp, value))
GPSH_API(int, gpushmem_dev_signal_wait_until_status,
         (const uint64_t *sig, enum gpushmem_cmp cmp, uint64_t value, uint64_t *seen),
         (sig, cmp, value, seen), return gpsh_dev_wait_until<uint64_t>(dev, sig, cmp, value, seen))

#define GPSH_API_BARRIER(SUFFIX, SCOPE, UNUSED)                                                    \
    GPSH_API_0(void, gpushmem_dev_barrier_all##SUFFIX, gpsh_dev_barrier_all<SCOPE>(dev))           \
    GPSH_API_0(void, gpushmem_dev_sync_all##SUFFIX, gpsh_dev_sync_all<SCOPE>(dev))
GPSH_SCOPES(GPSH_API_BARRIER, )
#undef GPSH_API_BARRIER

// The words with one comparison value for all, and (vector) with one for each.
#define GPSH_API_WORDS(TYPE)                                                                       \
    (gpsh_dev_words<TYPE>{(const TYPE *)vars, nelems, status, cmp, value, nullptr})
#define GPSH_API_WORDS_vector(TYPE)                                                                \
    (gpsh_dev_words<TYPE>{(const TYPE *)vars, nelems, status, cmp, (TYPE)0, values})
#define GPSH_API_WAIT(VERB, WHICH, FORM, NAME, TYPE, VECTOR, VALUE, WANTED, WORDS)                 \
    GPSH_API(GPSH_RESULT_##WHICH, gpushmem_dev_##NAME##_##VERB##_##WHICH##VECTOR,                  \
             (GPSH_P_##FORM(const volatile TYPE *vars, enum gpushmem_cmp, VALUE)),                 \
             (GPSH_A_##FORM(vars, cmp, WANTED)),                                                   \
             return GPSH_DO_##VERB##_##WHICH(dev, TYPE, WORDS))
#define GPSH_API_WAIT_STATUS(NAME, FORM, TYPE, VALUE, WANTED, RESULT, CALL)                        \
    GPSH_API(                                                                                      \
        int, gpushmem_dev_##NAME##_status,                                                         \
        (GPSH_P_##FORM(const volatile TYPE *vars, enum gpushmem_cmp, VALUE), size_t * RESULT),     \
        (GPSH_A_##FORM(vars, cmp, WANTED), RESULT), return CALL)
#define GPSH_API_WAITS(NAME, TYPE, VECTOR, VALUE, WANTED, WORDS)                                   \
    GPSH_WAITS(GPSH_API_WAIT, NAME, TYPE, VECTOR, VALUE, WANTED, WORDS)                            \
    GPSH_API_WAIT_STATUS(NAME##_wait_until_any##VECTOR, ALL, TYPE, VALUE, WANTED, index,           \
                         gpsh_dev_wait_any_status<TYPE>(dev, WORDS, index))                        \
    GPSH_API_WAIT_STATUS(NAME##_wait_until_some##VECTOR, SOME, TYPE, VALUE, WANTED, count,         \
                         gpsh_dev_wait_some_status<TYPE>(dev, WORDS, indices, count))
#define GPSH_API_SYNC(NAME, TYPE)                                                                  \
    GPSH_API(int, gpushmem_dev_##NAME##_wait_until,                                                \
             (const volatile TYPE *var, enum gpushmem_cmp cmp, TYPE value), (var, cmp, value),     \
             return gpsh_dev_wait_status<TYPE>(dev, (const TYPE *)var, cmp, value))                \
    GPSH_API(int, gpushmem_dev_##NAME##_test,                                                      \
             (const volatile TYPE *var, enum gpushmem_cmp cmp, TYPE value), (var, cmp, value),     \
             return gpsh_dev_test<TYPE>(dev, (const TYPE *)var, cmp, value))                       \
    GPSH_API_WAITS(NAME, TYPE, , TYPE value, value, GPSH_API_WORDS(TYPE))                          \
    GPSH_API_WAITS(NAME, TYPE, _vector, const TYPE *values, values, GPSH_API_WORDS_vector(TYPE))
GPUSHMEM_SYNC_TYPES(GPSH_API_SYNC)
#undef GPSH_API_SYNC
#undef GPSH_API_WAITS
#undef GPSH_API_WAIT_STATUS
#undef GPSH_API_WAIT
#undef GPSH_API_WORDS_vector
#undef GPSH_API_WORDS

#endif
