// SPDX-License-Identifier: BSD-3-Clause
// Operations of up to four members in kernels that begin in few instructions. Small ones are
// carried out so, too: each thread has one unit of 8 bytes at most. The packets are those of
// coll_ll.cuh and, of two members, coll_dense.cuh: the others may go that way for the same
// operation. docs/design/collectives.md.
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
    GPSH_DEV_SMALL_OTHERS = 3, // at most, for each of which a thread keeps what it sends and gets
};

// As far as the arguments say: `size` threads have a unit each at most. Blocks that are larger than
// a thread or a warp can take so go another way on all members, whatever their scopes.
GPSH_DEV bool gpsh_dev_coll_may_be_small(unsigned size, const struct gpushmem_coll_op &op)
{
    const unsigned all = GPUSHMEM_COLL_KERNEL_PACKETS,
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
    return (int)gpsh_dev_team_is(team, handle) & (team.n >= 2) &
           (team.n <= GPSH_DEV_SMALL_OTHERS + 1) & ((team.flags & looked_at) == flags) &
           (channel < GPUSHMEM_TEAM_CHANNELS) &
           ((int)!dense | (int)gpushmem_coll_has_dense(team.flags));
}

// What this thread sends to the other members and gets from them, in the order of their ranks: its
// unit of the blocks.
template <int OTHERS> struct gpsh_dev_small {
    unsigned at, left; // offset in a block, and bytes of the block from there on
    gpsh_dev_unit<2> own, sent[OTHERS], in[OTHERS];
    uint64_t away[OTHERS]; // the others' heaps
};

// Of one other member there is no question whether it is there.
template <int OTHERS> GPSH_DEV bool gpsh_dev_small_is(const struct gpsh_dev_coll &c, int j)
{
    return OTHERS == 1 || j + 1 < c.n;
}
GPSH_DEV int gpsh_dev_small_rank(const struct gpsh_dev_coll &c, int j)
{
    return j < c.me ? j : j + 1;
}

template <int OTHERS>
GPSH_DEV gpsh_dev_small<OTHERS> gpsh_dev_small_load(const struct gpsh_dev_coll &c,
                                                    const struct gpushmem_coll_op &op)
{
    gpsh_dev_small<OTHERS> small = {};
    unsigned bytes = (unsigned)gpsh_dev_coll_bytes(op);
    small.at = c.lane * GPSH_LL_UNIT;
    small.left = small.at < bytes ? bytes - small.at : 0;
    if (!small.left || !gpsh_dev_coll_message(op, c.me, c.me))
        return small;
    const char *block = gpsh_dev_coll_source(op, c.me);
    small.own = gpsh_dev_load_unit<2>(block + small.at, small.left);
    GPSH_UNROLL
    for (int j = 0; j < OTHERS; j++) {
        const char *others = gpsh_dev_coll_source(op, gpsh_dev_small_rank(c, j));
        small.sent[j] = small.own;
        if (others != block && gpsh_dev_small_is<OTHERS>(c, j))
            small.sent[j] = gpsh_dev_load_unit<2>(others + small.at, small.left);
    }
    return small;
}

// There is one place for each of the others on this PE, and one of this PE's on each of them.
template <int OTHERS>
GPSH_DEV unsigned gpsh_dev_small_place(const struct gpsh_dev_coll &c, int index)
{
    const unsigned slot = 2 * (unsigned)gpushmem_coll_ll_most(OTHERS == 1 ? 2 : c.n, c.stream);
    unsigned others = OTHERS == 1 ? 1 : (unsigned)c.n - 1;
    return ((unsigned)(c.epoch & 1) * others + (unsigned)index) * slot;
}

// All members' packets are loaded at once: after a question for each of them, one would wait for
// the other. Of a member that there is not, or that sends this thread nothing, it is any packet.
template <int OTHERS>
GPSH_DEV void gpsh_dev_small_await(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op,
                                   const char *packets, gpsh_dev_small<OTHERS> *small)
{
    const uint32_t flag = (uint32_t)c->epoch;
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(c->dev);
    uint32_t late;
    if (!small->left && small->at)
        return;
    if (OTHERS == 1 &&
        !gpsh_dev_ll_goes(small->left, gpsh_dev_coll_message(op, 1 - c->me, c->me), small->at))
        return;
    do {
        late = 0;
        GPSH_UNROLL
        for (int j = 0; j < OTHERS; j++) {
            const bool is = gpsh_dev_small_is<OTHERS>(*c, j),
                       awaited = is && gpsh_dev_ll_goes(small->left,
                                                        gpsh_dev_coll_message(
                                                            op, gpsh_dev_small_rank(*c, j), c->me),
                                                        small->at);
            const char *place = packets + gpsh_dev_small_place<OTHERS>(*c, is ? j : 0);
            struct gpsh_dev_packet packet = gpsh_dev_load_packet(place);
            uint32_t other =
                ((uint32_t)(packet.low >> 32) ^ flag) | ((uint32_t)(packet.high >> 32) ^ flag);
            late |= OTHERS == 1 || awaited ? other : 0;
            small->in[j].w[0] = (uint32_t)packet.low;
            small->in[j].w[1] = (uint32_t)packet.high;
        }
        if (late)
            c->status = gpsh_dev_coll_spin(*c, &wait, packets, c->epoch, 0);
    } while (late && !c->status);
}

