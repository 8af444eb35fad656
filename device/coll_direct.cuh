// SPDX-License-Identifier: BSD-3-Clause
// Collectives of larger blocks: through staging memory, or by loads and stores of the members' own
// source and dest between two flags. An entry flag says that a member's source is ready and its
// dest may be written, an exit flag that its stores are there and that it reads no more. Block b of
// a launch waits for block b of its peers alone.
#ifndef GPUSHMEM_DEVICE_COLL_DIRECT_CUH
#define GPUSHMEM_DEVICE_COLL_DIRECT_CUH

#include "gpushmem/device/coll_fold.cuh"

// ---- Parts ----

// The part of a vector that belongs to one of `parts`: units of 128 bytes.
struct gpsh_dev_slice {
    uint64_t first, bytes;
};
GPSH_DEV struct gpsh_dev_slice gpsh_dev_slice_of(uint64_t bytes, unsigned part, unsigned parts)
{
    uint64_t piece = ((bytes + parts - 1) / parts + 127) & ~(uint64_t)127, first = piece * part;
    return {first, first >= bytes ? 0 : bytes - first < piece ? bytes - first : piece};
}

// ---- Copies ----

// This PE's own block, by all lanes.
GPSH_DEV void gpsh_dev_copy_own(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op)
{
    char *to = gpsh_dev_coll_dest(op, c.me);
    const char *from = gpsh_dev_coll_source(op, c.me);
    if (gpsh_dev_coll_strided(op))
        gpsh_dev_coll_copy_apart(to, from, op, c.lane, c.lanes);
    else if (to != from)
        gpsh_dev_coll_copy(to, from, gpsh_dev_coll_message(op, c.me, c.me), c.lane, c.lanes);
}

// One member that no store reaches: the exit flag is the signal of the put, by the NIC's queue
// where there is one, else through a ring.
GPSH_DEV void gpsh_dev_copy_away(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op,
                                 char *to, int rank)
{
    const struct gpushmem_dev &dev = *c.dev.self;
    int pe = gpsh_dev_coll_pe(c, rank);
    uint64_t *exit = gpsh_dev_coll_flag(c, GPUSHMEM_COLL_EXIT, c.me);
    const char *from = gpsh_dev_coll_source(op, rank);
    if (!gpsh_dev_coll_strided(op)) {
        const uint64_t bytes = gpsh_dev_coll_message(op, c.me, rank);
        if (!gpsh_dev_coll_post(dev, to, from, bytes, exit, c.epoch, pe, true))
            gpsh_dev_ring_put_signal(dev, to, from, bytes, exit, c.epoch, GPUSHMEM_SIGNAL_SET, pe,
                                     true);
        return;
    }
    gpsh_dev_ring_strided(dev, GPUSHMEM_CMD_IPUT, to, from, op.dest_stride, op.source_stride, op.n,
                          op.width, pe);
    gpsh_dev_ring_quiet_pe(dev, pe);
    gpsh_dev_announce_by_ring(dev, exit, c.epoch, pe);
}

// Tells and hears the exit of all members; those without a mapping were told with their data. Who
// has given up tells nobody: its stores are not there.
GPSH_DEV_CALL int gpsh_dev_coll_left(struct gpsh_dev_coll c)
{
    GPSH_DEV_BOUNDS();
    unsigned rank = c.group.rank, size = c.group.size;
    uint64_t *own = gpsh_dev_coll_flag(c, GPUSHMEM_COLL_EXIT, c.me);
    c.status = gpsh_dev_group_agree(c.group, c.status);
    if (c.status)
        return c.status;
    if (rank < (unsigned)c.n)
        gpsh_dev_fence_sys();
    for (int r = (int)rank; r < c.n; r += (int)size)
        if (char *there = r == c.me ? nullptr : gpsh_dev_coll_there(c, own, r))
            gpsh_dev_store64_sys(there, c.epoch);
    for (int r = (int)rank; r < c.n; r += (int)size)
        if (r != c.me)
            gpsh_dev_coll_await(&c, gpsh_dev_coll_flag(c, GPUSHMEM_COLL_EXIT, r), c.epoch);
    return gpsh_dev_group_agree(c.group, c.status);
}

