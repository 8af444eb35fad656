// SPDX-License-Identifier: BSD-3-Clause
// iput and iget, and ibput and ibget, which move blocks of elements: over a network one operation
// per element or block, with one doorbell for all of them.
#include "api/argument.h"
#include "api/family.h"
#include "comm/context.h"
#include "core/cpu.h"
#include "core/error.h"
#include "memory/heap.h"
#include "memory/place.h"
#include "observe/counters.h"
#include "transport/direct.h"

struct strided {
    ptrdiff_t remote_stride, local_stride; // in elements
    size_t nelems, size;                   // elements or blocks, and the bytes of each
    size_t unit;                           // bytes of an element
};

// Bytes from the first to the end of the last element of the remote side; SIZE_MAX if that
// overflows.
static inline size_t remote_span(const struct strided *s)
{
    size_t elements, span;
    if (s->nelems == 0)
        return 0;
    if (__builtin_mul_overflow(s->nelems - 1, (size_t)s->remote_stride, &elements) ||
        __builtin_add_overflow(gpsh_bytes(elements, s->unit), s->size, &span))
        return SIZE_MAX;
    return span;
}

// Strides below 1, or below the length of a block.
static inline bool too_close(const struct strided *s)
{
    size_t least = s->size > s->unit ? s->size / s->unit : 1;
    return s->remote_stride < 1 || s->local_stride < 1 || (size_t)s->remote_stride < least ||
           (size_t)s->local_stride < least;
}

static int check(const char *function, const struct strided *s, const void *sym, const void *local,
                 int pe)
{
    int status = gpsh_check_pe(function, pe);
    if (status < 0)
        return status;
    if (too_close(s))
        return gpsh_fail(
            GPUSHMEM_ERR_INVALID,
            "%s: strides are %td at PE %d and %td here; they count elements and start at %zu",
            function, s->remote_stride, pe, s->local_stride,
            s->size > s->unit ? s->size / s->unit : 1);
    status = gpsh_check_remote(function, sym, remote_span(s), pe);
    return status < 0 || s->nelems == 0 ? status : gpsh_check_local(function, local);
}

int gpsh_strided_check(const char *function, const void *sym, ptrdiff_t remote_stride,
                       const void *local, ptrdiff_t local_stride, size_t nelems, size_t size,
                       int pe, size_t *span)
{
    const struct strided s = {.remote_stride = remote_stride,
                              .local_stride = local_stride,
                              .nelems = nelems,
                              .size = size,
                              .unit = size};
    int status = check(function, &s, sym, local, pe);
    *span = status < 0 ? 0 : remote_span(&s);
    return status;
}

GPSH_ALWAYS_INLINE void copy(char *to, ptrdiff_t to_stride, const char *from, ptrdiff_t from_stride,
                             const struct strided *s)
{
    for (size_t n = s->nelems; n != 0; --n) {
        gpsh_direct_copy(to, from, s->size);
        to += (size_t)to_stride * s->unit;
        from += (size_t)from_stride * s->unit;
    }
}

GPSH_ALWAYS_INLINE int copy_here(enum gpsh_op_kind kind, const struct strided *s, char *there,
                                 char *local)
{
    if (kind == GPSH_OP_PUT)
        copy(there, s->remote_stride, local, s->local_stride, s);
    else
        copy(local, s->local_stride, there, s->remote_stride, s);
    return 0;
}

static int move_slow(const char *function, gpushmem_ctx_t handle, enum gpsh_op_kind kind,
                     const struct strided *s, const void *sym, char *local, int pe)
{
    struct gpsh_context *ctx;
    int status = check(function, s, sym, local, pe);
    if (status == 0)
        status = gpsh_check_context(function, handle, &ctx);
    if (status < 0)
        return status;
    struct gpsh_place place = {0};
    if (s->nelems != 0)
        gpsh_place_find(sym, remote_span(s), pe, &place);
    if (place.direct != NULL) {
        gpsh_count_direct(pe, s->nelems * s->size);
        return copy_here(kind, s, place.direct, local);
    }
    struct gpsh_op op = {
        .kind = (uint8_t)kind,
        .region = place.region,
        .pe = pe,
        .local = local,
        .remote = place.offset,
        .bytes = s->size,
    };
    // Operations of a flow complete in order: waiting for the last get is waiting for all.
    for (size_t i = 0; i < s->nelems && status == 0; ++i) {
        bool last = i + 1 == s->nelems;
        op.flags = last ? 0 : GPSH_OP_MORE;
        if (kind == GPSH_OP_PUT)
            status = gpsh_context_submit(ctx, &op, GPSH_WAIT_SOURCE);
        else
            status = gpsh_context_submit(ctx, &op, last ? GPSH_WAIT_COMPLETE : GPSH_WAIT_NONE);
        op.local += (size_t)s->local_stride * s->unit;
        op.remote += (size_t)s->remote_stride * s->unit;
    }
    // After a failure, no transfer may still write to the caller's memory or wait for a doorbell
    // that nobody rings.
    if (status < 0)
        (void)gpsh_context_quiet(ctx, pe);
    return status;
}

