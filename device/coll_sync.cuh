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
GPSH_DEV_CALL int gpsh_dev_team_sync_of(struct gpsh_dev_coll *c, struct gpsh_dev_teams teams,
                                        int handle, bool quiet)
{
    GPSH_DEV_BOUNDS();
    if (!gpsh_dev_coll_begin(c, teams, handle))
        return c->status;
    if (gpsh_dev_coll_compares(c))
        if (int status = gpsh_dev_coll_compare_sync(c, quiet))
            return status;
    if (quiet && c->group.rank == 0 && !(c->dev.flags & GPUSHMEM_DEV_ALL_DIRECT))
        gpsh_dev_quiet(c->dev, c->dev);
    gpsh_dev_coll_sync(c);
    return gpsh_dev_coll_end(c);
}

// For any team. The operation's state is in local memory: in registers it would come on top of
// those of all that is called here.
GPSH_DEV_CALL int gpsh_dev_team_sync_rare(const struct gpushmem_dev &dev,
                                          struct gpsh_dev_teams teams, struct gpsh_dev_group group,
                                          int handle, bool quiet)
{
    GPSH_DEV_BOUNDS();
    struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, group);
    return gpsh_dev_team_sync_of(&c, teams, handle, quiet);
}

// Begins the sync of a team of few members, all mapped, of which none has failed. False: this
// thread sees another team, or an operation that is not to begin.
GPSH_DEV bool gpsh_dev_sync_begin(struct gpsh_dev_coll *c, const struct gpushmem_dev_team *entry,
                                  int handle)
{
    const uint32_t looked_at =
        GPUSHMEM_DEV_TEAM_DIRECT | GPUSHMEM_DEV_TEAM_CHECKED | GPUSHMEM_DEV_TEAM_LOST;
    const struct gpushmem_dev_team team = gpsh_dev_team_read(entry);
    const int channel = gpsh_dev_handle_channel(handle);
    const int channels = team.flags & GPUSHMEM_DEV_TEAM_STREAM ? (int)GPUSHMEM_TEAM_CHANNELS : 1;
    if (!gpsh_dev_team_is(team, handle) || channel >= channels || team.n > GPSH_DEV_SYNC_FLAT ||
        (team.flags & looked_at) != GPUSHMEM_DEV_TEAM_DIRECT)
        return false;
    gpsh_dev_coll_take(c, team);
    gpsh_dev_coll_take_channel(c, team, channel);
    c->epoch = gpsh_dev_load64_relaxed_gpu(c->epoch_word) + 1;
    return (uint32_t)c->epoch && !gpsh_dev_coll_poisoned(*c);
}

GPSH_DEV_CALL int gpsh_dev_team_sync(const struct gpushmem_dev &dev, struct gpsh_dev_teams teams,
                                     struct gpsh_dev_group group, int handle, bool quiet)
{
    GPSH_DEV_BOUNDS();
    struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, group);
    const struct gpushmem_dev_team *entry = gpsh_dev_teams_at(teams, handle);
    gpsh_dev_group_sync(group);
    bool begins = entry && (!quiet || dev.flags & GPUSHMEM_DEV_ALL_DIRECT) &&
                  gpsh_dev_sync_begin(&c, entry, handle);
    if (gpsh_dev_group_any(group, !begins))
        return gpsh_dev_team_sync_rare(dev, teams, group, handle, quiet);
    gpsh_dev_coll_meet_agreed(&c, GPUSHMEM_COLL_ENTRY, true, true);
    return gpsh_dev_coll_end(&c);
}

#endif