template <int OTHERS>
GPSH_DEV void gpsh_dev_small_exchange(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op,
                                      gpsh_dev_small<OTHERS> *small)
{
    char *packets = c->scratch + gpushmem_coll_ll_at(c->room, c->stream) +
                    small->at / GPSH_LL_UNIT * sizeof(struct gpsh_dev_packet);
    GPSH_UNROLL
    for (int j = 0; j < OTHERS; j++) {
        int to = gpsh_dev_small_rank(*c, j), index = c->me < to ? c->me : c->me - 1;
        if (gpsh_dev_small_is<OTHERS>(*c, j) &&
            gpsh_dev_ll_goes(small->left, gpsh_dev_coll_message(op, c->me, to), small->at))
            gpsh_dev_store_packet(
                gpsh_dev_at(small->away[j], packets + gpsh_dev_small_place<OTHERS>(*c, index)),
                gpsh_dev_ll_pack(small->sent[j], (uint32_t)c->epoch));
    }
    gpsh_dev_small_await(c, op, packets, small);
}

// The unit of a rank, chosen by value: a choice of addresses is one in memory.
template <int OTHERS>
GPSH_DEV gpsh_dev_unit<2> gpsh_dev_small_of(const struct gpsh_dev_coll &c,
                                            const gpsh_dev_small<OTHERS> &small, int rank)
{
    gpsh_dev_unit<2> unit = small.own;
    GPSH_UNROLL
    for (int i = 0; i < 2; i++) {
        if (rank < c.me)
            unit.w[i] = small.in[rank < OTHERS ? rank : 0].w[i];
        else if (rank > c.me)
            unit.w[i] = small.in[rank ? rank - 1 : 0].w[i];
    }
    return unit;
}

template <int OTHERS>
GPSH_DEV void gpsh_dev_small_store(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op,
                                   const gpsh_dev_small<OTHERS> &small)
{
    if (!small.left)
        return;
    if (gpsh_dev_coll_folds(op)) {
        int end = gpsh_dev_coll_fold_end(c, op);
        gpsh_dev_acc<2> acc = {};
        GPSH_UNROLL
        for (int rank = 0; rank <= OTHERS; rank++)
            if (rank < end)
                acc = gpsh_dev_ll_fold(op.type, op.fold, acc, gpsh_dev_small_of(c, small, rank),
                                       rank == 0);
        gpsh_dev_store_unit<2>((char *)op.dest + small.at, gpsh_dev_fold_result(acc, op.type),
                               small.left);
        return;
    }
    char *mine = gpsh_dev_coll_dest(op, c.me);
    if (gpsh_dev_coll_message(op, c.me, c.me) && mine != gpsh_dev_coll_source(op, c.me))
        gpsh_dev_store_unit<2>(mine + small.at, small.own, small.left);
    GPSH_UNROLL
    for (int j = 0; j < OTHERS; j++) {
        int from = gpsh_dev_small_rank(c, j);
        if (gpsh_dev_small_is<OTHERS>(c, j) && gpsh_dev_coll_message(op, from, c.me))
            gpsh_dev_store_unit<2>(gpsh_dev_coll_dest(op, from) + small.at, small.in[j],
                                   small.left);
    }
}

// ---- Several units for each thread ----

// Several of them at a time, whose loads are under way at once: there is no question between them,
// for which further ones would wait. All addresses are worked out before.
template <int OTHERS> struct gpsh_dev_small_way {
    unsigned bytes;                 // of a block
    const char *own, *sent[OTHERS]; // blocks of source; NULL: an empty message
    char *kept, *dest[OTHERS];      // of dest; NULL: nothing is stored there
    char *to[OTHERS];               // this PE's packets at the others,
    const char *from[OTHERS];       // and theirs here
    bool brings[OTHERS];            // their messages are not empty
};