GPSH_DEV void gpsh_dev_coll_leave(struct gpsh_dev_coll *c)
{
    c->status = gpsh_dev_coll_left(*c);
}

// Each member pushes its blocks, beginning with the next one's. `base`: where this PE's block goes
// in dest.
GPSH_DEV void gpsh_dev_copy_push(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op,
                                 char *base)
{
    for (int k = 1; k < c->n; k++) {
        int to = c->me + k < c->n ? c->me + k : c->me + k - c->n;
        char *there = gpsh_dev_coll_there(*c, base, to);
        const char *from = gpsh_dev_coll_source(op, to);
        if (!there) {
            if (c->lane == 0)
                gpsh_dev_copy_away(*c, op, base, to);
        } else if (gpsh_dev_coll_strided(op)) {
            gpsh_dev_coll_copy_apart(there, from, op, c->lane, c->lanes);
        } else {
            gpsh_dev_coll_copy(there, from, gpsh_dev_coll_message(op, c->me, to), c->lane,
                               c->lanes);
        }
    }
    gpsh_dev_copy_own(*c, op);
}

GPSH_DEV void gpsh_dev_copy_direct(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    gpsh_dev_coll_exchange(c, GPUSHMEM_COLL_ENTRY);
    if (c->status)
        return;
    gpsh_dev_copy_push(c, op, gpsh_dev_coll_dest(op, c->me));
    gpsh_dev_coll_leave(c);
}

// ---- Broadcasts of streams: each leaf reads a part, and passes it on ----

// Where the root's source is, which the others may not know: how far behind dest.
GPSH_DEV void gpsh_dev_relay_tell(const struct gpsh_dev_coll &c, const struct gpushmem_coll_op &op)
{
    uint64_t away = (uintptr_t)op.source - (uintptr_t)op.dest;
    for (int r = (int)c.group.rank; r < c.n; r += (int)c.group.size)
        if (r != c.me)
            gpsh_dev_coll_tell(c, GPUSHMEM_COLL_COUNT, away, r);
}

// After the entry flags.
GPSH_DEV const char *gpsh_dev_relay_source(const struct gpsh_dev_coll &c,
                                           const struct gpushmem_coll_op &op)
{
    const uint64_t *told = gpsh_dev_coll_flag(c, GPUSHMEM_COLL_COUNT, op.root);
    return (const char *)((uintptr_t)gpsh_dev_coll_there(c, op.dest, op.root) +
                          gpsh_dev_load64_value_sys(told));
}

// What this PE passes on.
GPSH_DEV struct gpsh_dev_slice gpsh_dev_relay_part(const struct gpsh_dev_coll &c,
                                                   const struct gpushmem_coll_op &op)
{
    const int leaf = c.me < op.root ? c.me : c.me - 1;
    return gpsh_dev_slice_of(gpsh_dev_coll_bytes(op), (unsigned)leaf, (unsigned)c.n - 1);
}

// `bytes` at from to the same place of all leaves, from this PE's `to` on.
GPSH_DEV void gpsh_dev_relay_copy(const struct gpsh_dev_coll &c, int root, char *to,
                                  const char *from, uint64_t bytes)
{
    for (int k = 0; k < c.n && bytes; k++) {
        int rank = c.me + k < c.n ? c.me + k : c.me + k - c.n;
        if (rank != root)
            gpsh_dev_coll_copy(gpsh_dev_coll_there(c, to, rank), from, bytes, c.lane, c.lanes);
    }
}

