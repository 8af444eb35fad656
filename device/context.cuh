// SPDX-License-Identifier: BSD-3-Clause
// Contexts: which rings a context's operations go through, its fence and quiet, and how kernels get
// one. A context with a ring of its own is a handle with that ring alone: what works with a handle
// works with it. docs/design/kernels.md says why it is made like this.
#ifndef GPUSHMEM_DEVICE_CONTEXT_CUH
#define GPUSHMEM_DEVICE_CONTEXT_CUH

#include "gpushmem/device/sync.cuh"

// The handle whose rings serve the context: its own, or the default's.
GPSH_DEV const struct gpushmem_dev &gpsh_dev_via(const struct gpushmem_dev &dev,
                                                 const struct gpushmem_dev_ctx &ctx)
{
    return ctx.number - 1 < dev.n_contexts ? dev.contexts[ctx.number - 1].dev : *dev.self;
}

GPSH_DEV bool gpsh_dev_ctx_is_none(const struct gpushmem_dev_ctx &ctx)
{
    return ctx.number == GPUSHMEM_DEV_CTX_NONE;
}

enum {
    GPSH_DEV_CTX_OPTIONS = GPUSHMEM_CTX_SERIALIZED | GPUSHMEM_CTX_PRIVATE | GPUSHMEM_CTX_NOSTORE
};

GPSH_DEV void gpsh_dev_ctx_refuse(const struct gpushmem_dev &dev,
                                  const struct gpushmem_dev_ctx &ctx)
{
    const bool filled = !(ctx.options & ~GPSH_DEV_CTX_OPTIONS);
    gpsh_dev_record(&dev.fault[GPUSHMEM_FAULT_FIRST], &dev.fault_claim[GPUSHMEM_FAULT_FIRST],
                    GPUSHMEM_ERR_INVALID, -1, nullptr, 0,
                    {GPUSHMEM_FAULT_CONTEXT, !filled, dev.n_contexts, ctx.number});
}

// GPUSHMEM_DEVICE_CHECKS: refuses a context that does not exist (any more). Options that there are
// not tell one that was never filled in from the default context.
GPSH_DEV bool gpsh_dev_check_ctx(const struct gpushmem_dev &dev, const struct gpushmem_dev_ctx &ctx)
{
#if GPSH_DEV_CHECKS
    const uint32_t number = ctx.number;
    const bool filled = !(ctx.options & ~GPSH_DEV_CTX_OPTIONS);
    if (filled &&
        (!number || (number <= dev.n_contexts && ctx.tag &&
                     gpsh_dev_load32_relaxed_gpu(&dev.contexts[number - 1].tag) == ctx.tag)))
        return true;
    gpsh_dev_ctx_refuse(dev, ctx);
    return false;
#else
    return true;
#endif
}

// ---- Contexts of teams ----

// The team's entry, or nullptr: this PE is in no such team.
GPSH_DEV const struct gpushmem_dev_team *gpsh_dev_ctx_team(const struct gpushmem_dev &dev, int team)
{
    int slot = team & GPUSHMEM_TEAM_SLOT_MASK;
    bool known = slot < (int)dev.n_teams && dev.teams[slot].team == team && team >= 0;
    return known ? &dev.teams[slot] : nullptr;
}

// -1, which every call refuses as it does other PEs that do not exist: the threads of a warp may
// name different ones, and go on together.
GPSH_DEV_CALL int gpsh_dev_ctx_rank_pe(const struct gpushmem_dev &dev, int handle, int rank)
{
    GPSH_DEV_BOUNDS();
    const struct gpushmem_dev_team *team = gpsh_dev_ctx_team(dev, handle);
    uint64_t n = team ? (uint64_t)team->n : 0;
    if ((uint64_t)(unsigned)rank < n)
        return team->stride ? team->start + rank * team->stride : team->pes[rank];
    gpsh_dev_record(&dev.fault[GPUSHMEM_FAULT_FIRST], &dev.fault_claim[GPUSHMEM_FAULT_FIRST],
                    team ? GPUSHMEM_ERR_PE : GPUSHMEM_ERR_INVALID, rank, nullptr, 0,
                    {GPUSHMEM_FAULT_RANK, 0, n, (uint64_t)handle});
    return -1;
}

// The PE of the job that a call on the context names.
GPSH_DEV int gpsh_dev_ctx_pe(const struct gpushmem_dev &dev, const struct gpushmem_dev_ctx &ctx,
                             int pe)
{
    return ctx.team == GPUSHMEM_TEAM_WORLD ? pe : gpsh_dev_ctx_rank_pe(*dev.self, ctx.team, pe);
}

// Without GPUSHMEM_CTX_NOSTORE, or where the context's own puts are stores.
GPSH_DEV bool gpsh_dev_ctx_has_stores(const struct gpushmem_dev &dev,
                                      const struct gpushmem_dev_ctx &ctx)
{
    return !(ctx.options & GPUSHMEM_CTX_NOSTORE) || !(dev.flags & GPUSHMEM_DEV_NO_DIRECT);
}

GPSH_DEV void gpsh_dev_ctx_fence(const struct gpushmem_dev &dev, const struct gpushmem_dev_ctx &ctx)
{
    if (gpsh_dev_ctx_is_none(ctx) || !gpsh_dev_check_ctx(dev, ctx))
        return;
    if (gpsh_dev_ctx_has_stores(dev, ctx))
        gpsh_dev_fence_sys();
    gpsh_dev_fence_rings(dev, gpsh_dev_via(dev, ctx));
}

