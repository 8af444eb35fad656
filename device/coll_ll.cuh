// SPDX-License-Identifier: BSD-3-Clause
// Collectives of small blocks, in packets of 16 bytes: twice 4 bytes of data beside the low half of
// the operation's number. A packet that is there says so itself, so nothing waits for a fence.
//
// Each thread sends some units of 8 bytes to all members, then takes the same units of all members:
// so dest may be source, and a packet's place depends on nothing but member and unit. Every pair of
// members exchanges at least one packet, an empty one if need be: that keeps all within one
// operation of each other, for which two buffers are enough.
#ifndef GPUSHMEM_DEVICE_COLL_LL_CUH
#define GPUSHMEM_DEVICE_COLL_LL_CUH

#include "gpushmem/device/coll_unit.cuh"

enum { GPSH_LL_UNIT = 8 };

GPSH_DEV struct gpsh_dev_packet gpsh_dev_ll_pack(const gpsh_dev_unit<2> &unit, uint32_t flag)
{
    return {unit.w[0] | (uint64_t)flag << 32, unit.w[1] | (uint64_t)flag << 32};
}
GPSH_DEV bool gpsh_dev_ll_is(const struct gpsh_dev_packet &packet, uint32_t flag)
{
    return (uint32_t)(packet.low >> 32) == flag && (uint32_t)(packet.high >> 32) == flag;
}

// Where `to` keeps the packets of `from`, as an address of this PE's.
GPSH_DEV char *gpsh_dev_ll_place(const struct gpsh_dev_coll &c, int from, int to)
{
    return c.scratch + gpushmem_coll_ll_place(c.room, c.n, c.stream, c.epoch & 1, from, to);
}

GPSH_DEV uint64_t gpsh_dev_ll_units(uint64_t bytes)
{
    return bytes ? (bytes + GPSH_LL_UNIT - 1) / GPSH_LL_UNIT : 1;
}

GPSH_DEV gpsh_dev_unit<2> gpsh_dev_ll_load(const struct gpushmem_coll_op &op, int rank,
                                           uint64_t unit)
{
    const char *block = gpsh_dev_coll_source(op, rank);
    uint64_t at = unit * GPSH_LL_UNIT, left = gpsh_dev_coll_bytes(op) - at;
    return gpsh_dev_coll_strided(op)
               ? gpsh_dev_gather<2>(block, at, left, op.width, op.source_stride)
               : gpsh_dev_load_unit<2>(block + at, left);
}

GPSH_DEV void gpsh_dev_ll_store(const struct gpushmem_coll_op &op, char *block,
                                gpsh_dev_unit<2> data, uint64_t unit)
{
    uint64_t at = unit * GPSH_LL_UNIT, left = gpsh_dev_coll_bytes(op) - at;
    if (gpsh_dev_coll_strided(op))
        gpsh_dev_scatter<2>(block, data, at, left, op.width, op.dest_stride);
    else
        gpsh_dev_store_unit<2>(block + at, data, left);
}

// Of threads with one unit each: whether this one, whose unit is at `at` of a block of which `left`
// bytes remain there, has a packet of a message. An empty message is one, of the first thread.
GPSH_DEV bool gpsh_dev_ll_goes(unsigned left, bool message, unsigned at)
{
    return message ? left != 0 : !at;
}

// Units first, first + lanes, ... to all members, beginning with the next.
template <int UNITS>
GPSH_DEV void gpsh_dev_ll_send(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op,
                               uint64_t first)
{
    bool same = op.kind != GPUSHMEM_COLL_ALLTOALL && op.kind != GPUSHMEM_COLL_ALLTOALLS &&
                op.kind != GPUSHMEM_COLL_REDUCESCATTER;
    gpsh_dev_unit<2> data[UNITS] = {};
    bool loaded = false;
    for (int k = 1; k < c.n; k++) {
        int to = c.me + k < c.n ? c.me + k : c.me + k - c.n;
        uint64_t bytes = gpsh_dev_coll_message(op, c.me, to), units = gpsh_dev_ll_units(bytes);
        char *there = gpsh_dev_coll_there(c, gpsh_dev_ll_place(c, c.me, to), to);
        GPSH_UNROLL
        for (int j = 0; j < UNITS; j++) {
            uint64_t unit = first + (unsigned)j * (uint64_t)c.lanes;
            if (bytes && unit < units && !(same && loaded))
                data[j] = gpsh_dev_ll_load(op, to, unit);
        }
        loaded = loaded || bytes;
        GPSH_UNROLL
        for (int j = 0; j < UNITS; j++) {
            uint64_t unit = first + (unsigned)j * (uint64_t)c.lanes;
            if (unit < units)
                gpsh_dev_store_packet(there + unit * sizeof(struct gpsh_dev_packet),
                                      gpsh_dev_ll_pack(data[j], (uint32_t)c.epoch));
        }
    }
}

// Units first, first + lanes, ... of ranks from `rank` on: in[j][k].
template <int RANKS, int UNITS> struct gpsh_dev_ll_batch {
    gpsh_dev_unit<2> in[RANKS][UNITS];
};

