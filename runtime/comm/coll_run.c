// SPDX-License-Identifier: BSD-3-Clause
#include "comm/coll.h"
#include "memory/heap.h"
#include "stream/coll_choice.h"

static gpsh_coll_fn *const small[GPUSHMEM_COLL_KINDS] = {
    [GPUSHMEM_COLL_BROADCAST] = gpsh_coll_broadcast_small,
    [GPUSHMEM_COLL_FCOLLECT] = gpsh_coll_fcollect_small,
    [GPUSHMEM_COLL_ALLTOALL] = gpsh_coll_alltoall_small,
    [GPUSHMEM_COLL_ALLTOALLS] = gpsh_coll_alltoalls_small,
    [GPUSHMEM_COLL_REDUCE] = gpsh_coll_reduce_small,
    [GPUSHMEM_COLL_REDUCESCATTER] = gpsh_coll_reducescatter_small,
    [GPUSHMEM_COLL_INSCAN] = gpsh_coll_scan_small,
    [GPUSHMEM_COLL_EXSCAN] = gpsh_coll_scan_small,
};

// Those that move data run between two meetings, those that fold have their own.
static gpsh_coll_fn *const moves[GPSH_COLL_SCHEDULES][GPUSHMEM_COLL_KINDS] = {
    [GPSH_COLL_BY_MEMBERS] = {[GPUSHMEM_COLL_BROADCAST] = gpsh_coll_broadcast_direct,
                              [GPUSHMEM_COLL_FCOLLECT] = gpsh_coll_fcollect_direct,
                              [GPUSHMEM_COLL_ALLTOALL] = gpsh_coll_alltoall_direct,
                              [GPUSHMEM_COLL_ALLTOALLS] = gpsh_coll_alltoalls_direct},
    [GPSH_COLL_BY_NODES] = {[GPUSHMEM_COLL_BROADCAST] = gpsh_coll_broadcast_nodes,
                            [GPUSHMEM_COLL_FCOLLECT] = gpsh_coll_fcollect_nodes},
};
static gpsh_coll_fn *const folds[GPSH_COLL_SCHEDULES][GPUSHMEM_COLL_KINDS] = {
    [GPSH_COLL_BY_MEMBERS] = {[GPUSHMEM_COLL_REDUCE] = gpsh_coll_reduce_shares,
                              [GPUSHMEM_COLL_REDUCESCATTER] = gpsh_coll_reducescatter_shares,
                              [GPUSHMEM_COLL_INSCAN] = gpsh_coll_scan_shares,
                              [GPUSHMEM_COLL_EXSCAN] = gpsh_coll_scan_shares},
    [GPSH_COLL_BY_NODES] = {[GPUSHMEM_COLL_REDUCE] = gpsh_coll_reduce_nodes},
    [GPSH_COLL_CHAIN] = {[GPUSHMEM_COLL_REDUCE] = gpsh_coll_reduce_chain,
                         [GPUSHMEM_COLL_REDUCESCATTER] = gpsh_coll_reducescatter_chain,
                         [GPUSHMEM_COLL_INSCAN] = gpsh_coll_scan_chain,
                         [GPUSHMEM_COLL_EXSCAN] = gpsh_coll_scan_chain},
    [GPSH_COLL_CHAIN_WIDE] = {[GPUSHMEM_COLL_REDUCE] = gpsh_coll_reduce_chain_wide},
};

// Bytes of a part that go through the members' control words.
static size_t small_most(const struct gpsh_coll *c)
{
    switch (c->kind) {
    case GPUSHMEM_COLL_BROADCAST: return gpsh_team_broadcast_most();
    case GPUSHMEM_COLL_ALLTOALL:
    case GPUSHMEM_COLL_ALLTOALLS:
    case GPUSHMEM_COLL_REDUCESCATTER: return gpsh_team_alltoall_most(c->team);
    default: return gpsh_team_allgather_most(c->team);
    }
}

static int schedule_of(const struct gpsh_coll *c, size_t bytes)
{
    const struct gpsh_team_nodes *nodes = c->team->nodes;
    if (!nodes) // all other rows want some
        return GPSH_COLL_BY_MEMBERS;
    struct gpsh_coll_team_facts team = {.n = c->team->n, .nodes = nodes->n};
    bool half = c->type == GPSH_HALF || c->type == GPSH_BFLOAT16;
    bool wide = half && c->op != GPSH_MIN && c->op != GPSH_MAX;
    team.is = GPSH_COLL_NODE_TEAM | (nodes->in_order ? +GPSH_COLL_IN_ORDER : 0u);
    if (2 * (size_t)team.n <= gpsh_team_signals())
        team.is |= GPSH_COLL_CHAIN_TEAM;
    if (nodes->smallest > 1 && !gpsh_heap()->device)
        team.is |= GPSH_COLL_NEIGHBORS;
    return gpsh_coll_choose_host(c->kind, &team, bytes, c->type <= GPSH_UINT64, wide);
}

int gpsh_coll_run(const struct gpsh_coll *c)
{
    size_t bytes = c->nelems * c->size;
    if (c->kind == GPUSHMEM_COLL_COLLECT)
        return gpsh_coll_collect(c);
    if (bytes <= small_most(c))
        return small[c->kind](c);
    int schedule = schedule_of(c, bytes);
    if (folds[schedule][c->kind])
        return folds[schedule][c->kind](c);
    int status = gpsh_coll_enter(c);
    return status < 0 ? status : gpsh_coll_leave(c, moves[schedule][c->kind](c));
}
