// SPDX-License-Identifier: BSD-3-Clause
// Operations between two members in kernels that begin in few instructions. Small ones are carried
// out so, too: each thread has one unit of 8 bytes at most. The packets are those of coll_ll.cuh
// and coll_dense.cuh, and the other member may go that way for the same operation.
// docs/design/collectives.md.
#ifndef GPUSHMEM_DEVICE_COLL_SMALL_CUH
#define GPUSHMEM_DEVICE_COLL_SMALL_CUH

#include "gpushmem/device/coll_dense.cuh"
#include "gpushmem/device/coll_ll.cuh"
#include "gpushmem/device/coll_unit.cuh"

// ---- What is looked at before one begins, with GPUSHMEM_DEVICE_CHECKS ----

// Bytes of source and dest.
GPSH_DEV uint64_t gpsh_dev_coll_span(const struct gpushmem_coll_op &op, int n, bool dest)
{
    uint64_t block = gpsh_dev_bytes(op.n, op.width), members = (uint64_t)n;
    switch (op.kind) {
    case GPUSHMEM_COLL_FCOLLECT: return dest ? gpsh_dev_bytes(block, members) : block;
    case GPUSHMEM_COLL_ALLTOALL: return gpsh_dev_bytes(block, members);
    case GPUSHMEM_COLL_REDUCESCATTER: return dest ? block : gpsh_dev_bytes(block, members);
    case GPUSHMEM_COLL_ALLTOALLS:
        return op.n ? gpsh_dev_span(op.n * members, dest ? op.dest_stride : op.source_stride,
                                    op.width)
                    : 0;
    default: return block;
    }
}

#if GPSH_DEV_CHECKS
GPSH_DEV int gpsh_dev_coll_bad(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op,
                               int which, int64_t seen)
{
    struct gpsh_dev_coll refused = c; // its status is of this call, not of the team
    gpsh_dev_coll_refuse(&refused, GPUSHMEM_FAULT_ARGUMENT, which, (uint64_t)seen, (uint64_t)c.n,
                         gpsh_dev_coll_name(op));
    return refused.status;
}

GPSH_DEV int gpsh_dev_coll_check_numbers(const struct gpsh_dev_coll &c,
                                         const struct gpushmem_coll_op &op)
{
    if (op.kind == GPUSHMEM_COLL_BROADCAST && (unsigned)op.root >= (unsigned)c.n)
        return gpsh_dev_coll_bad(c, op, GPUSHMEM_COLL_CALL_ROOT, op.root);
    if (op.kind == GPUSHMEM_COLL_ALLTOALLS && op.dest_stride < 1)
        return gpsh_dev_coll_bad(c, op, GPUSHMEM_COLL_CALL_DST, op.dest_stride);
    if (op.kind == GPUSHMEM_COLL_ALLTOALLS && op.source_stride < 1)
        return gpsh_dev_coll_bad(c, op, GPUSHMEM_COLL_CALL_SST, op.source_stride);
    return 0;
}
#endif

GPSH_DEV int gpsh_dev_coll_check(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op)
{
#if GPSH_DEV_CHECKS
    int pe = c.dev.my_pe;
    uint64_t call = gpsh_dev_coll_name(op);
    uint64_t to = gpsh_dev_coll_span(op, c.n, true), from = gpsh_dev_coll_span(op, c.n, false);
    bool source_is_own = op.kind != GPUSHMEM_COLL_BROADCAST || op.root == c.me;
    if (int status = gpsh_dev_coll_check_numbers(c, op))
        return status;
    if ((to && !gpsh_dev_check(c.dev, op.dest, to, pe, call)) ||
        (from && source_is_own && !gpsh_dev_check(c.dev, op.source, from, pe, call)))
        return GPUSHMEM_ERR_ADDRESS;
    const char *d = (const char *)op.dest, *s = (const char *)op.source;
    bool apart = d + to <= s || s + from <= d || !to || !from || !source_is_own;
    bool same = d == s && (op.kind == GPUSHMEM_COLL_REDUCE || gpsh_dev_coll_scans(op) ||
                           op.kind == GPUSHMEM_COLL_BROADCAST);
    bool slice = (op.kind == GPUSHMEM_COLL_FCOLLECT && s == gpsh_dev_coll_dest(op, c.me)) ||
                 (op.kind == GPUSHMEM_COLL_REDUCESCATTER && d == gpsh_dev_coll_source(op, c.me));
    if (apart || same || slice || op.kind == GPUSHMEM_COLL_COLLECT)
        return 0;
    return gpsh_dev_coll_bad(c, op, GPUSHMEM_COLL_CALL_DEST, 0);
#else
    return 0;
#endif
}

// ---- The operation ----

