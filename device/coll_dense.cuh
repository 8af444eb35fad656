// SPDX-License-Identifier: BSD-3-Clause
// Collectives of two members in dense packets: 12 bytes of data beside the low half of a number, in
// one access of 16 bytes that is not torn. A block travels in chunks, each of which has a number of
// the team's sequence, and two buffers, like an operation of coll_ll.cuh: nobody waits for a fence
// or a flag, and a link is busy with packets three quarters of which are data.
//
// A slot is four packets of a thread, 48 bytes of a block: three units of 16. Slots of 32 threads
// lie so that each of their accesses is a row of 512 bytes. All slots of a chunk are exchanged in
// each chunk, both ways, with data or without: whoever hears a slot's chunk knows that the other
// has taken the slot's chunk before, over which the next one is written.
#ifndef GPUSHMEM_DEVICE_COLL_DENSE_CUH
#define GPUSHMEM_DEVICE_COLL_DENSE_CUH

#include "gpushmem/device/coll_fold.cuh"

enum {
    GPSH_DENSE_ROW = GPUSHMEM_COLL_DENSE_ROW,
    GPSH_DENSE_TILE = GPUSHMEM_COLL_DENSE_TILE,
    GPSH_DENSE_UNITS = GPUSHMEM_COLL_DENSE_DATA / 16,
    GPSH_DENSE_PACKETS = GPUSHMEM_COLL_DENSE_SLOT / 16,
    GPSH_DENSE_KERNEL_MOST = 64 << 10, // the largest block of kernels,
    GPSH_DENSE_GRID_MOST = 2 << 20,    // and of all blocks of a grid
};

// Who: all blocks of a launch, the threads of a group, or a lone one.
enum { GPSH_DENSE_GRID, GPSH_DENSE_GROUP, GPSH_DENSE_ALONE };

// A block here, or none: of 0 bytes.
struct gpsh_dev_dense_block {
    char *at;
    unsigned bytes;
};

// What travels, and where to.
struct gpsh_dev_dense {
    struct gpsh_dev_dense_block own, // this PE's contribution to its own result
        sent,                        // what the other gets
        kept,                        // where the own block goes if it is not there
        taken;                       // where the result goes, or the other's block
    bool brings;                     // the other's slots have data
    char *to;                        // the first of two buffers, of the other member,
    const char *from;
    uint64_t buffer;        // and how large one is
    unsigned slots, chunks; // of a chunk; of the block
};

// What comes is stored as it is.
struct gpsh_dev_fold_none {
};

// A slot's data.
struct gpsh_dev_dense_data {
    gpsh_dev_unit<4> units[GPSH_DENSE_UNITS];
};

// ---- Chunks ----

// Of the numbers from `first` on, one for each chunk, none has a low half of 0.
GPSH_DEV bool gpsh_dev_dense_counts(uint64_t first, unsigned chunks)
{
    return (uint32_t)first && (uint32_t)(first + chunks - 1) >= (uint32_t)first;
}

GPSH_DEV bool gpsh_dev_dense_whole(const struct gpushmem_coll_op &op)
{
    uint64_t all = (uintptr_t)op.source | (uintptr_t)op.dest | gpsh_dev_coll_bytes(op);
    return !(all & 15);
}

// `folds`: what is here is folded with what comes.
GPSH_DEV struct gpsh_dev_dense gpsh_dev_dense_of(const struct gpsh_dev_coll &c,
                                                 const struct gpushmem_coll_op &op, bool folds)
{
    struct gpsh_dev_dense d = {};
    const int other = 1 - c.me;
    const unsigned bytes = (unsigned)gpsh_dev_coll_bytes(op);
    char *source = (char *)gpsh_dev_coll_source(op, c.me);
    bool has_own = gpsh_dev_coll_message(op, c.me, c.me) && op.kind != GPUSHMEM_COLL_EXSCAN;
    d.brings = gpsh_dev_coll_message(op, other, c.me) > 0;
    if (gpsh_dev_coll_message(op, c.me, other))
        d.sent = {(char *)gpsh_dev_coll_source(op, other), bytes};
    if (folds && has_own)
        d.own = {source, bytes};
    if (gpsh_dev_coll_folds(op))
        d.taken = {(char *)op.dest, bytes};
    else if (d.brings)
        d.taken = {gpsh_dev_coll_dest(op, other), bytes};
    if (!gpsh_dev_coll_folds(op) && has_own && gpsh_dev_coll_dest(op, c.me) != source)
        d.own = {source, bytes}, d.kept = {gpsh_dev_coll_dest(op, c.me), bytes};
    d.from = c.dense;
    d.to = gpsh_dev_coll_there(c, c.dense, other);
    d.buffer = gpushmem_coll_dense_bytes(c.stream) / 2;
    d.chunks = gpushmem_coll_dense_chunks(bytes, c.stream);
    d.slots = gpushmem_coll_dense_chunk_slots(bytes, d.chunks);
    return d;
}