// What a leaf reads once it stores to all leaves: so the root sends each byte once, and nobody
// waits for a piece to arrive. All members are mapped.
GPSH_DEV void gpsh_dev_broadcast_relayed(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    if (c->me == op.root)
        gpsh_dev_relay_tell(*c, op);
    gpsh_dev_coll_exchange(c, GPUSHMEM_COLL_ENTRY);
    if (c->status)
        return;
    const struct gpsh_dev_slice part = gpsh_dev_relay_part(*c, op);
    if (c->me == op.root)
        gpsh_dev_copy_own(*c, op);
    else
        gpsh_dev_relay_copy(*c, op.root, (char *)op.dest + part.first,
                            gpsh_dev_relay_source(*c, op) + part.first, part.bytes);
    gpsh_dev_coll_leave(c);
}

// collect: the number of elements travels ahead of the entry flag, then each knows its place.
GPSH_DEV void gpsh_dev_collect(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    unsigned rank = c->group.rank, size = c->group.size;
    for (int r = (int)rank; r < c->n && !c->status; r += (int)size)
        if (r == c->me)
            *gpsh_dev_coll_flag(*c, GPUSHMEM_COLL_COUNT, r) = op.n;
        else
            gpsh_dev_coll_tell(*c, GPUSHMEM_COLL_COUNT, op.n, r);
    gpsh_dev_coll_exchange(c, GPUSHMEM_COLL_ENTRY);
    if (c->status)
        return; // the numbers are not all there
    uint64_t before = 0;
    for (int r = 0; r < c->me; r++)
        before += gpsh_dev_load64_value_sys(gpsh_dev_coll_flag(*c, GPUSHMEM_COLL_COUNT, r));
    struct gpushmem_coll_op mine = op;
    mine.dest = (char *)op.dest + before * op.width;
    gpsh_dev_copy_push(c, mine, (char *)mine.dest);
    gpsh_dev_coll_leave(c);
}

// ---- Staging memory ----

// Each member's block into this PE's slot at it, then its exit flag; what came is folded or copied
// out. Two buffers, as for packets: a member's slot of the operation before last is free.
GPSH_DEV void gpsh_dev_coll_staged(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    uint64_t slot = gpushmem_coll_stage_most(c->n);
    char *buffer = c->scratch + gpushmem_coll_stage_at(c->room, c->stream) +
                   (c->epoch & 1) * (unsigned)(c->n - 1) * slot;
    for (int k = 1; k < c->n && !c->status; k++) {
        int to = c->me + k < c->n ? c->me + k : c->me + k - c->n;
        char *place = buffer + (unsigned)(c->me < to ? c->me : c->me - 1) * slot;
        gpsh_dev_coll_copy(gpsh_dev_coll_there(*c, place, to), gpsh_dev_coll_source(op, to),
                           gpsh_dev_coll_message(op, c->me, to), c->lane, c->lanes);
    }
    gpsh_dev_coll_leave(c);
    if (c->status)
        return;
    if (gpsh_dev_coll_folds(op)) {
        struct gpsh_dev_fold_job job = gpsh_dev_fold_all(*c, gpsh_dev_coll_source(op, c->me),
                                                         (char *)op.dest, gpsh_dev_coll_bytes(op));
        job.slots = buffer;
        job.slot_bytes = slot;
        job.end = gpsh_dev_coll_fold_end(*c, op);
        gpsh_dev_coll_fold(*c, op, job, c->lane, c->lanes);
        return;
    }
    for (int r = 0; r < c->n; r++)
        if (r != c->me)
            gpsh_dev_coll_copy(gpsh_dev_coll_dest(op, r),
                               buffer + (unsigned)(r < c->me ? r : r - 1) * slot,
                               gpsh_dev_coll_message(op, r, c->me), c->lane, c->lanes);
    gpsh_dev_copy_own(*c, op);
}

// ---- Folds ----

