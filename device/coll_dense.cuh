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

#include "gpushmem/device/coll_unit.cuh"

enum {
    GPSH_DENSE_ROW = GPUSHMEM_COLL_DENSE_ROW,
    GPSH_DENSE_TILE = GPUSHMEM_COLL_DENSE_TILE,
    GPSH_DENSE_UNITS = GPUSHMEM_COLL_DENSE_DATA / 16,
    GPSH_DENSE_PACKETS = GPUSHMEM_COLL_DENSE_SLOT / 16,
    GPSH_DENSE_KERNEL_MOST = 64 << 10, // the largest block of kernels,
    GPSH_DENSE_GRID_MOST = 2 << 20,    // and of all blocks of a grid
};

// What travels, and where to.
struct gpsh_dev_dense {
    const char *own;  // this PE's contribution to its own result; NULL: none
    const char *sent; // the block that the other gets; NULL: its slots are empty
    char *kept;       // where the own block goes if nothing is folded; NULL: it is there
    char *taken;      // where the result goes, or the other's block; NULL: nowhere
    bool brings;      // the other's slots have data
    bool folds;
    bool whole;     // all units are of 16 bytes, aligned
    uint64_t bytes; // of a block
    char *to;       // the first of two buffers, of the other member,
    const char *from;
    uint64_t buffer;        // and how large one is
    unsigned slots, chunks; // of a chunk; of the block
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

GPSH_DEV struct gpsh_dev_dense gpsh_dev_dense_of(const struct gpsh_dev_coll &c,
                                                 const struct gpushmem_coll_op &op, unsigned slots,
                                                 unsigned chunks)
{
    struct gpsh_dev_dense d = {};
    const int other = 1 - c.me;
    d.folds = gpsh_dev_coll_folds(op);
    d.bytes = gpsh_dev_coll_bytes(op);
    d.brings = gpsh_dev_coll_message(op, other, c.me) > 0;
    if (gpsh_dev_coll_message(op, c.me, c.me) && op.kind != GPUSHMEM_COLL_EXSCAN)
        d.own = gpsh_dev_coll_source(op, c.me);
    if (gpsh_dev_coll_message(op, c.me, other))
        d.sent = gpsh_dev_coll_source(op, other);
    if (d.folds)
        d.taken = (char *)op.dest;
    else if (d.brings)
        d.taken = gpsh_dev_coll_dest(op, other);
    if (!d.folds && d.own && gpsh_dev_coll_dest(op, c.me) != d.own)
        d.kept = gpsh_dev_coll_dest(op, c.me);
    d.whole = !(
        ((uintptr_t)d.own | (uintptr_t)d.sent | (uintptr_t)d.kept | (uintptr_t)d.taken | d.bytes) &
        15);
    d.from = c.dense;
    d.to = gpsh_dev_coll_there(c, c.dense, other);
    d.buffer = gpushmem_coll_dense_bytes(c.stream) / 2;
    d.slots = slots;
    d.chunks = chunks;
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
    return slot / GPSH_DENSE_ROW * (GPSH_DENSE_ROW * GPUSHMEM_COLL_DENSE_SLOT) +
           slot % GPSH_DENSE_ROW * 16;
}

// Units that are not whole or not aligned: many instructions, between which a unit's load waits.
GPSH_DEV_CALL struct gpsh_dev_dense_data gpsh_dev_dense_load_parts(const char *block, uint64_t at,
                                                                   uint64_t bytes)
{
    struct gpsh_dev_dense_data data = {};
    for (int j = 0; j < GPSH_DENSE_UNITS; j++, at += 16 * GPSH_DENSE_ROW)
        if (block && at < bytes)
            data.units[j] = gpsh_dev_load_unit<4>(block + at, bytes - at);
    return data;
}

GPSH_DEV_CALL void gpsh_dev_dense_store_parts(char *block, struct gpsh_dev_dense_data data,
                                              uint64_t at, uint64_t bytes)
{
    for (int j = 0; j < GPSH_DENSE_UNITS; j++, at += 16 * GPSH_DENSE_ROW)
        if (at < bytes)
            gpsh_dev_store_unit<4>(block + at, data.units[j], bytes - at);
}

GPSH_DEV void gpsh_dev_dense_load(const struct gpsh_dev_dense &d, struct gpsh_dev_dense_data *data,
                                  const char *block, uint64_t at)
{
    if (!d.whole) {
        *data = gpsh_dev_dense_load_parts(block, at, d.bytes);
        return;
    }
    GPSH_UNROLL
    for (int j = 0; j < GPSH_DENSE_UNITS; j++, at += 16 * GPSH_DENSE_ROW) {
        data->units[j] = {};
        if (block && at < d.bytes)
            data->units[j] = gpsh_dev_load_whole(block + at);
    }
}

GPSH_DEV void gpsh_dev_dense_store(const struct gpsh_dev_dense &d, char *block,
                                   const struct gpsh_dev_dense_data &data, uint64_t at)
{
    if (!d.whole) {
        gpsh_dev_dense_store_parts(block, data, at, d.bytes);
        return;
    }
    GPSH_UNROLL
    for (int j = 0; j < GPSH_DENSE_UNITS; j++, at += 16 * GPSH_DENSE_ROW)
        if (at < d.bytes)
            gpsh_dev_store_whole(block + at, data.units[j]);
}

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
            packet.data[i] = data.units[(3 * k + i) / 4].w[(3 * k + i) % 4];
        if (!k || d.sent)
            gpsh_dev_store_dense(place + k * 16 * GPSH_DENSE_ROW, packet);
    }
}

