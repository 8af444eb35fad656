// SPDX-License-Identifier: BSD-3-Clause
// A collective of the host in a straight line: the call, what is wrong with it, its schedule.
#include "api/coll.h"

#include <stdio.h>

#include "api/argument.h"
#include "comm/collective.h"
#include "core/cpu.h"
#include "core/team_name.h"
#include "gpushmem/coll.h"
#include "memory/heap.h"
#include "observe/call.h"
#include "proxy/device_side.h"
#include "stream/coll_choice.h"

// ---- What is wrong with a call ----

// Which of dest and source have a block of each member, and where one may lie in the other: a
// member reads its own block before it writes it.
static const struct shape {
    bool dest_all, source_all;
    enum { APART, SAME, OWN_OF_DEST, OWN_OF_SOURCE } in_place;
} shapes[GPUSHMEM_COLL_KINDS] = {
    [GPUSHMEM_COLL_BROADCAST] = {false, false, SAME},
    [GPUSHMEM_COLL_FCOLLECT] = {true, false, OWN_OF_DEST},
    [GPUSHMEM_COLL_ALLTOALL] = {true, true, APART},
    [GPUSHMEM_COLL_ALLTOALLS] = {true, true, APART},
    [GPUSHMEM_COLL_REDUCE] = {false, false, SAME},
    [GPUSHMEM_COLL_REDUCESCATTER] = {false, true, OWN_OF_SOURCE},
    [GPUSHMEM_COLL_INSCAN] = {false, false, SAME},
    [GPUSHMEM_COLL_EXSCAN] = {false, false, SAME},
};

// Bytes from the first to the last element of `blocks`; SIZE_MAX if that overflows.
static size_t span(const struct gpsh_coll *c, size_t blocks, ptrdiff_t stride)
{
    size_t elements = gpsh_bytes(c->nelems, blocks);
    if (!elements || elements == SIZE_MAX || GPSH_LIKELY(stride == 1))
        return elements == SIZE_MAX ? elements : gpsh_bytes(elements, c->size);
    size_t apart = gpsh_bytes(elements - 1, (size_t)stride);
    return apart == SIZE_MAX ? apart : gpsh_bytes(apart + 1, c->size);
}

static bool is_in_place(const struct gpsh_coll *c)
{
    size_t mine = (size_t)c->team->my_rank * c->nelems * c->size;
    switch (shapes[c->kind].in_place) {
    case SAME: return c->dest == c->source;
    case OWN_OF_DEST: return c->source == c->dest + mine;
    case OWN_OF_SOURCE: return c->dest == c->source + mine;
    default: return false;
    }
}

// What may be done about it.
static const char *in_place_rule(const struct gpsh_coll *c)
{
    switch (shapes[c->kind].in_place) {
    case SAME: return "the two are apart, or at the same address";
    case OWN_OF_DEST: return "the two are apart, or source is this PE's own part of dest";
    case OWN_OF_SOURCE: return "the two are apart, or dest is this PE's own part of source";
    default: return "here the two are always apart";
    }
}

static int check_overlap(const struct gpsh_coll *c, size_t to, size_t from)
{
    if (!to || !from || c->dest + to <= c->source || c->source + from <= c->dest || is_in_place(c))
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_INVALID,
                     "%s: dest (%zu bytes at %p) overlaps source (%zu bytes at %p); %s", c->what,
                     to, (void *)c->dest, from, (const void *)c->source, in_place_rule(c));
}

int gpsh_coll_check(const struct gpsh_coll *c, unsigned checks)
{
    const struct shape *shape = &shapes[c->kind];
    size_t n = (size_t)c->team->n;
    if (GPSH_UNLIKELY(c->root < 0 || c->root >= c->team->n))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: root %d is no member of %s, which has %d: pass 0 to %d", c->what,
                         c->root, gpsh_team_name(c->team->handle).text, c->team->n, c->team->n - 1);
    if (GPSH_UNLIKELY(c->dst < 1 || c->sst < 1))
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: strides %td and %td; each is at least 1",
                         c->what, c->dst, c->sst);
    // How much the dest of a collect holds is known when all have told their counts.
    bool unread = checks & GPSH_CHECK_ROOTS_SOURCE && c->kind == GPUSHMEM_COLL_BROADCAST &&
                  c->team->my_rank != c->root;
    bool alike = shape->dest_all == shape->source_all && c->dst == c->sst;
    size_t to = span(c, shape->dest_all ? n : 1, c->dst), from = to;
    if (unread || !alike)
        from = unread ? 0 : span(c, shape->source_all ? n : 1, c->sst);
    int status = to ? gpsh_check_heap(c->what, c->dest, to) : 0;
    if (status == 0 && from)
        status = gpsh_check_heap(c->what, c->source, from);
    return status == 0 && checks & GPSH_CHECK_OVERLAP ? check_overlap(c, to, from) : status;
}