// reducescatter pulls this PE's block from all. Of a reduce the owner of a slice pulls it from all,
// folds it and pushes it to all: the only one to touch it, so dest may be source, and half of what
// crosses a link are stores, which are quicker. In a scan the owner pushes to each its prefix.
GPSH_DEV struct gpsh_dev_fold_job gpsh_dev_fold_plan(const struct gpsh_dev_coll &c,
                                                     const struct gpushmem_coll_op &op)
{
    uint64_t bytes = gpsh_dev_coll_bytes(op);
    struct gpsh_dev_fold_job job =
        gpsh_dev_fold_all(c, gpsh_dev_coll_source(op, c.me), (char *)op.dest, bytes);
    if (op.kind == GPUSHMEM_COLL_REDUCESCATTER)
        return job;
    struct gpsh_dev_slice slice = gpsh_dev_slice_of(bytes, (unsigned)c.me, (unsigned)c.n);
    job.source += slice.first;
    job.dest += slice.first;
    job.bytes = slice.bytes;
    job.results = gpsh_dev_fold_job::prefixes;
    if (op.kind == GPUSHMEM_COLL_REDUCE)
        job.results = gpsh_dev_fold_job::all;
    return job;
}

GPSH_DEV void gpsh_dev_fold_direct(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    gpsh_dev_coll_exchange(c, GPUSHMEM_COLL_ENTRY);
    if (c->status)
        return;
    gpsh_dev_coll_fold(*c, op, gpsh_dev_fold_plan(*c, op), c->lane, c->lanes);
    gpsh_dev_coll_leave(c);
}

// ---- Members behind a NIC ----

// Some command of the ring has failed, this operation's or another's: the gets once more, of which
// each is answered now.
GPSH_DEV_CALL int gpsh_dev_fold_fetch_again(struct gpsh_dev_coll c, struct gpsh_dev_fold_job job)
{
    GPSH_DEV_BOUNDS();
    int status = 0;
    uint64_t unused;
    for (int r = 0; r < job.end && !status; r++)
        if (r != c.me && !gpsh_dev_coll_there(c, job.source, r))
            status = gpsh_dev_push_and_wait(
                *c.dev.self,
                gpsh_dev_command(GPUSHMEM_CMD_GET, gpsh_dev_coll_pe(c, r), job.source,
                                 gpsh_dev_fold_source(c, job, r), job.bytes),
                &unused);
    return status;
}

GPSH_DEV int gpsh_dev_ring_failures(const struct gpushmem_dev &dev)
{
    return gpsh_dev_load32_relaxed_sys(&gpsh_dev_ring(dev).status->failed);
}

// One piece of the members that are not mapped, into slots of staging memory. `failures`: of the
// ring's commands, when the operation began. 0, or why it is not here: the same for the group.
GPSH_DEV int gpsh_dev_fold_fetch(const struct gpsh_dev_coll &c, const struct gpsh_dev_fold_job &job,
                                 int failures)
{
    int status = 0;
    gpsh_dev_group_sync(c.group);
    if (c.group.rank == 0) {
        for (int r = 0; r < job.end; r++)
            if (r != c.me && !gpsh_dev_coll_there(c, job.source, r))
                gpsh_dev_ring_get(*c.dev.self, (char *)gpsh_dev_fold_source(c, job, r), job.source,
                                  job.bytes, gpsh_dev_coll_pe(c, r), false);
        status = gpsh_dev_rings_quiet(*c.dev.self);
        gpsh_dev_fence_full_sys();
        if (!status && gpsh_dev_ring_failures(c.dev) != failures)
            status = gpsh_dev_fold_fetch_again(c, job);
    }
    return gpsh_dev_group_agree(c.group, status);
}

// Of a scan: everybody has read the piece of everybody's source before any of them writes dest,
// which may be source. The flag has 20 bits for the piece: each 2^20 pieces the operation takes the
// next number, as all members do at the same piece, so that the flag never goes back.
GPSH_DEV void gpsh_dev_fold_handshake(struct gpsh_dev_coll *c, uint64_t piece)
{
    uint64_t low = piece & ((1 << 20) - 1);
    if (!low && !(uint32_t)++c->epoch)
        gpsh_dev_coll_round(c);
    uint64_t value = c->epoch << 20 | low;
    gpsh_dev_group_sync(c->group);
    if (c->group.rank == 0 && !c->status) {
        for (int r = 0; r < c->n; r++)
            if (r != c->me)
                gpsh_dev_coll_tell(*c, GPUSHMEM_COLL_PROGRESS, value, r);
        for (int r = 0; r < c->n; r++)
            if (r != c->me)
                gpsh_dev_coll_await(c, gpsh_dev_coll_flag(*c, GPUSHMEM_COLL_PROGRESS, r), value);
    }
    c->status = gpsh_dev_group_agree(c->group, c->status); // one thread alone knows it
}