// One look at a slot. Returns a place where a packet is late, or `late`: without a question of its
// own, for which the loads of further slots would wait.
GPSH_DEV const char *gpsh_dev_dense_look(const struct gpsh_dev_dense &d, uint64_t number,
                                         unsigned at, struct gpsh_dev_dense_data *data,
                                         const char *late)
{
    const char *place = d.from + (number & 1) * d.buffer + at;
    GPSH_UNROLL
    for (int k = 0; k < GPSH_DENSE_PACKETS; k++) {
        if (k && !d.brings)
            continue;
        struct gpsh_dev_dense_packet packet = gpsh_dev_load_dense(place + k * 16 * GPSH_DENSE_ROW);
        late = packet.flag == (uint32_t)number ? late : place + k * 16 * GPSH_DENSE_ROW;
        GPSH_UNROLL
        for (int i = 0; i < 3; i++)
            data->units[(3 * k + i) / 4].w[(3 * k + i) % 4] = packet.data[i];
    }
    return late;
}

// So many slots of a row, which follow each other.
template <int SLOTS>
GPSH_DEV void gpsh_dev_dense_await(struct gpsh_dev_coll *c, const struct gpsh_dev_dense &d,
                                   unsigned at, struct gpsh_dev_dense_data *data)
{
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(c->dev);
    const char *late;
    do {
        late = nullptr;
        GPSH_UNROLL
        for (unsigned m = 0; m < SLOTS; m++)
            late = gpsh_dev_dense_look(d, c->epoch, at + 16 * m, &data[m], late);
        if (late)
            c->status = gpsh_dev_coll_spin(*c, &wait, late, c->epoch, 0);
    } while (late && !c->status);
}

// What is here and what came, at `at` of the block, in the order of ranks.
template <class Fold>
GPSH_DEV void gpsh_dev_dense_take(const struct gpsh_dev_coll &c, const struct gpsh_dev_dense &d,
                                  const Fold &fold, uint64_t at,
                                  const struct gpsh_dev_dense_data &own,
                                  const struct gpsh_dev_dense_data &in)
{
    if (!d.folds) {
        if (d.kept)
            gpsh_dev_dense_store(d, d.kept, own, at);
        if (d.taken)
            gpsh_dev_dense_store(d, d.taken, in, at);
        return;
    }
    struct gpsh_dev_dense_data out;
    GPSH_UNROLL
    for (int j = 0; j < GPSH_DENSE_UNITS; j++) {
        gpsh_dev_acc<4> acc = {};
        gpsh_dev_unit<4> zero, one; // by value: a choice of two addresses is one in memory
        GPSH_UNROLL
        for (int i = 0; i < 4; i++) {
            zero.w[i] = c.me ? in.units[j].w[i] : own.units[j].w[i];
            one.w[i] = c.me ? own.units[j].w[i] : in.units[j].w[i];
        }
        bool has_zero = c.me ? d.brings : d.own != nullptr,
             has_one = c.me ? d.own != nullptr : d.brings;
        if (has_zero)
            acc = gpsh_dev_fold_with(fold, acc, zero, true);
        if (has_one)
            acc = gpsh_dev_fold_with(fold, acc, one, !has_zero);
        out.units[j] = has_zero || has_one ? gpsh_dev_folded(fold, acc) : gpsh_dev_unit<4>{};
    }
    gpsh_dev_dense_store(d, d.taken, out, at);
}

// ---- The operation ----

// A thread has several slots of a chunk. A lone one takes so many at a time that follow each other:
// their loads are under way at once.
template <int SLOTS, class Fold>
GPSH_DEV void gpsh_dev_dense_many(struct gpsh_dev_coll *c, const struct gpsh_dev_dense &d,
                                  const Fold &fold, unsigned first)
{
    static_assert(GPSH_DENSE_ROW % SLOTS == 0, "of one row");
    struct gpsh_dev_dense_data own[SLOTS], in[SLOTS];
    const unsigned step = SLOTS * c->lanes;
    for (unsigned slot = c->lane; slot < d.slots; slot += step) {
        unsigned unit = gpsh_dev_dense_unit_at(first + slot), at = gpsh_dev_dense_packet_at(slot);
        GPSH_UNROLL
        for (unsigned m = 0; m < SLOTS; m++)
            gpsh_dev_dense_load(d, &own[m], d.sent, unit + 16 * m);
        GPSH_UNROLL
        for (unsigned m = 0; m < SLOTS; m++)
            gpsh_dev_dense_send(d, c->epoch, at + 16 * m, own[m]);
    }
    for (unsigned slot = c->lane; slot < d.slots; slot += step) {
        unsigned unit = gpsh_dev_dense_unit_at(first + slot), at = gpsh_dev_dense_packet_at(slot);
        GPSH_UNROLL
        for (unsigned m = 0; m < SLOTS; m++)
            gpsh_dev_dense_load(d, &own[m], d.own, unit + 16 * m);
        gpsh_dev_dense_await<SLOTS>(c, d, at, in);
        if (c->status)
            return;
        GPSH_UNROLL
        for (unsigned m = 0; m < SLOTS; m++)
            gpsh_dev_dense_take(*c, d, fold, unit + 16 * m, own[m], in[m]);
    }
}