// ---- Slots ----

// Where a slot's first unit is in a block, and its first packet in a buffer: the further ones are
// each a row of 512 bytes on.
GPSH_DEV unsigned gpsh_dev_dense_unit_at(unsigned slot)
{
    return slot / GPSH_DENSE_ROW * GPSH_DENSE_TILE + slot % GPSH_DENSE_ROW * 16;
}
GPSH_DEV unsigned gpsh_dev_dense_packet_at(unsigned slot)
{
    return slot / GPSH_DENSE_ROW * ((unsigned)GPSH_DENSE_ROW * GPUSHMEM_COLL_DENSE_SLOT) +
           slot % GPSH_DENSE_ROW * 16;
}

// Units that are not whole or not aligned: many instructions, between which a unit's load waits.
GPSH_DEV_CALL struct gpsh_dev_dense_data
gpsh_dev_dense_load_parts(struct gpsh_dev_dense_block block, unsigned at)
{
    GPSH_DEV_BOUNDS();
    struct gpsh_dev_dense_data data = {};
    for (int j = 0; j < GPSH_DENSE_UNITS; j++, at += 16 * GPSH_DENSE_ROW)
        if (at < block.bytes)
            data.units[j] = gpsh_dev_load_unit<4>(block.at + at, block.bytes - at);
    return data;
}

GPSH_DEV_CALL void gpsh_dev_dense_store_parts(struct gpsh_dev_dense_block block,
                                              struct gpsh_dev_dense_data data, unsigned at)
{
    GPSH_DEV_BOUNDS();
    for (int j = 0; j < GPSH_DENSE_UNITS; j++, at += 16 * GPSH_DENSE_ROW)
        if (at < block.bytes)
            gpsh_dev_store_unit<4>(block.at + at, data.units[j], block.bytes - at);
}

// A unit of what is sent. A lone thread reads it again when it folds, from the first-level cache.
template <int WHO> GPSH_DEV gpsh_dev_unit<4> gpsh_dev_dense_load_unit(const char *from)
{
    return WHO == GPSH_DENSE_ALONE ? gpsh_dev_load_whole_cached(from)
                                   : gpsh_dev_load_whole_ahead(from);
}

// So many slots of a row, which follow each other. Whether all of their units are there is asked
// once: with a question for each of them it would have an address of its own, too. WHOLE: all units
// are of 16 bytes, aligned.
template <int WHO, int SLOTS, bool WHOLE>
GPSH_DEV void gpsh_dev_dense_load(struct gpsh_dev_dense_data *data,
                                  const struct gpsh_dev_dense_block &block, unsigned at)
{
    constexpr unsigned row = 16 * GPSH_DENSE_ROW;
    if constexpr (!WHOLE) {
        for (unsigned m = 0; m < SLOTS; m++)
            data[m] = gpsh_dev_dense_load_parts(block, at + 16 * m);
    } else if (at + 16 * SLOTS + (GPSH_DENSE_UNITS - 1) * row <= block.bytes) {
        GPSH_UNROLL
        for (unsigned i = 0; i < SLOTS * GPSH_DENSE_UNITS; i++)
            data[i / GPSH_DENSE_UNITS].units[i % GPSH_DENSE_UNITS] = gpsh_dev_dense_load_unit<WHO>(
                block.at + at + 16 * (i / GPSH_DENSE_UNITS) + i % GPSH_DENSE_UNITS * row);
    } else {
        GPSH_UNROLL
        for (unsigned i = 0; i < SLOTS * GPSH_DENSE_UNITS; i++) {
            const unsigned unit = at + 16 * (i / GPSH_DENSE_UNITS) + i % GPSH_DENSE_UNITS * row;
            gpsh_dev_unit<4> *to = &data[i / GPSH_DENSE_UNITS].units[i % GPSH_DENSE_UNITS];
            *to = {};
            if (unit < block.bytes)
                *to = gpsh_dev_dense_load_unit<WHO>(block.at + unit);
        }
    }
}