// ---- Calls of members, compared ----

int gpsh_coll_compare(const struct gpsh_coll *c, int status, unsigned alike)
{
    static const char *const names[GPSH_CALL_ARGUMENTS] = {
        "element size",         "nelems", "root", "dst", "sst", "dest at heap offset",
        "source at heap offset"};
    struct gpsh_team_call call = {
        .status = status,
        .arguments = {(int64_t)c->size, alike & GPSH_ALIKE_NELEMS ? (int64_t)c->nelems : 0, c->root,
                      c->dst, c->sst, alike & GPSH_ALIKE_DEST ? (int64_t)gpsh_offset(c->dest) : 0,
                      alike & GPSH_ALIKE_SOURCE ? (int64_t)gpsh_offset(c->source) : 0}};
    snprintf(call.function, sizeof call.function, "%s", c->what);
    return gpsh_team_compare(c->team, &call, names, false);
}

// ---- Which schedule ----

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
                            [GPUSHMEM_COLL_FCOLLECT] = gpsh_coll_fcollect_nodes,
                            [GPUSHMEM_COLL_ALLTOALL] = gpsh_coll_alltoall_nodes},
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
    [GPSH_COLL_DOUBLING] = {[GPUSHMEM_COLL_REDUCE] = gpsh_coll_reduce_doubling},
};

// Bytes of a part that go through the members' control words.
static size_t small_most(const struct gpsh_coll *c)
{
    switch (c->kind) {
    case GPUSHMEM_COLL_BROADCAST: return gpsh_team_broadcast_most(c->team);
    case GPUSHMEM_COLL_ALLTOALL:
    case GPUSHMEM_COLL_ALLTOALLS:
    case GPUSHMEM_COLL_REDUCESCATTER: return gpsh_team_alltoall_most(c->team);
    default: return gpsh_team_allgather_most(c->team);
    }
}

// Least and largest numbers, of which the first NaN stays, have the same bits however the fold is
// bracketed, if the order of the ranks is kept.
static bool folds_in_pairs(const struct gpsh_coll *c)
{
    return (c->type == GPSH_FLOAT || c->type == GPSH_DOUBLE) &&
           (c->op == GPSH_MIN || c->op == GPSH_MAX) && c->team->groups->in_order;
}

// Of a team that is not flat.
static int schedule_of(const struct gpsh_coll *c, size_t bytes)
{
    const struct gpsh_team_nodes *nodes = c->team->nodes;
    struct gpsh_coll_team_facts team = {.n = c->team->n, .nodes = nodes ? nodes->n : 0};
    bool half = c->type == GPSH_HALF || c->type == GPSH_BFLOAT16;
    bool wide = half && c->op != GPSH_MIN && c->op != GPSH_MAX;
    if (bytes <= small_most(c))
        team.is |= GPSH_COLL_FITS_WORDS;
    if (bytes <= gpsh_coll_doubling_most(c))
        team.is |= GPSH_COLL_FITS_DOUBLING;
    if (folds_in_pairs(c))
        team.is |= GPSH_COLL_IN_PAIRS;
    if (nodes)
        team.is |= GPSH_COLL_NODE_TEAM | (nodes->in_order ? +GPSH_COLL_IN_ORDER : 0u);
    if (nodes && 2 * (size_t)team.n <= gpsh_team_signals(c->team))
        team.is |= GPSH_COLL_CHAIN_TEAM;
    if (nodes && c->kind == GPUSHMEM_COLL_ALLTOALL &&
        bytes <= gpsh_coll_alltoall_nodes_most(c->team))
        team.is |= GPSH_COLL_FITS_PACKED;
    if (nodes && nodes->smallest > 1 && !gpsh_heap()->device)
        team.is |= GPSH_COLL_NEIGHBORS;
    return gpsh_coll_choose_host(c->kind, &team, bytes, c->type <= GPSH_UINT64, wide);
}