template <int OTHERS>
GPSH_DEV gpsh_dev_small_way<OTHERS> gpsh_dev_small_way_of(const struct gpsh_dev_coll &c,
                                                          const struct gpushmem_coll_op &op)
{
    gpsh_dev_small_way<OTHERS> w = {};
    char *packets = c.scratch + gpushmem_coll_ll_at(c.room, c.stream);
    w.bytes = (unsigned)gpsh_dev_coll_bytes(op);
    if (gpsh_dev_coll_message(op, c.me, c.me))
        w.own = gpsh_dev_coll_source(op, c.me);
    if (gpsh_dev_coll_folds(op))
        w.kept = (char *)op.dest;
    else if (w.own && w.own != gpsh_dev_coll_dest(op, c.me))
        w.kept = gpsh_dev_coll_dest(op, c.me);
    GPSH_UNROLL
    for (int j = 0; j < OTHERS; j++) {
        w.from[j] = packets + gpsh_dev_small_place<OTHERS>(c, 0);
        if (!gpsh_dev_small_is<OTHERS>(c, j))
            continue;
        const int rank = gpsh_dev_small_rank(c, j), index = c.me < rank ? c.me : c.me - 1;
        w.brings[j] = gpsh_dev_coll_message(op, rank, c.me) > 0;
        if (gpsh_dev_coll_message(op, c.me, rank))
            w.sent[j] = gpsh_dev_coll_source(op, rank);
        if (w.brings[j] && !gpsh_dev_coll_folds(op))
            w.dest[j] = gpsh_dev_coll_dest(op, rank);
        w.to[j] = gpsh_dev_coll_there(c, packets + gpsh_dev_small_place<OTHERS>(c, index), rank);
        w.from[j] = packets + gpsh_dev_small_place<OTHERS>(c, j);
    }
    return w;
}

// All blocks begin at multiples of a unit, so that whole units are accesses of 8 bytes.
template <int OTHERS> GPSH_DEV bool gpsh_dev_small_aligned(const gpsh_dev_small_way<OTHERS> &w)
{
    uintptr_t all = (uintptr_t)w.own | (uintptr_t)w.kept;
    GPSH_UNROLL
    for (int j = 0; j < OTHERS; j++)
        all |= (uintptr_t)w.sent[j] | (uintptr_t)w.dest[j];
    return all % GPSH_LL_UNIT == 0;
}

// Units at, at + step, ... of a block. WHOLE: aligned, and within it; otherwise there is one.
template <bool WHOLE, int UNITS>
GPSH_DEV void gpsh_dev_small_units(gpsh_dev_unit<2> *units, const char *block, unsigned at,
                                   unsigned step, unsigned bytes)
{
    GPSH_UNROLL
    for (unsigned k = 0; k < UNITS; k++)
        units[k] = WHOLE ? gpsh_dev_load_unit8(block + at + k * step)
                         : gpsh_dev_load_unit<2>(block + at, bytes - at);
}

template <bool WHOLE>
GPSH_DEV void gpsh_dev_small_put(char *block, unsigned at, unsigned bytes,
                                 const gpsh_dev_unit<2> &unit)
{
    if (WHOLE)
        gpsh_dev_store_unit8(block + at, unit);
    else
        gpsh_dev_store_unit<2>(block + at, unit, bytes - at);
}

template <bool WHOLE, int UNITS, int OTHERS>
GPSH_DEV void gpsh_dev_small_send(const struct gpsh_dev_coll &c,
                                  const gpsh_dev_small_way<OTHERS> &w, unsigned at, unsigned step)
{
    gpsh_dev_unit<2> units[UNITS] = {};
    const char *loaded = nullptr;
    GPSH_UNROLL
    for (int j = 0; j < OTHERS; j++) {
        if (!gpsh_dev_small_is<OTHERS>(c, j))
            continue;
        if (w.sent[j] && w.sent[j] != loaded)
            gpsh_dev_small_units<WHOLE, UNITS>(units, w.sent[j], at, step, w.bytes);
        loaded = w.sent[j] ? w.sent[j] : loaded;
        GPSH_UNROLL
        for (unsigned k = 0; k < UNITS; k++)
            if (w.sent[j] || at + k * step == 0)
                gpsh_dev_store_packet(w.to[j] + 2 * (at + k * step),
                                      gpsh_dev_ll_pack(units[k], (uint32_t)c.epoch));
    }
}

