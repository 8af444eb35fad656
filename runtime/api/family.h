// SPDX-License-Identifier: BSD-3-Clause
// How the families of public functions are written down: one expression makes both gpushmem_NAME
// and gpushmem_ctx_NAME.
#ifndef GPSH_FAMILY_H
#define GPSH_FAMILY_H

#include "api/argument.h"
#include "gpushmem/gpushmem.h"
#include "gpushmem/impl/signatures.h"

// In EXPRESSION, `ctx` is the context and __func__ the name for error sentences. PARAMETERS is a
// parenthesised list with an `int pe`, which is a rank if the context is a team's.
#define GPSH_FUNCTION(RETURN, NAME, PARAMETERS, EXPRESSION)                                        \
    RETURN gpushmem_##NAME(GPSH_LIST PARAMETERS)                                                   \
    {                                                                                              \
        const gpushmem_ctx_t ctx = GPUSHMEM_CTX_DEFAULT;                                           \
        return EXPRESSION;                                                                         \
    }                                                                                              \
    RETURN gpushmem_ctx_##NAME(gpushmem_ctx_t ctx, GPSH_LIST PARAMETERS)                           \
    {                                                                                              \
        pe = gpsh_rank_pe(ctx, pe);                                                                \
        return EXPRESSION;                                                                         \
    }

// The rows of gpushmem/impl/signatures.h that move data, by type and by size of an element: a file
// says with DO_VERB(SIZE) what they do.
#define GPSH_MOVE(NAME, VERB, FORM, TYPE, SIZE)                                                    \
    GPSH_FUNCTION(int, NAME, (GPSH_P_##FORM(TYPE, enum gpushmem_signal_op)), DO_##VERB(SIZE))
#define GPSH_MOVE_TYPE(VERB, REST, FORM, NAME, TYPE)                                               \
    GPSH_MOVE(NAME##_##VERB##REST, VERB##REST, FORM, TYPE, sizeof(TYPE))
#define GPSH_MOVE_SIZE(VERB, REST, FORM, BITS, SIZE)                                               \
    GPSH_MOVE(VERB##BITS##REST, VERB##REST, FORM, void, SIZE)

#endif