// By one thread, before it tells the others that it is through.
GPSH_DEV_CALL void gpsh_dev_fold_give_up(struct gpsh_dev_coll c, int status)
{
    GPSH_DEV_BOUNDS();
    uint64_t poison = gpushmem_team_poison(c.handle, status);
    gpsh_dev_fence_sys();
    for (int r = 0; r < c.n; r++)
        if (r != c.me)
            gpsh_dev_coll_store(c, (uint64_t *)c.scratch, poison, r);
    gpsh_dev_ring_fence(*c.dev.self, -1);
}

// Where a reduce or a scan has some member behind a NIC: pieces of the others are fetched and
// folded. A reduce's owner of a slice then puts it to those that it cannot store to; of a scan each
// folds its own prefix into memory between, until all have read. Whoever cannot fetch goes on, with
// what is in its staging memory, since the others wait for its flags; they find the poison then.
GPSH_DEV void gpsh_dev_fold_by_ring(struct gpsh_dev_coll *c, const struct gpushmem_coll_op &op)
{
    struct gpsh_dev_fold_job job = gpsh_dev_fold_plan(*c, op);
    uint64_t slot = gpushmem_coll_fetch_slot(c->room, c->n, c->stream);
    char *stage = c->scratch + gpushmem_coll_stage_at(c->room, c->stream);
    char *result = stage + (unsigned)(c->n - 1) * slot;
    bool scans = gpsh_dev_coll_scans(op);
    int failed = 0;
    int failures = c->group.rank == 0 ? gpsh_dev_ring_failures(c->dev) : 0;
    if (scans) // the whole vector, for oneself
        job = gpsh_dev_fold_all(*c, (const char *)op.source, (char *)op.dest,
                                gpsh_dev_coll_bytes(op));
    gpsh_dev_coll_exchange(c, GPUSHMEM_COLL_ENTRY);
    for (uint64_t at = 0, i = 1; at < job.bytes && !c->status; at += slot, i++) {
        struct gpsh_dev_fold_job piece = job;
        piece.source += at;
        piece.dest += at;
        piece.bytes = job.bytes - at < slot ? job.bytes - at : slot;
        piece.slots = stage;
        piece.slot_bytes = slot;
        piece.only_unmapped = true;
        piece.end = gpsh_dev_coll_fold_end(*c, op);
        if (scans)
            piece.dest = result;
        int status = gpsh_dev_fold_fetch(*c, piece, failures);
        failed = failed ? failed : status;
        gpsh_dev_coll_fold(*c, op, piece, c->group.rank, c->group.size);
        if (scans) {
            gpsh_dev_fold_handshake(c, i);
            if (!c->status)
                gpsh_dev_coll_copy(job.dest + at, result, piece.bytes, c->group.rank,
                                   c->group.size);
        }
    }
    gpsh_dev_group_sync(c->group);
    if (c->group.rank == 0 && !c->status) {
        if (failed)
            gpsh_dev_fold_give_up(*c, failed);
        gpsh_dev_fence_sys();
        for (int r = 0; r < c->n; r++)
            if (r != c->me && !gpsh_dev_coll_there(*c, job.dest, r))
                gpsh_dev_ring_put_signal(*c->dev.self, job.dest, job.dest,
                                         op.kind == GPUSHMEM_COLL_REDUCE ? job.bytes : 0,
                                         gpsh_dev_coll_flag(*c, GPUSHMEM_COLL_EXIT, c->me),
                                         c->epoch, GPUSHMEM_SIGNAL_SET, gpsh_dev_coll_pe(*c, r),
                                         true);
    }
    gpsh_dev_coll_leave(c);
    c->status = c->status ? c->status : failed;
}

#endif