// What lies where an empty message's packets would is nobody's.
template <int UNITS, int OTHERS>
GPSH_DEV void gpsh_dev_small_receive(struct gpsh_dev_coll *c, const gpsh_dev_small_way<OTHERS> &w,
                                     unsigned at, unsigned step,
                                     gpsh_dev_unit<2> (&in)[OTHERS][UNITS])
{
    const uint32_t flag = (uint32_t)c->epoch;
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(c->dev);
    uint32_t late;
    do {
        late = 0;
        GPSH_UNROLL
        for (int j = 0; j < OTHERS; j++)
            GPSH_UNROLL
        for (unsigned k = 0; k < UNITS; k++) {
            struct gpsh_dev_packet packet = gpsh_dev_load_packet(w.from[j] + 2 * (at + k * step));
            uint32_t other =
                ((uint32_t)(packet.low >> 32) ^ flag) | ((uint32_t)(packet.high >> 32) ^ flag);
            bool awaited = gpsh_dev_small_is<OTHERS>(*c, j) && (w.brings[j] || at + k * step == 0);
            late |= awaited ? other : 0;
            in[j][k].w[0] = (uint32_t)packet.low;
            in[j][k].w[1] = (uint32_t)packet.high;
        }
        if (late)
            c->status = gpsh_dev_coll_spin(*c, &wait, w.from[0] + 2 * at, c->epoch, 0);
    } while (late && !c->status);
}

// In the order of ranks, the own unit in between.
template <int UNITS, int OTHERS>
GPSH_DEV gpsh_dev_unit<2>
gpsh_dev_small_sum(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op,
                   const gpsh_dev_unit<2> &own, const gpsh_dev_unit<2> (&in)[OTHERS][UNITS],
                   unsigned k)
{
    const int end = gpsh_dev_coll_fold_end(c, op);
    gpsh_dev_acc<2> acc = {};
    GPSH_UNROLL
    for (int j = 0; j <= OTHERS; j++) {
        if (j == c.me && j < end)
            acc = gpsh_dev_ll_fold(op.type, op.fold, acc, own, j == 0);
        if (j < OTHERS && gpsh_dev_small_rank(c, j) < end)
            acc = gpsh_dev_ll_fold(op.type, op.fold, acc, in[j][k], gpsh_dev_small_rank(c, j) == 0);
    }
    return gpsh_dev_fold_result(acc, op.type);
}

template <bool WHOLE, int UNITS, int OTHERS>
GPSH_DEV void gpsh_dev_small_take(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op,
                                  const gpsh_dev_small_way<OTHERS> &w, unsigned at, unsigned step)
{
    gpsh_dev_unit<2> own[UNITS] = {}, in[OTHERS][UNITS];
    if (w.own)
        gpsh_dev_small_units<WHOLE, UNITS>(own, w.own, at, step, w.bytes);
    gpsh_dev_small_receive<UNITS>(c, w, at, step, in);
    if (c->status)
        return;
    GPSH_UNROLL
    for (unsigned k = 0; k < UNITS; k++) {
        const unsigned unit = at + k * step;
        if (gpsh_dev_coll_folds(op))
            own[k] = gpsh_dev_small_sum(*c, op, own[k], in, k);
        if (w.kept)
            gpsh_dev_small_put<WHOLE>(w.kept, unit, w.bytes, own[k]);
        GPSH_UNROLL
        for (int j = 0; j < OTHERS; j++)
            if (w.dest[j])
                gpsh_dev_small_put<WHOLE>(w.dest[j], unit, w.bytes, in[j][k]);
    }
}

// By a thread or a warp, of blocks that have more units than it has threads, after the long
// beginning: a call in the short one costs warps 0.2 us. What is sent takes
// fewer registers than what comes. 0, or why it gave up.
template <int OTHERS>
GPSH_DEV_CALL int gpsh_dev_small_many(struct gpsh_dev_coll c, struct gpushmem_coll_op op)
{
    GPSH_DEV_BOUNDS();
    constexpr unsigned UNITS = GPUSHMEM_THREAD_LOADS >= 16 ? 4 : 2, SENDS = 4 * UNITS;
    const gpsh_dev_small_way<OTHERS> w = gpsh_dev_small_way_of<OTHERS>(c, op);
    const unsigned step = c.lanes * GPSH_LL_UNIT, first = c.lane * GPSH_LL_UNIT;
    const unsigned whole = gpsh_dev_small_aligned(w) ? w.bytes & ~(GPSH_LL_UNIT - 1u) : 0;
    unsigned at = first;
    for (; at + (SENDS - 1) * step < whole; at += SENDS * step)
        gpsh_dev_small_send<true, SENDS>(c, w, at, step);
    for (; at + (UNITS - 1) * step < whole; at += UNITS * step)
        gpsh_dev_small_send<true, UNITS>(c, w, at, step);
    for (; at < w.bytes; at += step)
        gpsh_dev_small_send<false, 1>(c, w, at, step);
    for (at = first; at + (UNITS - 1) * step < whole && !c.status; at += UNITS * step)
        gpsh_dev_small_take<true, UNITS>(&c, op, w, at, step);
    for (; at < w.bytes && !c.status; at += step)
        gpsh_dev_small_take<false, 1>(&c, op, w, at, step);
    return c.status;
}