template <bool WHOLE>
GPSH_DEV void gpsh_dev_dense_store(const struct gpsh_dev_dense_block &block,
                                   const struct gpsh_dev_dense_data &data, unsigned at)
{
    if constexpr (!WHOLE) {
        gpsh_dev_dense_store_parts(block, data, at);
    } else {
        GPSH_UNROLL
        for (unsigned j = 0; j < GPSH_DENSE_UNITS; j++)
            if (at + j * 16 * GPSH_DENSE_ROW < block.bytes)
                gpsh_dev_store_whole(block.at + at + j * 16 * GPSH_DENSE_ROW, data.units[j]);
    }
}

// Three words of each unit are in a packet of its own, the fourth ones in the last packet: so most
// stay in the registers that they were loaded to.
#define GPSH_DENSE_WORD(data, k, i)                                                                \
    (data).units[(k) < GPSH_DENSE_UNITS ? (k) : (i)].w[(k) < GPSH_DENSE_UNITS ? (i) : 3]

// `at`: where the slot's first packet is. An empty slot is that packet.
GPSH_DEV void gpsh_dev_dense_send(const struct gpsh_dev_dense &d, uint64_t number, unsigned at,
                                  const struct gpsh_dev_dense_data &data)
{
    char *place = d.to + (number & 1) * d.buffer + at;
    GPSH_UNROLL
    for (int k = 0; k < GPSH_DENSE_PACKETS; k++) {
        struct gpsh_dev_dense_packet packet = {{0, 0, 0}, (uint32_t)number};
        GPSH_UNROLL
        for (int i = 0; i < 3; i++)
            packet.data[i] = GPSH_DENSE_WORD(data, k, i);
        if (!k || d.sent.bytes)
            gpsh_dev_store_dense(place + k * 16 * GPSH_DENSE_ROW, packet);
    }
}

// One look at a slot, whose first packet is at `place`. Returns not 0 if one of them is late:
// without a question of its own, for which the loads of further slots would wait. Of an empty slot
// what lies there is data to nobody.
GPSH_DEV uint32_t gpsh_dev_dense_look(const struct gpsh_dev_dense &d, uint64_t number,
                                      const char *place, struct gpsh_dev_dense_data *data)
{
    uint32_t first = 0, late = 0;
    GPSH_UNROLL
    for (int k = 0; k < GPSH_DENSE_PACKETS; k++) {
        struct gpsh_dev_dense_packet packet = gpsh_dev_load_dense(place + k * 16 * GPSH_DENSE_ROW);
        (k ? late : first) |= packet.flag ^ (uint32_t)number;
        GPSH_UNROLL
        for (int i = 0; i < 3; i++)
            GPSH_DENSE_WORD(*data, k, i) = packet.data[i];
    }
    return d.brings ? first | late : first;
}

// So many slots of a row, which follow each other.
template <int SLOTS>
GPSH_DEV void gpsh_dev_dense_await(struct gpsh_dev_coll *c, const struct gpsh_dev_dense &d,
                                   unsigned at, struct gpsh_dev_dense_data *data)
{
    const char *place = d.from + (c->epoch & 1) * d.buffer + at;
    struct gpsh_dev_wait wait = {};
    bool waits = false; // most slots are there at the first look
    uint32_t late;
    do {
        late = 0;
        GPSH_UNROLL
        for (unsigned m = 0; m < SLOTS; m++)
            late |= gpsh_dev_dense_look(d, c->epoch, place + 16 * m, &data[m]);
        if (late && !waits)
            wait = gpsh_dev_wait_begin(c->dev);
        waits = true;
        if (late)
            c->status = gpsh_dev_coll_spin(*c, &wait, place, c->epoch, 0);
    } while (late && !c->status);
}

// Of two members. A sum of floats is the same in either order: GPUs have one NaN.
template <class Fold>
GPSH_DEV gpsh_dev_unit<4> gpsh_dev_dense_pair(const Fold &fold, int me, const gpsh_dev_unit<4> &own,
                                              const gpsh_dev_unit<4> &in)
{
    gpsh_dev_unit<4> zero, one; // by value: a choice of two addresses is one in memory
    GPSH_UNROLL
    for (int i = 0; i < 4; i++) {
        zero.w[i] = me ? in.w[i] : own.w[i];
        one.w[i] = me ? own.w[i] : in.w[i];
    }
    gpsh_dev_acc<4> acc = gpsh_dev_fold_with(fold, gpsh_dev_acc<4>{}, zero, true);
    return gpsh_dev_folded(fold, gpsh_dev_fold_with(fold, acc, one, false));
}

