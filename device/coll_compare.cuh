// SPDX-License-Identifier: BSD-3-Clause
// GPUSHMEM_CHECK=1: before a collective of a kernel begins, each member tells all others what it
// calls, and compares. That is one message to each, and one hop more.
#ifndef GPUSHMEM_DEVICE_COLL_COMPARE_CUH
#define GPUSHMEM_DEVICE_COLL_COMPARE_CUH

#include "gpushmem/device/team.cuh"

// Where members keep what `rank` calls. Two sets: a member is at most one operation ahead.
GPSH_DEV struct gpushmem_coll_call *gpsh_dev_call_of(const struct gpsh_dev_coll &c, int rank)
{
    uint64_t set = (c.epoch & 1) * (uint64_t)(unsigned)c.room;
    return (struct gpushmem_coll_call *)(c.scratch + gpushmem_coll_calls_at(c.room)) + set + rank;
}

// What all have alike. `status`: what is wrong with the call, if there is something. `grid`: how
// many blocks call, 0: one thread, warp or block.
GPSH_DEV_CALL void gpsh_dev_call_fill(const struct gpsh_dev_coll &c,
                                      const struct gpushmem_coll_op &op, int status, unsigned grid)
{
    GPSH_DEV_BOUNDS();
    uint64_t *words = gpsh_dev_call_of(c, c.me)->words;
    bool moves = op.kind > GPUSHMEM_COLL_BARRIER, counts = op.kind != GPUSHMEM_COLL_COLLECT;
    bool strided = op.kind == GPUSHMEM_COLL_ALLTOALLS;
    bool places = moves && counts && op.n;
    words[GPUSHMEM_COLL_CALL_WHAT] = gpsh_dev_coll_name(op) | (uint64_t)(uint8_t)-status << 24 |
                                     (uint64_t)op.width << 32 | (uint64_t)grid << 40;
    words[GPUSHMEM_COLL_CALL_NELEMS] = counts ? op.n : 0;
    words[GPUSHMEM_COLL_CALL_ROOT] = (uint64_t)(int64_t)op.root;
    words[GPUSHMEM_COLL_CALL_DST] = strided ? (uint64_t)op.dest_stride : 0;
    words[GPUSHMEM_COLL_CALL_SST] = strided ? (uint64_t)op.source_stride : 0;
    const char *dest = (const char *)gpushmem_coll_all_dest(&op, c.me),
               *source = (const char *)gpushmem_coll_all_source(&op, c.me);
    words[GPUSHMEM_COLL_CALL_DEST] = places ? (uint64_t)(dest - c.dev.heap) : 0;
    words[GPUSHMEM_COLL_CALL_SOURCE] =
        places && op.kind != GPUSHMEM_COLL_BROADCAST ? (uint64_t)(source - c.dev.heap) : 0;
}

GPSH_DEV_CALL void gpsh_dev_call_send(const struct gpsh_dev_coll &c, int rank)
{
    GPSH_DEV_BOUNDS();
    struct gpushmem_coll_call *call = gpsh_dev_call_of(c, c.me);
    char *there = gpsh_dev_coll_there(c, call, rank);
    if (!there) {
        gpsh_dev_ring_put_with_word(*c.dev.self, call->words, call->words, sizeof call->words,
                                    &call->epoch, c.epoch, gpsh_dev_coll_pe(c, rank));
        return;
    }
    struct gpushmem_coll_call *place = (struct gpushmem_coll_call *)there;
    for (int i = 0; i < GPUSHMEM_COLL_CALL_WORDS; i++)
        place->words[i] = call->words[i];
    gpsh_dev_fence_sys(); // the words are there before the number
    gpsh_dev_store64_sys(&place->epoch, c.epoch);
}