// Of all blocks of a grid, in the sequence of streams.
template <int OTHERS>
GPSH_DEV void gpsh_dev_small_of_grid(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    gpsh_dev_small<OTHERS> small = gpsh_dev_small_load<OTHERS>(*c, op);
    GPSH_UNROLL
    for (int j = 0; j < OTHERS; j++)
        if (gpsh_dev_small_is<OTHERS>(*c, j))
            small.away[j] = gpsh_dev_away(c->dev, gpsh_dev_coll_pe(*c, gpsh_dev_small_rank(*c, j)));
    if (!c->status)
        gpsh_dev_small_exchange(c, op, &small);
    if (!c->status)
        gpsh_dev_small_store(*c, op, small);
}

// Of a team that may do so. All threads return the same.
template <class Scope, int OTHERS>
GPSH_DEV int gpsh_dev_small_of_team(struct gpsh_dev_coll *c, const struct gpushmem_dev_team &team,
                                    const struct gpushmem_coll_op &op, bool dense)
{
    const unsigned chunks = dense ? gpushmem_coll_dense_chunks(gpsh_dev_coll_bytes(op), false) : 1;
    gpsh_dev_small<OTHERS> small = {};
    gpsh_dev_coll_take(c, team);
    gpsh_dev_coll_take_channel(c, team, gpsh_dev_handle_channel(op.team));
    if (OTHERS == 1)
        c->n = 2;
    uint64_t away[OTHERS] = {};
    uint64_t before = gpsh_dev_load64_relaxed_gpu(c->epoch_word);
    uint64_t poison = gpsh_dev_load64_value_sys(c->scratch);
    GPSH_UNROLL
    for (int j = 0; j < OTHERS; j++)
        if (gpsh_dev_small_is<OTHERS>(*c, j))
            away[j] = gpsh_dev_away(c->dev, gpsh_dev_coll_pe(*c, gpsh_dev_small_rank(*c, j)));
    int status = gpsh_dev_coll_check(*c, op);
    if (!status && !dense)
        small = gpsh_dev_small_load<OTHERS>(*c, op);
    GPSH_UNROLL
    for (int j = 0; j < OTHERS; j++)
        small.away[j] = away[j];
    c->epoch = before + 1;
    bool goes =
        gpsh_dev_dense_counts(c->epoch, chunks) && !gpsh_dev_poison_status(c->handle, poison);
    if (Scope::any(!goes))
        return GPSH_DEV_NOT_SMALL;
    if (status)
        return status;
    if (OTHERS == 1 && dense) {
        c->status =
            gpsh_dev_dense_group < Scope::alone ? +GPSH_DENSE_ALONE : +GPSH_DENSE_GROUP > (*c, op);
        c->epoch += chunks - 1;
    } else {
        gpsh_dev_small_exchange(c, op, &small);
        if (!c->status)
            gpsh_dev_small_store(*c, op, small);
    }
    gpsh_dev_coll_finish(c, c->status);
    Scope::sync(); // the next operation's number is there
    return c->status;
}

// By all threads of the group. GPSH_DEV_NOT_SMALL: nothing was done, by none of them. `dense`: two
// members would send dense packets; `small`: others have a unit for each thread.
template <class Scope>
GPSH_DEV int gpsh_dev_small_do(struct gpsh_dev_coll *c, const struct gpushmem_dev_team *entry,
                               const struct gpushmem_coll_op &op, bool dense, bool small)
{
    Scope::sync();
    const struct gpushmem_dev_team team = gpsh_dev_team_read(entry);
    dense = dense && team.n == 2;
    if (!gpsh_dev_small_team(team, op.team, dense) || !(dense || small)) {
        Scope::any(true); // with threads that saw the team before it was destroyed
        return GPSH_DEV_NOT_SMALL;
    }
    return team.n == 2 ? gpsh_dev_small_of_team<Scope, 1>(c, team, op, dense)
                       : gpsh_dev_small_of_team<Scope, GPSH_DEV_SMALL_OTHERS>(c, team, op, dense);
}

#endif
