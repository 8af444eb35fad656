// SPDX-License-Identifier: BSD-3-Clause
// Sync and barrier of a team in kernels.
#ifndef GPUSHMEM_DEVICE_COLL_SYNC_CUH
#define GPUSHMEM_DEVICE_COLL_SYNC_CUH

#include "gpushmem/device/coll_compare.cuh"
#include "gpushmem/device/coll_rounds.cuh"

enum {
    GPSH_DEV_SYNC_FLAT = 32, // members that all tell all
    GPSH_DEV_SYNC_RADIX = 8,
};

// Rounds of dissemination among mapped members: in round i each tells the seven at distances of 1
// to 7 times 8^i.
GPSH_DEV void gpsh_dev_coll_disseminate(struct gpsh_dev_coll *c)
{
    const int radix = GPSH_DEV_SYNC_RADIX;
    uint64_t *words = (uint64_t *)(c->scratch + GPUSHMEM_COLL_SYNC_AT);
    int first = 0;
    for (int64_t distance = 1; distance < c->n && !c->status;
         distance *= radix, first += radix - 1) {
        for (int k = 1; k < radix && k * distance < c->n; k++)
            gpsh_dev_coll_store(*c, words + first + k - 1, c->epoch,
                                (int)((c->me + k * distance) % c->n));
        for (int k = 1; k < radix && k * distance < c->n; k++)
            gpsh_dev_coll_await(c, words + first + k - 1, c->epoch);
        gpsh_dev_fence_sys(); // what the others told is told on
    }
}

GPSH_DEV void gpsh_dev_coll_sync(struct gpsh_dev_coll *c)
{
    if (!(c->flags & GPUSHMEM_DEV_TEAM_DIRECT)) {
        c->status = gpsh_dev_rounds_met(*c); // each message is work for a proxy: few of them
        return;
    }
    if (c->n <= GPSH_DEV_SYNC_FLAT) {
        gpsh_dev_coll_meet(c, GPUSHMEM_COLL_ENTRY);
        return;
    }
    c->status = gpsh_dev_group_agree(c->group, c->status);
    if (c->group.rank == 0 && !c->status) {
        gpsh_dev_fence_sys(); // for all threads of the group: they came through its barrier
        gpsh_dev_coll_disseminate(c);
    }
    c->status = gpsh_dev_group_agree(c->group, c->status);
}

GPSH_DEV int gpsh_dev_coll_compare_sync(struct gpsh_dev_coll *c, bool quiet)
{
    struct gpushmem_coll_op op = {};
    op.kind = (uint8_t)(quiet ? GPUSHMEM_COLL_BARRIER : GPUSHMEM_COLL_SYNC);
    return gpsh_dev_coll_compare(*c, op, 0);
}

// quiet, then sync. The fence of the sync is quiet enough where all PEs are reached directly.
GPSH_DEV_CALL int gpsh_dev_team_sync(const struct gpushmem_dev &dev, struct gpsh_dev_teams teams,
                                     struct gpsh_dev_group group, int handle, bool quiet)
{
    GPSH_DEV_BOUNDS();
    struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, group);
    if (!gpsh_dev_coll_begin(&c, teams, handle))
        return c.status;
    if (gpsh_dev_coll_compares(&c))
        if (int status = gpsh_dev_coll_compare_sync(&c, quiet))
            return status;
    if (quiet && group.rank == 0 && !(dev.flags & GPUSHMEM_DEV_ALL_DIRECT))
        gpsh_dev_quiet(dev, dev);
    gpsh_dev_coll_sync(&c);
    return gpsh_dev_coll_end(&c);
}

#endif
