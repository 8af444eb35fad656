// SPDX-License-Identifier: BSD-3-Clause
// put, get, p and g. A peer whose heap is mapped here is served by loads and stores in line,
// everybody else by an operation.
#include "api/argument.h"
#include "api/compat.h"
#include "api/family.h"
#include "comm/context.h"
#include "core/cpu.h"
#include "memory/heap.h"
#include "memory/place.h"
#include "observe/counters.h"
#include "transport/direct.h"

static int move_slow(const char *function, gpushmem_ctx_t handle, enum gpsh_op_kind kind,
                     const void *sym, void *local, size_t bytes, int pe, enum gpsh_wait wait)
{
    struct gpsh_context *ctx;
    int status = gpsh_check_remote(function, sym, bytes, pe);
    if (status == 0)
        status = gpsh_check_context(function, handle, &ctx);
    if (status < 0 || bytes == 0)
        return status;
    status = gpsh_check_local(function, local);
    if (status < 0)
        return status;
    struct gpsh_place place;
    gpsh_place_find(sym, bytes, pe, &place);
    if (place.direct != NULL) {
        bool get = kind == GPSH_OP_GET;
        gpsh_direct_copy(get ? local : place.direct, get ? place.direct : local, bytes);
        gpsh_count_direct(pe, bytes);
        return 0;
    }
    const struct gpsh_op op = {
        .kind = (uint8_t)kind,
        .region = place.region,
        .pe = pe,
        .local = local,
        .remote = place.offset,
        .bytes = bytes,
    };
    return gpsh_context_submit(ctx, &op, wait);
}

GPSH_ALWAYS_INLINE int put(const char *function, gpushmem_ctx_t ctx, void *dest, const void *source,
                           size_t bytes, int pe, enum gpsh_wait wait)
{
    char *to = gpsh_direct(dest, bytes, pe);
    if (GPSH_UNLIKELY(to == NULL || source == NULL || ctx == GPUSHMEM_CTX_INVALID))
        return move_slow(function, ctx, GPSH_OP_PUT, dest, (void *)(uintptr_t)source, bytes, pe,
                         wait);
    gpsh_direct_copy(to, source, bytes);
    return 0;
}

GPSH_ALWAYS_INLINE int get(const char *function, gpushmem_ctx_t ctx, void *dest, const void *source,
                           size_t bytes, int pe, enum gpsh_wait wait)
{
    const char *from = gpsh_direct(source, bytes, pe);
    if (GPSH_UNLIKELY(from == NULL || dest == NULL || ctx == GPUSHMEM_CTX_INVALID))
        return move_slow(function, ctx, GPSH_OP_GET, source, dest, bytes, pe, wait);
    gpsh_direct_copy(dest, from, bytes);
    return 0;
}

#define DO(HOW, SIZE, WAIT)                                                                        \
    HOW(__func__, ctx, dest, source, gpsh_bytes(nelems, SIZE), pe, GPSH_WAIT_##WAIT)
#define DO_put(SIZE)     DO(put, SIZE, SOURCE)
#define DO_get(SIZE)     DO(get, SIZE, COMPLETE)
#define DO_put_nbi(SIZE) DO(put, SIZE, NONE)
#define DO_get_nbi(SIZE) DO(get, SIZE, NONE)

#define DEFINE_TYPE(NAME, TYPE)                                                                    \
    GPSH_PLAIN_MOVES(GPSH_MOVE_TYPE, NAME, TYPE)                                                   \
    GPSH_FUNCTION(int, NAME##_p, (TYPE * dest, TYPE value, int pe),                                \
                  put(__func__, ctx, dest, &value, sizeof value, pe, GPSH_WAIT_SOURCE))            \
    static inline TYPE NAME##_get_one(const char *function, gpushmem_ctx_t ctx,                    \
                                      const TYPE *source, int pe)                                  \
    {                                                                                              \
        TYPE value;                                                                                \
        if (GPSH_LIKELY(get(function, ctx, &value, source, sizeof value, pe, GPSH_WAIT_FETCH) ==   \
                        0))                                                                        \
            return value;                                                                          \
        gpsh_value_failed(true);                                                                   \
        memset(&value, 0, sizeof value);                                                           \
        return value;                                                                              \
    }                                                                                              \
    GPSH_FUNCTION(TYPE, NAME##_g, (const TYPE *source, int pe),                                    \
                  NAME##_get_one(__func__, ctx, source, pe))
GPUSHMEM_RMA_TYPES(DEFINE_TYPE)
#define DEFINE_SIZE(BITS) GPSH_PLAIN_MOVES(GPSH_MOVE_SIZE, BITS, BITS / 8)
GPUSHMEM_RMA_SIZES(DEFINE_SIZE)
GPSH_PLAIN_MOVES(GPSH_MOVE_SIZE, mem, 1)
