// SPDX-License-Identifier: BSD-3-Clause
#include "api/argument.h"

#include <string.h>

#include "core/config.h"
#include "core/cpu.h"
#include "job/job.h"
#include "memory/blocks.h"
#include "memory/heap.h"
#include "memory/place.h"
#include "memory/statics.h"
#include "proxy/emulation.h"

int gpsh_check_ready(const char *function)
{
    return gpsh_check_initialised(function + strlen("gpushmem_"));
}

// The rank that a call of this thread named last and that there is not.
static _Thread_local struct {
    int rank, ranks;      // it, and those of the team; -1: the context was destroyed
    const void *stranger; // not NULL: what was passed for a context
} no_rank;

int gpsh_no_rank(const struct gpsh_context *ctx, int rank)
{
    no_rank.rank = rank;
    no_rank.stranger = gpsh_contexts_lack(ctx) ? ctx : NULL;
    if (!no_rank.stranger)
        no_rank.ranks = gpsh_context_is_destroyed(ctx) ? -1 : ctx->team_n;
    return GPSH_NO_RANK;
}

static int fail_destroyed(const char *function)
{
    return gpsh_fail(GPUSHMEM_ERR_INVALID,
                     "%s: the context was destroyed; create one with gpushmem_ctx_create, or use "
                     "GPUSHMEM_CTX_DEFAULT",
                     function);
}

static int fail_stranger(const char *function, const void *ctx)
{
    return gpsh_fail(GPUSHMEM_ERR_INVALID,
                     "%s: %p is no context of this PE; pass one of gpushmem_ctx_create, or "
                     "GPUSHMEM_CTX_DEFAULT",
                     function, ctx);
}

int gpsh_check_no_stranger(const char *function, const struct gpsh_context *ctx)
{
    bool looks = GPSH_UNLIKELY(gpsh_settings()->check);
    return looks && gpsh_contexts_lack(ctx) ? fail_stranger(function, ctx) : 0;
}

int gpsh_check_context(const char *function, gpushmem_ctx_t ctx, struct gpsh_context **out)
{
    if (ctx == GPUSHMEM_CTX_INVALID)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: the context is GPUSHMEM_CTX_INVALID; create one with "
                         "gpushmem_ctx_create, or use GPUSHMEM_CTX_DEFAULT",
                         function);
    *out = gpsh_context_of(ctx);
    int status = gpsh_check_no_stranger(function, *out);
    return status == 0 && gpsh_context_is_destroyed(*out) ? fail_destroyed(function) : status;
}

int gpsh_check_team(const char *function, gpushmem_team_t handle, struct gpsh_team **out)
{
    int status = gpsh_check_ready(function);
    if (status < 0)
        return status;
    *out = gpsh_team_of(handle);
    if (*out)
        return 0;
    if (handle == GPUSHMEM_TEAM_INVALID)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: the team is GPUSHMEM_TEAM_INVALID: this PE is in no team there",
                         function);
    return gpsh_fail(GPUSHMEM_ERR_INVALID,
                     "%s: %d is no team of PE %d: it was destroyed, or this PE is no member",
                     function, handle, gpsh_job()->my_pe);
}

int gpsh_check_pe_number(const char *function, int pe)
{
    int status = gpsh_check_ready(function);
    if (status < 0 || (pe >= 0 && pe < gpsh_job()->n_pes))
        return status;
    if (pe == GPSH_NO_RANK && no_rank.stranger)
        return fail_stranger(function, no_rank.stranger);
    if (pe == GPSH_NO_RANK && no_rank.ranks < 0)
        return fail_destroyed(function);
    if (pe == GPSH_NO_RANK && no_rank.ranks > 0)
        return gpsh_fail(GPUSHMEM_ERR_PE,
                         "%s: the team of the context has no rank %d; ranks are 0 to %d", function,
                         no_rank.rank, no_rank.ranks - 1);
    return gpsh_fail(GPUSHMEM_ERR_PE, "%s: there is no PE %d; PEs are 0 to %d", function, pe,
                     gpsh_job()->n_pes - 1);
}

int gpsh_check_pe(const char *function, int pe)
{
    int status = gpsh_check_pe_number(function, pe);
    if (status < 0)
        return status;
    const struct gpsh_peer *peer = &gpsh_job()->peers[pe];
    int error = atomic_load_explicit(&peer->error, memory_order_acquire);
    if (error != 0)
        return gpsh_fail(error, "%s: PE %d cannot be reached any more: %s", function, pe,
                         peer->reason);
    return 0;
}