GPSH_ALWAYS_INLINE int move(const char *function, gpushmem_ctx_t ctx, enum gpsh_op_kind kind,
                            struct strided s, const void *sym, const void *local, int pe)
{
    char *there = too_close(&s) ? NULL : gpsh_direct(sym, remote_span(&s), pe);
    char *here = (char *)(uintptr_t)local;
    if (GPSH_UNLIKELY(there == NULL || here == NULL || ctx == GPUSHMEM_CTX_INVALID))
        return move_slow(function, ctx, kind, &s, sym, here, pe);
    return copy_here(kind, &s, there, here);
}

// ---- Elements: one body for each size ----

#define STRIDED(FAR, NEAR, BYTES)                                                                  \
    ((struct strided){.remote_stride = FAR,                                                        \
                      .local_stride = NEAR,                                                        \
                      .nelems = nelems,                                                            \
                      .size = BYTES,                                                               \
                      .unit = BYTES})
#define DEFINE_BODY(BITS)                                                                          \
    static int iput_##BITS(const char *function, gpushmem_ctx_t ctx, GPSH_P_STRIDED(void, ))       \
    {                                                                                              \
        return move(function, ctx, GPSH_OP_PUT, STRIDED(dst, sst, BITS / 8), dest, source, pe);    \
    }                                                                                              \
    static int iget_##BITS(const char *function, gpushmem_ctx_t ctx, GPSH_P_STRIDED(void, ))       \
    {                                                                                              \
        return move(function, ctx, GPSH_OP_GET, STRIDED(sst, dst, BITS / 8), source, dest, pe);    \
    }
GPUSHMEM_RMA_SIZES(DEFINE_BODY)

// SIZE is a constant, so that one call remains.
#define BY_SIZE(VERB, SIZE, ...)                                                                   \
    ((SIZE) == 1   ? VERB##_8(__VA_ARGS__)                                                         \
     : (SIZE) == 2 ? VERB##_16(__VA_ARGS__)                                                        \
     : (SIZE) == 4 ? VERB##_32(__VA_ARGS__)                                                        \
     : (SIZE) == 8 ? VERB##_64(__VA_ARGS__)                                                        \
                   : VERB##_128(__VA_ARGS__))
#define DO_iput(SIZE) BY_SIZE(iput, SIZE, __func__, ctx, dest, source, dst, sst, nelems, pe)
#define DO_iget(SIZE) BY_SIZE(iget, SIZE, __func__, ctx, dest, source, dst, sst, nelems, pe)

// ---- Blocks ----

static int ib(const char *function, gpushmem_ctx_t ctx, enum gpsh_op_kind kind, const void *sym,
              ptrdiff_t far, const void *local, ptrdiff_t near, size_t bsize, size_t nblocks,
              size_t unit, int pe)
{
    const struct strided s = {.remote_stride = far,
                              .local_stride = near,
                              .nelems = bsize != 0 ? nblocks : 0,
                              .size = gpsh_bytes(bsize, unit),
                              .unit = unit};
    return move(function, ctx, kind, s, sym, local, pe);
}
#define DO_ibput(SIZE)                                                                             \
    ib(__func__, ctx, GPSH_OP_PUT, dest, dst, source, sst, bsize, nblocks, SIZE, pe)
#define DO_ibget(SIZE)                                                                             \
    ib(__func__, ctx, GPSH_OP_GET, source, sst, dest, dst, bsize, nblocks, SIZE, pe)

#define DEFINE_TYPE(NAME, TYPE)                                                                    \
    GPSH_STRIDED_MOVES(GPSH_MOVE_TYPE, NAME, TYPE)                                                 \
    GPSH_BLOCKED_MOVES(GPSH_MOVE_TYPE, NAME, TYPE)
#define DEFINE_SIZE(BITS)                                                                          \
    GPSH_STRIDED_MOVES(GPSH_MOVE_SIZE, BITS, BITS / 8)                                             \
    GPSH_BLOCKED_MOVES(GPSH_MOVE_SIZE, BITS, BITS / 8)
GPUSHMEM_RMA_TYPES(DEFINE_TYPE)
GPUSHMEM_RMA_SIZES(DEFINE_SIZE)
