// SPDX-License-Identifier: BSD-3-Clause
// iput and iget, and ibput and ibget, which move blocks of elements: over a network one operation
// per element or block, with one doorbell for all of them.
#include "api/strided.h"

#include "api/argument.h"
#include "api/family.h"
#include "comm/context.h"
#include "core/cpu.h"
#include "core/error.h"
#include "memory/heap.h"
#include "memory/place.h"
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
                             size_t nelems, size_t size)
{
    for (; nelems != 0; --nelems) {
        gpsh_direct_copy(to, from, size);
        to += (size_t)to_stride * size;
        from += (size_t)from_stride * size;
    }
}

GPSH_ALWAYS_INLINE void copy_blocks(char *to, size_t to_step, const char *from, size_t from_step,
                                    const struct strided *s)
{
    for (size_t i = 0; i < s->nelems; ++i)
        gpsh_direct_copy(to + i * to_step, from + i * from_step, s->size);
}

static int copy_here(enum gpsh_op_kind kind, const struct strided *s, char *there, char *local)
{
    size_t remote_step = (size_t)s->remote_stride * s->unit;
    size_t local_step = (size_t)s->local_stride * s->unit;
    if (kind == GPSH_OP_PUT)
        copy_blocks(there, remote_step, local, local_step, s);
    else
        copy_blocks(local, local_step, there, remote_step, s);
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
    if (place.direct != NULL)
        return copy_here(kind, s, place.direct, local);
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

GPSH_ALWAYS_INLINE int iput(const char *function, gpushmem_ctx_t ctx, void *dest,
                            const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,
                            size_t size, int pe)
{
    const struct strided s = {
        .remote_stride = dst, .local_stride = sst, .nelems = nelems, .size = size, .unit = size};
    char *to = dst < 1 || sst < 1 ? NULL : gpsh_direct(dest, remote_span(&s), pe);
    if (GPSH_UNLIKELY(to == NULL || source == NULL || ctx == GPUSHMEM_CTX_INVALID))
        return move_slow(function, ctx, GPSH_OP_PUT, &s, dest, (char *)(uintptr_t)source, pe);
    copy(to, dst, source, sst, nelems, size);
    return 0;
}

GPSH_ALWAYS_INLINE int iget(const char *function, gpushmem_ctx_t ctx, void *dest,
                            const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,
                            size_t size, int pe)
{
    const struct strided s = {
        .remote_stride = sst, .local_stride = dst, .nelems = nelems, .size = size, .unit = size};
    const char *from = dst < 1 || sst < 1 ? NULL : gpsh_direct(source, remote_span(&s), pe);
    if (GPSH_UNLIKELY(from == NULL || dest == NULL || ctx == GPUSHMEM_CTX_INVALID))
        return move_slow(function, ctx, GPSH_OP_GET, &s, source, dest, pe);
    copy(dest, dst, from, sst, nelems, size);
    return 0;
}

// One body for each size of element.
#define DEFINE_BODY(BITS)                                                                          \
    static int iput_##BITS(const char *function, gpushmem_ctx_t ctx, void *dest,                   \
                           const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,        \
                           int pe)                                                                 \
    {                                                                                              \
        return iput(function, ctx, dest, source, dst, sst, nelems, BITS / 8, pe);                  \
    }                                                                                              \
    static int iget_##BITS(const char *function, gpushmem_ctx_t ctx, void *dest,                   \
                           const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,        \
                           int pe)                                                                 \
    {                                                                                              \
        return iget(function, ctx, dest, source, dst, sst, nelems, BITS / 8, pe);                  \
    }                                                                                              \
    GPSH_FUNCTION(                                                                                 \
        int, iput##BITS,                                                                           \
        (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),     \
        iput_##BITS(__func__, ctx, dest, source, dst, sst, nelems, pe))                            \
    GPSH_FUNCTION(                                                                                 \
        int, iget##BITS,                                                                           \
        (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),     \
        iget_##BITS(__func__, ctx, dest, source, dst, sst, nelems, pe))
GPUSHMEM_RMA_SIZES(DEFINE_BODY)

// `size` is a constant where this is used, so that one call remains.
#define BY_SIZE(verb, size, ...)                                                                   \
    ((size) == 1   ? verb##_8(__VA_ARGS__)                                                         \
     : (size) == 2 ? verb##_16(__VA_ARGS__)                                                        \
     : (size) == 4 ? verb##_32(__VA_ARGS__)                                                        \
                   : verb##_64(__VA_ARGS__))

#define DEFINE_TYPE(NAME, TYPE)                                                                    \
    _Static_assert(sizeof(TYPE) <= 8, "BY_SIZE knows no larger type");                             \
    GPSH_FUNCTION(                                                                                 \
        int, NAME##_iput,                                                                          \
        (TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),    \
        BY_SIZE(iput, sizeof(TYPE), __func__, ctx, dest, source, dst, sst, nelems, pe))            \
    GPSH_FUNCTION(                                                                                 \
        int, NAME##_iget,                                                                          \
        (TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),    \
        BY_SIZE(iget, sizeof(TYPE), __func__, ctx, dest, source, dst, sst, nelems, pe))
GPUSHMEM_RMA_TYPES(DEFINE_TYPE)

// ---- Blocks ----

static int ibput(const char *function, gpushmem_ctx_t ctx, void *dest, const void *source,
                 ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, size_t unit, int pe)
{
    const struct strided s = {.remote_stride = dst,
                              .local_stride = sst,
                              .nelems = bsize != 0 ? nblocks : 0,
                              .size = gpsh_bytes(bsize, unit),
                              .unit = unit};
    char *to = too_close(&s) ? NULL : gpsh_direct(dest, remote_span(&s), pe);
    if (GPSH_UNLIKELY(to == NULL || source == NULL || ctx == GPUSHMEM_CTX_INVALID))
        return move_slow(function, ctx, GPSH_OP_PUT, &s, dest, (char *)(uintptr_t)source, pe);
    copy_blocks(to, (size_t)dst * unit, source, (size_t)sst * unit, &s);
    return 0;
}

static int ibget(const char *function, gpushmem_ctx_t ctx, void *dest, const void *source,
                 ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, size_t unit, int pe)
{
    const struct strided s = {.remote_stride = sst,
                              .local_stride = dst,
                              .nelems = bsize != 0 ? nblocks : 0,
                              .size = gpsh_bytes(bsize, unit),
                              .unit = unit};
    const char *from = too_close(&s) ? NULL : gpsh_direct(source, remote_span(&s), pe);
    if (GPSH_UNLIKELY(from == NULL || dest == NULL || ctx == GPUSHMEM_CTX_INVALID))
        return move_slow(function, ctx, GPSH_OP_GET, &s, source, dest, pe);
    copy_blocks(dest, (size_t)dst * unit, from, (size_t)sst * unit, &s);
    return 0;
}

#define DEFINE_BLOCKED(PUT, GET, TYPE, UNIT)                                                       \
    GPSH_FUNCTION(int, PUT,                                                                        \
                  (TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,    \
                   size_t nblocks, int pe),                                                        \
                  ibput(__func__, ctx, dest, source, dst, sst, bsize, nblocks, UNIT, pe))          \
    GPSH_FUNCTION(int, GET,                                                                        \
                  (TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,    \
                   size_t nblocks, int pe),                                                        \
                  ibget(__func__, ctx, dest, source, dst, sst, bsize, nblocks, UNIT, pe))
#define DEFINE_BLOCKED_TYPE(NAME, TYPE)                                                            \
    DEFINE_BLOCKED(NAME##_ibput, NAME##_ibget, TYPE, sizeof(TYPE))
#define DEFINE_BLOCKED_SIZE(BITS) DEFINE_BLOCKED(ibput##BITS, ibget##BITS, void, BITS / 8)
GPUSHMEM_RMA_TYPES(DEFINE_BLOCKED_TYPE)
GPUSHMEM_RMA_SIZES(DEFINE_BLOCKED_SIZE)