// Without stores of its own the thread has nothing to wait for after the rings: it acquires what
// was fetched.
GPSH_DEV void gpsh_dev_ctx_quiet(const struct gpushmem_dev &dev, const struct gpushmem_dev_ctx &ctx)
{
    if (gpsh_dev_ctx_is_none(ctx) || !gpsh_dev_check_ctx(dev, ctx))
        return;
    if (!(dev.flags & GPUSHMEM_DEV_ALL_DIRECT))
        gpsh_dev_quiet_away(gpsh_dev_via(dev, ctx));
    if (gpsh_dev_ctx_has_stores(dev, ctx))
        gpsh_dev_fence_full_sys();
    else
        gpsh_dev_fence_acquire_sys();
}

GPSH_DEV void gpsh_dev_ctx_pe_quiet(const struct gpushmem_dev &dev,
                                    const struct gpushmem_dev_ctx &ctx, int pe)
{
    if (!gpsh_dev_ctx_is_none(ctx) && gpsh_dev_check_ctx(dev, ctx))
        gpsh_dev_pe_quiet(dev, gpsh_dev_via(dev, ctx), gpsh_dev_ctx_pe(dev, ctx, pe));
}

// ---- Making and ending ----

// Asks the proxy for one. The invalid context with a negative status if that fails.
GPSH_DEV_CALL struct gpushmem_dev_ctx gpsh_dev_ctx_claim(const struct gpushmem_dev &dev, int team,
                                                         long options)
{
    GPSH_DEV_BOUNDS();
    const int bad = GPUSHMEM_ERR_INVALID;
    if (options & ~(long)GPSH_DEV_CTX_OPTIONS ||
        (team != GPUSHMEM_TEAM_WORLD && !gpsh_dev_ctx_team(dev, team)))
        return {GPUSHMEM_DEV_CTX_NONE, (uint32_t)bad, 0, 0};
    struct gpushmem_dev_ctx ctx = {0, 0, (uint32_t)options, team};
    if (dev.flags & GPUSHMEM_DEV_ALL_DIRECT)
        return ctx; // there is nothing to wait for
    uint64_t answer = 0;
    int status = gpsh_dev_push_and_wait(
        dev, gpsh_dev_command(GPUSHMEM_CMD_CONTEXT_CLAIM, -1, nullptr, nullptr, 0), &answer);
    if (status)
        return {GPUSHMEM_DEV_CTX_NONE, (uint32_t)status, 0, 0};
    ctx.number = (uint32_t)answer;
    ctx.tag = (uint32_t)(answer >> 32);
    if (ctx.number)
        gpsh_dev_store32_relaxed_gpu(&dev.contexts[ctx.number - 1].tag, ctx.tag);
    return ctx;
}

// Gives the ring and its queues back, once everything before has been carried out. When it returns,
// another context may have them. The thread that takes the tag does it, with or without
// GPUSHMEM_DEVICE_CHECKS: nobody reads a ring that was given back, so a second one would wait for
// an answer in vain, and the next to have the ring would find its command there.
GPSH_DEV_CALL void gpsh_dev_ctx_free(const struct gpushmem_dev &dev, struct gpushmem_dev_ctx ctx)
{
    GPSH_DEV_BOUNDS();
    const uint32_t index = ctx.number - 1;
    bool exists = index < dev.n_contexts &&
                  gpsh_dev_load32_relaxed_gpu(&dev.contexts[index].tag) == ctx.tag && ctx.tag;
    if (exists || !ctx.number)
        gpsh_dev_ctx_quiet(dev, ctx);
    if (!ctx.number)
        return;
    if (!exists || gpsh_dev_atomic<uint32_t>(&dev.contexts[index].tag, GPUSHMEM_AMO_CSWAP, 0,
                                             ctx.tag) != ctx.tag)
        return gpsh_dev_ctx_refuse(dev, ctx);
    struct gpushmem_command c =
        gpsh_dev_command(GPUSHMEM_CMD_CONTEXT_FREE, -1, nullptr, nullptr, 0);
    c.operand = ctx.tag;
    uint64_t nothing;
    gpsh_dev_push_and_wait(gpsh_dev_via(dev, ctx), c, &nothing);
}

// *ctx is one place for all threads of the scope.
template <class Scope>
GPSH_DEV int gpsh_dev_ctx_create(const struct gpushmem_dev &dev, int team, long options,
                                 struct gpushmem_dev_ctx *ctx)
{
    Scope::sync();
    if (Scope::rank() == 0)
        *ctx = gpsh_dev_ctx_claim(*dev.self, team, options);
    Scope::sync();
    return gpsh_dev_ctx_is_none(*ctx) ? (int)(int32_t)ctx->tag : 0;
}

template <class Scope>
GPSH_DEV void gpsh_dev_ctx_destroy(const struct gpushmem_dev &dev,
                                   const struct gpushmem_dev_ctx &ctx)
{
    Scope::sync();
    if (Scope::rank() == 0 && !gpsh_dev_ctx_is_none(ctx) && gpsh_dev_check_ctx(dev, ctx))
        gpsh_dev_ctx_free(*dev.self, ctx);
    Scope::sync();
}

#endif
