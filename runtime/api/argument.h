// SPDX-License-Identifier: BSD-3-Clause
// Finds out what is wrong with the arguments of a call: the fast paths only notice that something
// is wrong, and ask here.
#ifndef GPSH_ARGUMENT_H
#define GPSH_ARGUMENT_H

#include <limits.h>

#include "comm/contexts.h"
#include "comm/team.h"
#include "core/cpu.h"
#include "gpushmem/gpushmem.h"

// nelems elements of `size` bytes; SIZE_MAX, which fits into no heap, if that overflows.
static inline size_t gpsh_bytes(size_t nelems, size_t size)
{
    size_t bytes;
    return GPSH_UNLIKELY(__builtin_mul_overflow(nelems, size, &bytes)) ? SIZE_MAX : bytes;
}

// No PE has this number: it stands for a rank that the team of a context has not got.
#define GPSH_NO_RANK INT_MIN
int gpsh_no_rank(const struct gpsh_context *ctx, int rank); // returns GPSH_NO_RANK

// The PE that `pe` means in a call on `ctx`; GPSH_NO_RANK if its team has no such rank, or it is
// no context: gpsh_check_pe_number says which.
static inline int gpsh_rank_pe(gpushmem_ctx_t ctx, int pe)
{
    if (ctx == GPUSHMEM_CTX_DEFAULT || ctx == GPUSHMEM_CTX_INVALID)
        return pe;
    const struct gpsh_context *context = gpsh_context_of(ctx);
    if (GPSH_UNLIKELY(gpsh_heap()->quick_pes == 0) && gpsh_contexts_lack(context))
        return gpsh_no_rank(context, pe);
    if (GPSH_LIKELY(context->team_pes == NULL))
        return pe;
    if (GPSH_LIKELY((unsigned)pe < (unsigned)context->team_n))
        return context->team_pes[pe];
    return gpsh_no_rank(context, pe);
}

// All functions below take the full name of the public function.
// Each returns 0, or a negative status with a sentence that names `function` and the offending
// value. The library is initialised.
int gpsh_check_ready(const char *function);
// Finds the context that a handle stands for.
int gpsh_check_context(const char *function, gpushmem_ctx_t ctx, struct gpsh_context **out);
// With GPUSHMEM_CHECK=1: it is a context of this PE, or one that was destroyed.
int gpsh_check_no_stranger(const char *function, const struct gpsh_context *ctx);
// Finds the team that a handle stands for.
int gpsh_check_team(const char *function, gpushmem_team_t handle, struct gpsh_team **out);
// The PE exists.
int gpsh_check_pe_number(const char *function, int pe);
// The PE exists and has not failed.
int gpsh_check_pe(const char *function, int pe);
// The PE as above, and [sym, sym + bytes) as below; any address if bytes is 0.
int gpsh_check_remote(const char *function, const void *sym, size_t bytes, int pe);
// [sym, sym + bytes) inside this PE's heap, and with GPUSHMEM_CHECK=1 inside one block of it.
int gpsh_check_heap(const char *function, const void *sym, size_t bytes);
// A multiple of the word's size.
int gpsh_check_aligned(const char *function, const void *sym, size_t bytes);
// A signal word of `pe`, and what is to be done to it.
int gpsh_check_signal(const char *function, const uint64_t *word, int op, int pe);
// Words of this PE's heap to wait for, and how they are compared.
int gpsh_check_words(const char *function, const void *words, size_t nelems, size_t width, int cmp);
// Local memory of a transfer that is not empty.
int gpsh_check_local(const char *function, const void *local);
// A strided transfer: strides in elements of `size` bytes. *span: bytes from the first to the end
// of the last element of `sym`.
int gpsh_strided_check(const char *function, const void *sym, ptrdiff_t remote_stride,
                       const void *local, ptrdiff_t local_stride, size_t nelems, size_t size,
                       int pe, size_t *span);

// ---- Streams ----

// No kernel will carry a stream's operation out: the host does. Nothing can be in the only stream
// there is, which is NULL.
bool gpsh_stream_is_done_now(void);
int gpsh_check_stream(const char *function, gpushmem_stream_t stream);
// [sym, sym + bytes), which is symmetric, is in the heap: the kernels that carry out a stream's
// operations know no other memory. What is done at once may name other symmetric objects, too.
int gpsh_check_stream_object(const char *function, const void *sym, size_t bytes);

#endif