// A thread has one slot of each chunk at most, and loads the next one's data while it waits.
template <class Fold>
GPSH_DEV void gpsh_dev_dense_single(struct gpsh_dev_coll *c, const struct gpsh_dev_dense &d,
                                    const Fold &fold)
{
    struct gpsh_dev_dense_data own, in, sent, next = {};
    const unsigned place = gpsh_dev_dense_packet_at(c->lane);
    gpsh_dev_dense_load(d, &sent, d.sent, gpsh_dev_dense_unit_at(c->lane));
    for (unsigned chunk = 0; chunk < d.chunks && !c->status; chunk++, c->epoch++) {
        unsigned slot = chunk * d.slots + c->lane;
        gpsh_dev_dense_send(d, c->epoch, place, sent);
        if (chunk + 1 < d.chunks)
            gpsh_dev_dense_load(d, &next, d.sent, gpsh_dev_dense_unit_at(slot + d.slots));
        own = sent;
        if (d.own != d.sent)
            gpsh_dev_dense_load(d, &own, d.own, gpsh_dev_dense_unit_at(slot));
        gpsh_dev_dense_await<1>(c, d, place, &in);
        if (!c->status)
            gpsh_dev_dense_take(*c, d, fold, gpsh_dev_dense_unit_at(slot), own, in);
        sent = next;
    }
}

template <int SLOTS, class Fold>
GPSH_DEV void gpsh_dev_dense_with(struct gpsh_dev_coll *c, const struct gpsh_dev_dense &d,
                                  const Fold &fold)
{
    if (SLOTS == 1 && c->lanes >= d.slots) {
        gpsh_dev_dense_single(c, d, fold);
        return;
    }
    for (unsigned chunk = 0; chunk < d.chunks && !c->status; chunk++, c->epoch++)
        gpsh_dev_dense_many<SLOTS>(c, d, fold, chunk * d.slots);
}

// By all lanes. There is no barrier in it: threads may give up one by one.
template <int SLOTS>
GPSH_DEV void gpsh_dev_dense_run(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    constexpr int sum = GPUSHMEM_COLL_SUM;
    const uint64_t bytes = gpsh_dev_coll_bytes(op);
    const unsigned chunks = gpushmem_coll_dense_chunks(bytes, c->stream),
                   slots = gpushmem_coll_dense_chunk_slots(bytes, chunks);
    const uint64_t last = c->epoch + chunks - 1;
    if (c->lane >= slots) { // many threads: what they do not do is time for the others
        c->epoch = last;
        return;
    }
    const struct gpsh_dev_dense d = gpsh_dev_dense_of(*c, op, slots, chunks);
    switch (op.fold == sum && d.folds ? +op.type : -1) {
    case GPUSHMEM_COLL_FLOAT:
        gpsh_dev_dense_with<SLOTS>(c, d, gpsh_dev_fold_one<GPUSHMEM_COLL_FLOAT, sum>());
        break;
#if defined(GPSH_COLL_SUMS)
    case GPUSHMEM_COLL_HALF:
        gpsh_dev_dense_with<SLOTS>(c, d, gpsh_dev_fold_one<GPUSHMEM_COLL_HALF, sum>());
        break;
    case GPUSHMEM_COLL_BFLOAT16:
        gpsh_dev_dense_with<SLOTS>(c, d, gpsh_dev_fold_one<GPUSHMEM_COLL_BFLOAT16, sum>());
        break;
#endif
    default: gpsh_dev_dense_with<SLOTS>(c, d, gpsh_dev_fold_any{op.type, op.fold}); break;
    }
    c->epoch = last;
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

// In kernels, by a group. A lone thread has more of them under way. 0, or why it gave up.
GPSH_DEV_CALL int gpsh_dev_dense_group(struct gpsh_dev_coll c, struct gpushmem_coll_op op)
{
    constexpr int alone = GPUSHMEM_THREAD_LOADS < 16 ? 2 : 4;
    if (c.lanes == 1)
        gpsh_dev_dense_run<alone>(&c, op);
    else
        gpsh_dev_dense_run<1>(&c, op);
    return c.status;
}

// Blocks of two members. Kernels and grids.
GPSH_DEV void gpsh_dev_coll_dense(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    gpsh_dev_dense_begin(c, op);
    if (!c->status)
        c->status = gpsh_dev_dense_group(*c, op);
    c->epoch += gpushmem_coll_dense_chunks(gpsh_dev_coll_bytes(op), c->stream) - 1;
}

#endif