// All loads are under way at once, and again until every packet is there.
template <int RANKS, int UNITS>
GPSH_DEV void gpsh_dev_ll_await(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op,
                                int rank, uint64_t first, gpsh_dev_ll_batch<RANKS, UNITS> *batch)
{
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(c->dev);
    const char *places[RANKS];
    unsigned units[RANKS];
    GPSH_UNROLL
    for (int j = 0; j < RANKS; j++) {
        int from = rank + j;
        bool sends = from < c->n && from != c->me;
        units[j] = sends ? (unsigned)gpsh_dev_ll_units(gpsh_dev_coll_message(op, from, c->me)) : 0;
        places[j] = gpsh_dev_ll_place(*c, from, c->me);
    }
    for (const char *late = places[0]; late && !c->status;) {
        late = nullptr;
        GPSH_UNROLL
        for (int j = 0; j < RANKS; j++)
            GPSH_UNROLL
        for (int k = 0; k < UNITS; k++) {
            unsigned unit = (unsigned)first + (unsigned)k * c->lanes;
            if (unit >= units[j])
                continue;
            const char *place = places[j] + unit * sizeof(struct gpsh_dev_packet);
            struct gpsh_dev_packet packet = gpsh_dev_load_packet(place);
            late = gpsh_dev_ll_is(packet, (uint32_t)c->epoch) ? late : place;
            batch->in[j][k].w[0] = (uint32_t)packet.low;
            batch->in[j][k].w[1] = (uint32_t)packet.high;
        }
        if (late)
            c->status = gpsh_dev_coll_spin(*c, &wait, late, c->epoch, 0);
    }
}

// A step of a fold. What most programs sum is in place: a call takes longer than the rest of it.
GPSH_DEV gpsh_dev_acc<2> gpsh_dev_ll_fold(int type, int fold, const gpsh_dev_acc<2> &acc,
                                          const gpsh_dev_unit<2> &in, bool first)
{
    if (type == GPUSHMEM_COLL_FLOAT && fold == GPUSHMEM_COLL_SUM)
        return gpsh_dev_fold_with(gpsh_dev_fold_one<GPUSHMEM_COLL_FLOAT, GPUSHMEM_COLL_SUM>{}, acc,
                                  in, first);
#if GPSH_COLL_SUMS
    if (type == GPUSHMEM_COLL_BFLOAT16 && fold == GPUSHMEM_COLL_SUM)
        return gpsh_dev_fold_with(gpsh_dev_fold_one<GPUSHMEM_COLL_BFLOAT16, GPUSHMEM_COLL_SUM>{},
                                  acc, in, first);
#endif
    return gpsh_dev_fold_step<2>(acc, in, type, fold, first);
}

// What came from one member, or is here: folded into acc, or stored.
GPSH_DEV void gpsh_dev_ll_take(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op,
                               int from, uint64_t unit, gpsh_dev_unit<2> in, gpsh_dev_acc<2> *acc)
{
    if (unit * GPSH_LL_UNIT >= gpsh_dev_coll_message(op, from, c.me))
        return;
    if (gpsh_dev_coll_folds(op)) {
        if (from < gpsh_dev_coll_fold_end(c, op))
            *acc = gpsh_dev_ll_fold(op.type, op.fold, *acc, in, from == 0);
    } else {
        char *block = gpsh_dev_coll_dest(op, from);
        if (from != c.me || block != gpsh_dev_coll_source(op, from))
            gpsh_dev_ll_store(op, block, in, unit);
    }
}

template <int RANKS, int UNITS>
GPSH_DEV void gpsh_dev_ll_receive(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op,
                                  uint64_t first, uint64_t units)
{
    gpsh_dev_acc<2> acc[UNITS] = {};
    gpsh_dev_unit<2> own[UNITS] = {}; // loaded while the others' are awaited
    GPSH_UNROLL
    for (int k = 0; k < UNITS; k++) {
        uint64_t unit = first + (unsigned)k * (uint64_t)c->lanes;
        if (unit * GPSH_LL_UNIT < gpsh_dev_coll_message(op, c->me, c->me))
            own[k] = gpsh_dev_ll_load(op, c->me, unit);
    }
    for (int rank = 0; rank < c->n; rank += RANKS) {
        gpsh_dev_ll_batch<RANKS, UNITS> batch = {};
        gpsh_dev_ll_await(c, op, rank, first, &batch);
        if (c->status)
            return;
        GPSH_UNROLL
        for (int j = 0; j < RANKS; j++)
            GPSH_UNROLL
        for (int k = 0; k < UNITS; k++)
            if (rank + j < c->n)
                gpsh_dev_ll_take(*c, op, rank + j, first + (unsigned)k * (uint64_t)c->lanes,
                                 rank + j == c->me ? own[k] : batch.in[j][k], &acc[k]);
    }
    GPSH_UNROLL
    for (int k = 0; k < UNITS; k++) {
        uint64_t unit = first + (unsigned)k * (uint64_t)c->lanes;
        if (gpsh_dev_coll_folds(op) && unit < units)
            gpsh_dev_ll_store(op, (char *)op.dest, gpsh_dev_fold_result(acc[k], op.type), unit);
    }
}

// Blocks of up to gpushmem_coll_ll_most bytes; all members are mapped. There is no barrier in it:
// threads may give up one by one.
GPSH_DEV void gpsh_dev_coll_ll(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    uint64_t units = gpsh_dev_ll_units(gpsh_dev_coll_bytes(op)), lanes = c->lanes;
    for (uint64_t unit = c->lane; unit < units && !c->status; unit += 2 * lanes)
        gpsh_dev_ll_send<2>(*c, op, unit);
    if (c->n <= 2)
        for (uint64_t unit = c->lane; unit < units && !c->status; unit += 4 * lanes)
            gpsh_dev_ll_receive<2, 4>(c, op, unit, units);
    else if (c->n <= 4)
        for (uint64_t unit = c->lane; unit < units && !c->status; unit += 2 * lanes)
            gpsh_dev_ll_receive<4, 2>(c, op, unit, units);
    else
        for (uint64_t unit = c->lane; unit < units && !c->status; unit += lanes)
            gpsh_dev_ll_receive<8, 1>(c, op, unit, units);
}

#endif