enum {
    GPSH_DEV_NOT_SMALL = 1,
    GPSH_DEV_SMALL_SLOT = GPUSHMEM_COLL_KERNEL_LL / 2, // gpushmem_coll_ll_place of two members
};

// As far as the arguments say: `size` threads have a unit each at most. Blocks that are larger than
// a thread or a warp can take so go another way on all members, whatever their scopes.
GPSH_DEV bool gpsh_dev_coll_may_be_small(unsigned size, const struct gpushmem_coll_op &op)
{
    const unsigned all = GPUSHMEM_COLL_KERNEL_PACKETS_OF_TWO,
                   most = size < all / GPSH_LL_UNIT ? size * GPSH_LL_UNIT : all;
    return op.n - 1 < most && gpsh_dev_coll_bytes(op) <= most && op.kind != GPUSHMEM_COLL_COLLECT &&
           op.kind != GPUSHMEM_COLL_ALLTOALLS && !gpushmem_coll_is_wide(op.kind, op.type, op.fold);
}

// What packets of the other kind carry (gpsh_dev_coll_way).
GPSH_DEV bool gpsh_dev_coll_may_be_dense(const struct gpushmem_coll_op &op)
{
    const unsigned most = GPSH_DENSE_KERNEL_MOST;
    uint64_t bytes = gpsh_dev_coll_bytes(op);
    bool packets = bytes <= GPUSHMEM_COLL_KERNEL_PACKETS_OF_TWO &&
                   !gpushmem_coll_is_wide(op.kind, op.type, op.fold);
    return op.n - 1 < most && bytes <= most && !packets && op.kind != GPUSHMEM_COLL_COLLECT &&
           op.kind != GPUSHMEM_COLL_ALLTOALLS;
}

// The operation on bytes, in 32 bits, without multiplications by what can't be here.
GPSH_DEV struct gpushmem_coll_op gpsh_dev_small_op(struct gpushmem_coll_op op)
{
    op.n = (uint32_t)op.n * op.width;
    op.width = 1;
    op.source_stride = op.dest_stride = 1;
    return op;
}

// Loads that wait for each other are most of what is left of such an operation. So they go out in
// two rounds: the team's entry, and then everything that it leads to, whether it is needed or not.
GPSH_DEV bool gpsh_dev_small_team(const struct gpushmem_dev_team &team, int handle, bool dense)
{
    int channel = gpsh_dev_handle_channel(handle);
    uint32_t flags = GPUSHMEM_DEV_TEAM_DIRECT,
             looked_at = ((1u << GPUSHMEM_DEV_TEAM_ROOM_SHIFT) - 1) & ~GPUSHMEM_DEV_TEAM_STREAM;
    if (channel || dense)
        flags |= GPUSHMEM_DEV_TEAM_STREAM, looked_at |= GPUSHMEM_DEV_TEAM_STREAM;
    return gpsh_dev_team_is(team, handle) & (team.n == 2) & ((team.flags & looked_at) == flags) &
           (channel < GPUSHMEM_TEAM_CHANNELS) & (!dense | gpushmem_coll_has_dense(team.flags));
}

// What this thread sends and gets: its unit of the blocks.
struct gpsh_dev_small {
    unsigned at, left; // offset in a block, and bytes of the block from there on
    bool sends, brings;
    gpsh_dev_unit<2> own, sent, in;
};

GPSH_DEV struct gpsh_dev_small gpsh_dev_small_load(const struct gpsh_dev_coll &c,
                                                   const struct gpushmem_coll_op &op)
{
    struct gpsh_dev_small small = {};
    unsigned bytes = (unsigned)gpsh_dev_coll_bytes(op);
    small.at = c.lane * GPSH_LL_UNIT;
    small.left = small.at < bytes ? bytes - small.at : 0;
    small.sends = gpsh_dev_coll_message(op, c.me, 1 - c.me) > 0;
    small.brings = gpsh_dev_coll_message(op, 1 - c.me, c.me) > 0;
    if (!small.left || !gpsh_dev_coll_message(op, c.me, c.me))
        return small;
    const char *block = gpsh_dev_coll_source(op, c.me),
               *others = gpsh_dev_coll_source(op, 1 - c.me);
    small.own = small.sent = gpsh_dev_load_unit<2>(block + small.at, small.left);
    if (others != block)
        small.sent = gpsh_dev_load_unit<2>(others + small.at, small.left);
    return small;
}

// An empty message is one packet, of the first thread.
GPSH_DEV bool gpsh_dev_small_goes(const struct gpsh_dev_small &small, bool message)
{
    return message ? small.left != 0 : !small.at;
}