int gpsh_check_heap(const char *function, const void *sym, size_t bytes)
{
    if (gpsh_is_symmetric(sym, bytes))
        return gpsh_settings()->check ? gpsh_blocks_check(function, sym, bytes) : 0;
    struct gpsh_segment segment;
    const char *why = gpsh_statics_why();
    char heap[GPSH_PLACE_RANGE_BYTES];
    if (gpsh_segment_find(sym, 0, &segment))
        return gpsh_fail(GPUSHMEM_ERR_ADDRESS,
                         "%s: %zu bytes at %p reach beyond the end of %s (%p to %p)", function,
                         bytes, sym, segment.name, (void *)segment.base,
                         (void *)(segment.base + segment.bytes));
    gpsh_place_range(heap);
    if (!sym)
        return gpsh_fail(GPUSHMEM_ERR_ADDRESS,
                         "%s: NULL is not in the symmetric heap (%s); did gpushmem_malloc fail?",
                         function, heap);
    if (!gpsh_in_user_heap(gpsh_offset(sym), 1))
        return gpsh_fail(GPUSHMEM_ERR_ADDRESS,
                         "%s: %p is not in the symmetric heap (%s); pass an address "
                         "from gpushmem_malloc%s%s",
                         function, sym, heap,
                         why[0] ? ". Static data of the program is not symmetric here: "
                         : gpsh_stream_is_done_now()
                             ? ", or a global or static variable of the program"
                             : ", or, outside streams, a global or static variable of the program",
                         why);
    return gpsh_fail(GPUSHMEM_ERR_ADDRESS,
                     "%s: %zu bytes at %p reach beyond the end of the symmetric heap (%s)%s",
                     function, bytes, sym, heap,
                     bytes > PTRDIFF_MAX ? "; was the number of elements negative?" : "");
}

int gpsh_check_remote(const char *function, const void *sym, size_t bytes, int pe)
{
    int status = gpsh_check_pe(function, pe);
    if (status < 0 || bytes == 0)
        return status;
    status = gpsh_check_heap(function, sym, bytes);
    if (status < 0)
        return status;
    if (gpsh_direct_base(pe) == NULL && gpsh_job()->peers[pe].data < 0)
        return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE, "%s: no transport reaches PE %d: %s", function,
                         pe, gpsh_job()->peers[pe].reason);
    return 0;
}

int gpsh_check_aligned(const char *function, const void *sym, size_t bytes)
{
    if (((uintptr_t)sym & (bytes - 1)) == 0)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_ALIGNMENT,
                     "%s: %p is not a multiple of %zu, the size of its word", function, sym, bytes);
}

int gpsh_check_signal(const char *function, const uint64_t *word, int op, int pe)
{
    int status = gpsh_check_remote(function, word, sizeof *word, pe);
    if (status == 0)
        status = gpsh_check_aligned(function, word, sizeof *word);
    if (status < 0 || op == GPUSHMEM_SIGNAL_SET || op == GPUSHMEM_SIGNAL_ADD)
        return status;
    return gpsh_fail(GPUSHMEM_ERR_INVALID,
                     "%s: signal operation %d is neither GPUSHMEM_SIGNAL_SET (%d) nor "
                     "GPUSHMEM_SIGNAL_ADD (%d)",
                     function, op, GPUSHMEM_SIGNAL_SET, GPUSHMEM_SIGNAL_ADD);
}

int gpsh_check_words(const char *function, const void *words, size_t nelems, size_t width, int cmp)
{
    int status = gpsh_check_ready(function);
    if (status < 0)
        return status;
    if (cmp < GPUSHMEM_CMP_EQ || cmp > GPUSHMEM_CMP_GE)
        return gpsh_fail(
            GPUSHMEM_ERR_INVALID,
            "%s: comparison %d is none of GPUSHMEM_CMP_EQ (%d) to GPUSHMEM_CMP_GE (%d)", function,
            cmp, GPUSHMEM_CMP_EQ, GPUSHMEM_CMP_GE);
    if (nelems == 0)
        return 0;
    status = gpsh_check_heap(function, words, gpsh_bytes(nelems, width));
    return status < 0 ? status : gpsh_check_aligned(function, words, width);
}

int gpsh_check_local(const char *function, const void *local)
{
    if (local != NULL)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_INVALID,
                     "%s: the local address is NULL, but the transfer is not empty", function);
}

bool gpsh_stream_is_done_now(void)
{
    return !gpsh_heap()->device && !gpsh_emulation();
}

int gpsh_check_stream(const char *function, gpushmem_stream_t stream)
{
    if (!gpsh_stream_is_done_now() || !stream)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                     "%s: the symmetric heap is in host memory, so nothing can be enqueued in "
                     "stream %p of a GPU; set GPUSHMEM_HEAP_KIND=device, or pass NULL to have it "
                     "done at once",
                     function, (void *)stream);
}

int gpsh_check_stream_object(const char *function, const void *sym, size_t bytes)
{
    if (gpsh_stream_is_done_now() || !bytes || gpsh_in_user_heap(gpsh_offset(sym), bytes))
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_ADDRESS,
                     "%s: %p is static data of the program, which is not in the symmetric heap: "
                     "streams and kernels reach no other symmetric memory; pass an address from "
                     "gpushmem_malloc",
                     function, sym);
}
