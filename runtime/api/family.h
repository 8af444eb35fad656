// SPDX-License-Identifier: BSD-3-Clause
// How the families of public functions are written down: one expression makes both gpushmem_NAME
// and gpushmem_ctx_NAME.
#ifndef GPSH_FAMILY_H
#define GPSH_FAMILY_H

#include "comm/context.h"
#include "gpushmem/gpushmem.h"

#define GPSH_ALWAYS_INLINE static inline __attribute__((always_inline))

// In EXPRESSION, `ctx` is the context and __func__ the name for error sentences. PARAMETERS is a
// parenthesised list with an `int pe`, which is a rank if the context is a team's.
#define GPSH_UNWRAP(...) __VA_ARGS__
#define GPSH_FUNCTION(RETURN, NAME, PARAMETERS, EXPRESSION)                                        \
    RETURN gpushmem_##NAME(GPSH_UNWRAP PARAMETERS)                                                 \
    {                                                                                              \
        const gpushmem_ctx_t ctx = GPUSHMEM_CTX_DEFAULT;                                           \
        return EXPRESSION;                                                                         \
    }                                                                                              \
    RETURN gpushmem_ctx_##NAME(gpushmem_ctx_t ctx, GPSH_UNWRAP PARAMETERS)                         \
    {                                                                                              \
        pe = gpsh_context_pe(ctx, pe);                                                             \
        return EXPRESSION;                                                                         \
    }

#endif