#if defined(__CUDA_ARCH__)
GPSH_DEV gpsh_dev_unit<4>
gpsh_dev_dense_pair(const gpsh_dev_fold_one<GPUSHMEM_COLL_FLOAT, GPUSHMEM_COLL_SUM> &fold, int,
                    const gpsh_dev_unit<4> &own, const gpsh_dev_unit<4> &in)
{
    gpsh_dev_acc<4> acc = gpsh_dev_fold_with(fold, gpsh_dev_acc<4>{}, own, true);
    return gpsh_dev_folded(fold, gpsh_dev_fold_with(fold, acc, in, false));
}
#endif

template <class Fold>
GPSH_DEV gpsh_dev_unit<4> gpsh_dev_dense_one(const Fold &fold, const gpsh_dev_unit<4> &unit)
{
    return gpsh_dev_folded(fold, gpsh_dev_fold_with(fold, gpsh_dev_acc<4>{}, unit, true));
}

// What is here and what came, at `at` of the block, in the order of ranks.
template <bool WHOLE, class Fold>
GPSH_DEV void gpsh_dev_dense_take(const struct gpsh_dev_coll &c, const struct gpsh_dev_dense &d,
                                  const Fold &fold, unsigned at,
                                  const struct gpsh_dev_dense_data &own,
                                  const struct gpsh_dev_dense_data &in)
{
    struct gpsh_dev_dense_data out = {};
    GPSH_UNROLL
    for (int j = 0; j < GPSH_DENSE_UNITS; j++)
        if (d.brings && d.own.bytes)
            out.units[j] = gpsh_dev_dense_pair(fold, c.me, own.units[j], in.units[j]);
        else if (d.brings)
            out.units[j] = gpsh_dev_dense_one(fold, in.units[j]);
        else if (d.own.bytes)
            out.units[j] = gpsh_dev_dense_one(fold, own.units[j]);
    gpsh_dev_dense_store<WHOLE>(d.taken, out, at);
}

template <bool WHOLE>
GPSH_DEV void gpsh_dev_dense_take(const struct gpsh_dev_coll &, const struct gpsh_dev_dense &d,
                                  const gpsh_dev_fold_none &, unsigned at,
                                  const struct gpsh_dev_dense_data &own,
                                  const struct gpsh_dev_dense_data &in)
{
    gpsh_dev_dense_store<WHOLE>(d.kept, own, at);
    gpsh_dev_dense_store<WHOLE>(d.taken, in, at);
}

// ---- The operation ----

// A thread has several slots of a chunk. A lone one takes SLOTS at a time, which follow each other:
// their loads are under way at once.
template <int WHO, int SLOTS, bool WHOLE>
GPSH_DEV void gpsh_dev_dense_send_all(const struct gpsh_dev_coll &c, const struct gpsh_dev_dense &d,
                                      unsigned first)
{
    struct gpsh_dev_dense_data sent[SLOTS];
    for (unsigned slot = c.lane; slot < d.slots; slot += SLOTS * c.lanes) {
        const unsigned at = gpsh_dev_dense_packet_at(slot);
        gpsh_dev_dense_load<WHO, SLOTS, WHOLE>(sent, d.sent, gpsh_dev_dense_unit_at(first + slot));
        GPSH_UNROLL
        for (unsigned m = 0; m < SLOTS; m++)
            gpsh_dev_dense_send(d, c.epoch, at + 16 * m, sent[m]);
    }
}

