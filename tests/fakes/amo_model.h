// SPDX-License-Identifier: BSD-3-Clause
// What an atomic leaves in its word, written down apart from every implementation.
#ifndef TESTS_AMO_MODEL_H
#define TESTS_AMO_MODEL_H

#include "transport/transport.h"

static inline uint64_t amo_model(enum gpsh_amo amo, uint64_t old, uint64_t operand,
                                 uint64_t compare)
{
    switch (amo) {
    case GPSH_AMO_FETCH: return old;
    case GPSH_AMO_SET:
    case GPSH_AMO_SWAP: return operand;
    case GPSH_AMO_ADD: return old + operand;
    case GPSH_AMO_CSWAP: return old == compare ? operand : old;
    case GPSH_AMO_AND: return old & operand;
    case GPSH_AMO_OR: return old | operand;
    case GPSH_AMO_XOR: return old ^ operand;
    }
    return 0;
}

#endif