int gpsh_coll_run(const struct gpsh_coll *c)
{
    size_t bytes = c->nelems * c->size;
    if (c->kind == GPUSHMEM_COLL_COLLECT)
        return gpsh_coll_collect(c);
    int schedule = GPSH_COLL_BY_MEMBERS;
    if (GPSH_UNLIKELY(!c->team->flat))
        schedule = schedule_of(c, bytes);
    else if (bytes <= small_most(c))
        schedule = GPSH_COLL_SMALL;
    if (schedule == GPSH_COLL_SMALL)
        return small[c->kind](c);
    if (folds[schedule][c->kind])
        return folds[schedule][c->kind](c);
    int status = gpsh_coll_enter(c);
    return status < 0 ? status : gpsh_coll_leave(c, moves[schedule][c->kind](c));
}

// ---- The calls ----

static int collective(struct gpsh_coll *c, gpushmem_team_t team)
{
    GPSH_CALL(c->what, -1, gpsh_bytes(c->nelems, c->size));
    int status = gpsh_check_team(c->what, team, &c->team);
    if (GPSH_UNLIKELY(status < 0))
        return status;
    bool collects = c->kind == GPUSHMEM_COLL_COLLECT, checked = c->team->checked;
    status = gpsh_coll_check(c, checked ? +GPSH_CHECK_OVERLAP : 0u);
    if (GPSH_UNLIKELY(checked))
        status = gpsh_coll_compare(c, status, collects ? 0u : +GPSH_ALIKE_NELEMS);
    return status < 0 || (c->nelems == 0 && !collects) ? status : gpsh_coll_run(c);
}

// ---- The rows of gpushmem/impl/signatures.h ----

#define REST_OF_PART  .dst = 1, .sst = 1
#define REST_OF_ROOT  .dst = 1, .sst = 1, .root = root
#define REST_OF_APART .dst = dst, .sst = sst
#define DEFINE_ONE(NAME, KIND, FORM, TYPE, ...)                                                    \
    int gpushmem_##NAME(gpushmem_team_t team, GPSH_P_##FORM(TYPE, ))                               \
    {                                                                                              \
        return collective(&(struct gpsh_coll){.what = __func__,                                    \
                                              .kind = GPUSHMEM_COLL_##KIND,                        \
                                              .dest = (char *)dest,                                \
                                              .source = (const char *)source,                      \
                                              .nelems = nelems,                                    \
                                              REST_OF_##FORM,                                      \
                                              __VA_ARGS__},                                        \
                          team);                                                                   \
    }
#define MOVE(NAME, KIND, FORM, PREFIX, TYPE)                                                       \
    DEFINE_ONE(PREFIX##_##NAME, KIND, FORM, TYPE, .size = sizeof(TYPE))
#define MOVE_MEM(NAME, KIND, FORM, UNUSED) DEFINE_ONE(NAME##mem, KIND, FORM, void, .size = 1)
#define FOLD(NAME, KIND, OP, PREFIX, TYPE)                                                         \
    DEFINE_ONE(PREFIX##_##NAME, KIND, PART, TYPE, .size = sizeof(TYPE),                            \
               .type = GPSH_TYPE_OF(TYPE), .op = GPSH_##OP)

#define DEFINE(NAME, TYPE) GPSH_COLL_MOVES(MOVE, NAME, TYPE)
GPUSHMEM_RMA_TYPES(DEFINE)
GPSH_COLL_MOVES(MOVE_MEM, )
#undef DEFINE
#define DEFINE(NAME, TYPE) GPSH_COLLS_OF_BITS(FOLD, NAME, TYPE)
GPUSHMEM_COLL_BITWISE_TYPES(DEFINE)
#undef DEFINE
#define DEFINE(NAME, TYPE) GPSH_COLLS_OF_ORDER(FOLD, NAME, TYPE)
GPUSHMEM_COLL_ORDERED_TYPES(DEFINE)
#undef DEFINE
#define DEFINE(NAME, TYPE) GPSH_COLLS_OF_SUMS(FOLD, NAME, TYPE)
GPUSHMEM_COLL_TYPES(DEFINE)
DEFINE_ONE(double2_maxloc_reduce, REDUCE, PART, gpushmem_double2, .size = sizeof *dest,
           .type = GPSH_COMPLEXD, .op = GPSH_MAX)

// ---- barrier ----

int gpushmem_barrier(gpushmem_team_t handle)
{
    GPSH_CALL(__func__, -1, 0);
    struct gpsh_team *team;
    int status = gpsh_check_team(__func__, handle, &team);
    if (status < 0)
        return status;
    status = gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES);
    int device = gpsh_device_side_quiet(GPSH_CONTEXT_DEFAULT);
    status = status < 0 ? status : device;
    int met = gpsh_team_sync(team, __func__);
    return status < 0 ? status : met;
}