// The first word in which a member differs from the first one; else a member whose call is bad, and
// why; else status 0.
struct gpsh_dev_call_difference {
    int status, rank, word;
    uint64_t theirs, firsts;
};
GPSH_DEV_CALL struct gpsh_dev_call_difference gpsh_dev_call_find(const struct gpsh_dev_coll &c)
{
    GPSH_DEV_BOUNDS();
    const uint64_t bad = (uint64_t)0xff << 24;
    const uint64_t *first = gpsh_dev_call_of(c, 0)->words;
    for (int r = 0; r < c.n; r++) {
        const uint64_t *words = gpsh_dev_call_of(c, r)->words;
        for (int i = 0; i < GPUSHMEM_COLL_CALL_WORDS; i++) {
            uint64_t mask = i == GPUSHMEM_COLL_CALL_WHAT ? ~bad : ~(uint64_t)0;
            uint64_t theirs = gpsh_dev_load64_value_sys(&words[i]) & mask;
            uint64_t firsts = gpsh_dev_load64_value_sys(&first[i]) & mask;
            if (theirs != firsts)
                return {GPUSHMEM_ERR_ASYMMETRY, r, i, theirs, firsts};
        }
    }
    for (int r = 0; r < c.n; r++) {
        uint64_t what = gpsh_dev_load64_value_sys(gpsh_dev_call_of(c, r)->words);
        if (what & bad)
            return {-(int)(what >> 24 & 0xff), r, GPUSHMEM_COLL_CALL_WORDS, 0, 0};
    }
    return {0, 0, 0, 0, 0};
}

GPSH_DEV void gpsh_dev_call_report(const struct gpsh_dev_coll &c,
                                   const struct gpsh_dev_call_difference &d)
{
    gpsh_dev_record(&c.dev.fault[GPUSHMEM_FAULT_FIRST], &c.dev.fault_claim[GPUSHMEM_FAULT_FIRST],
                    d.status, gpsh_dev_coll_pe(c, d.rank),
                    (const void *)gpsh_dev_load64_value_sys(gpsh_dev_call_of(c, c.me)->words),
                    (uint64_t)gpsh_dev_coll_pe(c, 0),
                    {GPUSHMEM_FAULT_CALL, d.word, d.firsts, d.theirs});
}

// Whether the members compare their calls: the same for all threads of the group.
GPSH_DEV bool gpsh_dev_coll_compares(struct gpsh_dev_coll *c)
{
    if (!(c->flags & GPUSHMEM_DEV_TEAM_CHECKED))
        return false;
    c->status = gpsh_dev_group_agree(c->group, c->status);
    return !c->status;
}

// Each thread tells and hears some of the members. The same for all threads: 0, or why they gave
// up.
GPSH_DEV int gpsh_dev_call_exchange(struct gpsh_dev_coll *c)
{
    for (int r = (int)c->group.rank; r < c->n; r += (int)c->group.size)
        if (r != c->me)
            gpsh_dev_call_send(*c, r);
    for (int r = (int)c->group.rank; r < c->n; r += (int)c->group.size)
        if (r != c->me)
            gpsh_dev_coll_await(c, &gpsh_dev_call_of(*c, r)->epoch, c->epoch);
    c->status = gpsh_dev_group_agree(c->group, c->status);
    if (c->status && c->group.rank == 0)
        gpsh_dev_coll_poison(*c);
    return c->status;
}

// By all threads of the group, none of which has given up. Not 0, the same for all: the operation
// is not to begin, on any member, and its number is used up.
GPSH_DEV_CALL int gpsh_dev_coll_compared(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op,
                                         int status, unsigned grid)
{
    GPSH_DEV_BOUNDS();
    if (gpsh_dev_group_incomplete(c->group)) { // each that is there refuses the call for all
        c->group = {0, 1, gpsh_dev_group::thread};
        status = GPUSHMEM_ERR_INVALID;
    }
    if (c->group.rank == 0) {
        gpsh_dev_call_fill(*c, op, status, grid);
        gpsh_dev_fence_sys(); // a NIC reads it
    }
    gpsh_dev_group_sync(c->group);
    struct gpsh_dev_call_difference found = {gpsh_dev_call_exchange(c), 0, 0, 0, 0};
    if (!found.status) {
        found = gpsh_dev_call_find(*c);
        if (found.status && !status && c->group.rank == 0)
            gpsh_dev_call_report(*c, found);
    }
    if (found.status) {
        gpsh_dev_coll_count(*c);
        gpsh_dev_group_sync(c->group); // the next operation's number is there
    }
    return found.status;
}

GPSH_DEV int gpsh_dev_coll_compare(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op,
                                   int status, unsigned grid = 0)
{
    struct gpsh_dev_coll rare = c;
    struct gpushmem_coll_op compared = op;
    return gpsh_dev_coll_compared(&rare, compared, status, grid);
}

#endif