// A lone thread loads its own units once the other's are there: they are near.
template <int WHO, int SENDS, int SLOTS, bool WHOLE, class Fold>
GPSH_DEV void gpsh_dev_dense_many(struct gpsh_dev_coll *c, const struct gpsh_dev_dense &d,
                                  const Fold &fold, unsigned first)
{
    static_assert(GPSH_DENSE_ROW % SENDS == 0 && SENDS % SLOTS == 0, "of one row");
    constexpr bool alone = WHO == GPSH_DENSE_ALONE;
    struct gpsh_dev_dense_data own, in[SLOTS];
    gpsh_dev_dense_send_all<WHO, SENDS, WHOLE>(*c, d, first);
    for (unsigned slot = c->lane; slot < d.slots; slot += SLOTS * c->lanes) {
        unsigned unit = gpsh_dev_dense_unit_at(first + slot), at = gpsh_dev_dense_packet_at(slot);
        if (!alone)
            gpsh_dev_dense_load<WHO, 1, WHOLE>(&own, d.own, unit);
        gpsh_dev_dense_await<SLOTS>(c, d, at, in);
        if (c->status)
            return;
        GPSH_UNROLL
        for (unsigned m = 0; m < SLOTS; m++) {
            if (alone)
                gpsh_dev_dense_load<WHO, 1, WHOLE>(&own, d.own, unit + 16 * m);
            gpsh_dev_dense_take<WHOLE>(*c, d, fold, unit + 16 * m, own, in[m]);
        }
    }
}

// A thread has one slot of each chunk at most, and loads the next one's data while it waits.
template <bool WHOLE, class Fold>
GPSH_DEV void gpsh_dev_dense_single(struct gpsh_dev_coll *c, const struct gpsh_dev_dense &d,
                                    const Fold &fold)
{
    struct gpsh_dev_dense_data own, in, sent, next = {};
    const unsigned place = gpsh_dev_dense_packet_at(c->lane);
    gpsh_dev_dense_load<GPSH_DENSE_GRID, 1, WHOLE>(&sent, d.sent, gpsh_dev_dense_unit_at(c->lane));
    for (unsigned chunk = 0; chunk < d.chunks && !c->status; chunk++, c->epoch++) {
        unsigned slot = chunk * d.slots + c->lane;
        gpsh_dev_dense_send(d, c->epoch, place, sent);
        if (chunk + 1 < d.chunks)
            gpsh_dev_dense_load<GPSH_DENSE_GRID, 1, WHOLE>(&next, d.sent,
                                                           gpsh_dev_dense_unit_at(slot + d.slots));
        own = sent;
        if (d.own.at != d.sent.at)
            gpsh_dev_dense_load<GPSH_DENSE_GRID, 1, WHOLE>(&own, d.own,
                                                           gpsh_dev_dense_unit_at(slot));
        gpsh_dev_dense_await<1>(c, d, place, &in);
        if (!c->status)
            gpsh_dev_dense_take<WHOLE>(*c, d, fold, gpsh_dev_dense_unit_at(slot), own, in);
        sent = next;
    }
}

// By all lanes. There is no barrier in it: threads may give up one by one.
template <int WHO, bool WHOLE, class Fold>
GPSH_DEV void gpsh_dev_dense_with(struct gpsh_dev_coll *c, const struct gpsh_dev_dense &d,
                                  const Fold &fold)
{
    if (WHO == GPSH_DENSE_GRID && c->lanes >= d.slots) {
        gpsh_dev_dense_single<WHOLE>(c, d, fold);
        return;
    }
    constexpr bool alone = WHO == GPSH_DENSE_ALONE;
    constexpr int slots = alone && GPUSHMEM_THREAD_LOADS >= 16 ? 4 : 1,
                  sends = alone && slots == 1 ? 2 : slots;
    for (unsigned chunk = 0; chunk < d.chunks && !c->status; chunk++, c->epoch++)
        gpsh_dev_dense_many<WHO, sends, slots, WHOLE>(c, d, fold, chunk * d.slots);
}

// `folds`: what is here with what comes.
template <int WHO, bool WHOLE, class Fold>
GPSH_DEV void gpsh_dev_dense_run(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op,
                                 const Fold &fold, bool folds)
{
    const uint64_t bytes = gpsh_dev_coll_bytes(op);
    const unsigned chunks = gpushmem_coll_dense_chunks(bytes, c->stream);
    if (c->lane >= gpushmem_coll_dense_chunk_slots(bytes, chunks))
        return; // of many threads: what they do not do is time for the others
    gpsh_dev_dense_with<WHO, WHOLE>(c, gpsh_dev_dense_of(*c, op, folds), fold);
}

// A function for each of these, so that none keeps in registers what another one needs. 0, or why
// this thread gave up.
template <int WHO, bool WHOLE, class Fold>
GPSH_DEV_CALL int gpsh_dev_dense_by(struct gpsh_dev_coll c, struct gpushmem_coll_op op, Fold fold,
                                    bool folds)
{
    GPSH_DEV_BOUNDS();
    gpsh_dev_dense_run<WHO, WHOLE>(&c, op, fold, folds);
    return c.status;
}