GPSH_DEV void gpsh_dev_small_await(struct gpsh_dev_coll *c, const char *place, gpsh_dev_unit<2> *in)
{
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(c->dev);
    struct gpsh_dev_packet packet;
    while (!gpsh_dev_ll_is(packet = gpsh_dev_load_packet(place), (uint32_t)c->epoch))
        if ((c->status = gpsh_dev_coll_spin(*c, &wait, place, c->epoch, 0)))
            return;
    in->w[0] = (uint32_t)packet.low;
    in->w[1] = (uint32_t)packet.high;
}

// `packets`: where they begin in the scratch. There is one place for each of the two members, at
// the same offset on both. `away`: the other's heap.
GPSH_DEV void gpsh_dev_small_exchange(struct gpsh_dev_coll *c, uint64_t packets, uint64_t away,
                                      struct gpsh_dev_small *small)
{
    char *place = c->scratch + packets + (c->epoch & 1) * GPSH_DEV_SMALL_SLOT +
                  small->at / GPSH_LL_UNIT * sizeof(struct gpsh_dev_packet);
    if (gpsh_dev_small_goes(*small, small->sends))
        gpsh_dev_store_packet(gpsh_dev_at(away, place),
                              gpsh_dev_ll_pack(small->sent, (uint32_t)c->epoch));
    if (gpsh_dev_small_goes(*small, small->brings))
        gpsh_dev_small_await(c, place, &small->in);
}

GPSH_DEV void gpsh_dev_small_store(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op,
                                   const struct gpsh_dev_small &small)
{
    if (!small.left)
        return;
    if (gpsh_dev_coll_folds(op)) {
        int end = gpsh_dev_coll_fold_end(c, op);
        gpsh_dev_acc<2> acc = {};
        GPSH_UNROLL
        for (int rank = 0; rank < 2; rank++) {
            gpsh_dev_unit<2> unit; // chosen by value: a choice of two addresses is one in memory
            unit.w[0] = rank == c.me ? small.own.w[0] : small.in.w[0];
            unit.w[1] = rank == c.me ? small.own.w[1] : small.in.w[1];
            if (rank < end)
                acc = gpsh_dev_ll_fold(op.type, op.fold, acc, unit, rank == 0);
        }
        gpsh_dev_store_unit<2>((char *)op.dest + small.at, gpsh_dev_fold_result(acc, op.type),
                               small.left);
        return;
    }
    char *mine = gpsh_dev_coll_dest(op, c.me);
    if (gpsh_dev_coll_message(op, c.me, c.me) && mine != gpsh_dev_coll_source(op, c.me))
        gpsh_dev_store_unit<2>(mine + small.at, small.own, small.left);
    if (small.brings)
        gpsh_dev_store_unit<2>(gpsh_dev_coll_dest(op, 1 - c.me) + small.at, small.in, small.left);
}

// By all threads of the group. GPSH_DEV_NOT_SMALL: nothing was done, by none of them. `dense`: they
// have more than a unit each.
template <class Scope>
GPSH_DEV int gpsh_dev_small_do(struct gpsh_dev_coll *c, const struct gpushmem_dev_team *entry,
                               const struct gpushmem_coll_op &op, bool dense)
{
    const unsigned chunks = dense ? gpushmem_coll_dense_chunks(gpsh_dev_coll_bytes(op), false) : 1;
    struct gpsh_dev_small small = {};
    uint64_t away = 0;
    int status = 0;
    Scope::sync();
    const struct gpushmem_dev_team team = gpsh_dev_team_read(entry);
    bool goes = gpsh_dev_small_team(team, op.team, dense);
    if (goes) {
        gpsh_dev_coll_take(c, team);
        gpsh_dev_coll_take_channel(c, team, gpsh_dev_handle_channel(op.team));
        c->n = 2;
        uint64_t before = gpsh_dev_load64_relaxed_gpu(c->epoch_word);
        uint64_t poison = gpsh_dev_load64_value_sys(c->scratch);
        away = gpsh_dev_away(c->dev, gpsh_dev_coll_pe(*c, 1 - c->me));
        status = gpsh_dev_coll_check(*c, op);
        if (!status && !dense)
            small = gpsh_dev_small_load(*c, op);
        c->epoch = before + 1;
        goes = gpsh_dev_dense_counts(c->epoch, chunks) && !gpsh_dev_poison_status(*c, poison);
    }
    if (Scope::any(!goes))
        return GPSH_DEV_NOT_SMALL;
    if (status)
        return status;
    if (dense) {
        c->status = gpsh_dev_dense_group<GPSH_DENSE_GROUP>(*c, op);
        c->epoch += chunks - 1;
    } else {
        gpsh_dev_small_exchange(c, gpushmem_coll_ll_at(c->room, false), away, &small);
        if (!c->status)
            gpsh_dev_small_store(*c, op, small);
    }
    gpsh_dev_coll_finish(c, c->status);
    Scope::sync(); // the next operation's number is there
    return c->status;
}

#endif