GPSH_DEV bool gpsh_dev_dense_sums(const struct gpushmem_coll_op &op, int type)
{
    return op.fold == GPUSHMEM_COLL_SUM && op.type == type;
}

// Of kernels, by a lone thread: it has more of them under way, and folds other types than float as
// it folds what lies in memory, where dest can take what comes.
GPSH_DEV int gpsh_dev_dense_alone(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op)
{
    const gpsh_dev_fold_one<GPUSHMEM_COLL_FLOAT, GPUSHMEM_COLL_SUM> sum;
    const gpsh_dev_fold_any any = {op.type, op.fold};
    const char *own = gpsh_dev_coll_source(op, c.me);
    bool folds = gpsh_dev_coll_folds(op);
    if (folds && gpsh_dev_dense_sums(op, GPUSHMEM_COLL_FLOAT))
        return gpsh_dev_dense_by<GPSH_DENSE_ALONE, true>(c, op, sum, true);
    if (folds && (gpsh_dev_coll_scans(op) || op.dest == own))
        return gpsh_dev_dense_by<GPSH_DENSE_GROUP, true>(c, op, any, true);
    int status = gpsh_dev_dense_by<GPSH_DENSE_ALONE, true>(c, op, gpsh_dev_fold_none(), false);
    if (status || !folds)
        return status;
    struct gpsh_dev_fold_job job =
        gpsh_dev_fold_all(c, own, (char *)op.dest, gpsh_dev_coll_bytes(op));
    job.slots = job.dest;
    gpsh_dev_coll_fold(c, op, job, 0, 1);
    return 0;
}

template <int WHO>
GPSH_DEV int gpsh_dev_dense_parts(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op)
{
    const gpsh_dev_fold_any any = {op.type, op.fold};
    return gpsh_dev_coll_folds(op)
               ? gpsh_dev_dense_by<WHO, false>(c, op, any, true)
               : gpsh_dev_dense_by<WHO, false>(c, op, gpsh_dev_fold_none(), false);
}

// By a lone thread, a group of a kernel, or all blocks of a grid (WHO). 0, or why it gave up. What
// a lone thread needs is not compiled for groups: its registers would cost warps a fifth of their
// time.
template <int WHO>
GPSH_DEV int gpsh_dev_dense_group(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op)
{
    const gpsh_dev_fold_one<GPUSHMEM_COLL_FLOAT, GPUSHMEM_COLL_SUM> sum;
    const gpsh_dev_fold_any any = {op.type, op.fold};
    constexpr bool alone = WHO == GPSH_DENSE_ALONE;
    if (!gpsh_dev_dense_whole(op))
        return gpsh_dev_dense_parts < alone ? +GPSH_DENSE_GROUP : WHO > (c, op);
    if constexpr (alone) {
        return gpsh_dev_dense_alone(c, op);
    } else {
        if (!gpsh_dev_coll_folds(op))
            return gpsh_dev_dense_by<WHO, true>(c, op, gpsh_dev_fold_none(), false);
        return gpsh_dev_dense_sums(op, GPUSHMEM_COLL_FLOAT)
                   ? gpsh_dev_dense_by<WHO, true>(c, op, sum, true)
                   : gpsh_dev_dense_by<WHO, true>(c, op, any, true);
    }
}

// The operation's first number is one of which none after it has a low half of 0, for all members.
GPSH_DEV void gpsh_dev_dense_begin(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    unsigned chunks = gpushmem_coll_dense_chunks(gpsh_dev_coll_bytes(op), c->stream);
    if (gpsh_dev_dense_counts(c->epoch, chunks))
        return;
    c->epoch = (c->epoch + chunks - 1) & ~(uint64_t)0xffffffff;
    c->status = gpsh_dev_group_agree(c->group, c->status);
    if (!c->status)
        gpsh_dev_coll_round(c);
}

// Blocks of two members.
template <int WHO>
GPSH_DEV void gpsh_dev_coll_dense(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    gpsh_dev_dense_begin(c, op);
    if (!c->status)
        c->status = gpsh_dev_dense_group<WHO>(*c, op);
    c->epoch += gpushmem_coll_dense_chunks(gpsh_dev_coll_bytes(op), c->stream) - 1;
}

#endif
