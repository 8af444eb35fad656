// SPDX-License-Identifier: BSD-3-Clause
// Calls of collectives: the arguments of each kind as one operation. What the public functions,
// ours (api_coll.cuh) and those of compat/nvshmem.h, are made of.
#ifndef GPUSHMEM_DEVICE_COLL_CALL_CUH
#define GPUSHMEM_DEVICE_COLL_CALL_CUH

#include "gpushmem/device/coll.cuh"

// Who calls. All blocks of a grid do so in another way (coll_grid.cuh).
template <class Scope> struct gpsh_dev_caller {
    static __device__ __forceinline__ int meet(const struct gpushmem_dev &dev, gpushmem_team_t team,
                                               bool quiet)
    {
        return gpsh_dev_team_sync(*dev.self, gpsh_dev_teams_of(dev), gpsh_dev_group_of<Scope>(),
                                  team, quiet);
    }
    static __device__ __forceinline__ int run(const struct gpushmem_dev &dev,
                                              const struct gpushmem_coll_op &op)
    {
        return gpsh_dev_coll_run(dev, gpsh_dev_group_of<Scope>(), op);
    }
};

template <class Scope>
GPSH_DEV int gpsh_dev_team_meet(const struct gpushmem_dev &dev, gpushmem_team_t team, bool quiet)
{
    return gpsh_dev_caller<Scope>::meet(dev, team, quiet);
}

template <class Scope>
GPSH_DEV int gpsh_dev_collective(const struct gpushmem_dev &dev, int kind, gpushmem_team_t team,
                                 void *dest, const void *source, uint64_t n, uint32_t width,
                                 int root = 0)
{
    struct gpushmem_coll_op op = {};
    op.team = team;
    op.kind = (uint8_t)kind;
    op.dest = dest;
    op.source = source;
    op.n = n;
    op.width = width;
    op.root = root;
    return gpsh_dev_caller<Scope>::run(dev, op);
}

template <class Scope>
GPSH_DEV int gpsh_dev_collective_fold(const struct gpushmem_dev &dev, int kind,
                                      gpushmem_team_t team, void *dest, const void *source,
                                      uint64_t n, uint32_t width, int type, int fold)
{
    struct gpushmem_coll_op op = {};
    op.team = team;
    op.kind = (uint8_t)kind;
    op.type = (uint8_t)type;
    op.fold = (uint8_t)fold;
    op.dest = dest;
    op.source = source;
    op.n = n;
    op.width = width;
    return gpsh_dev_caller<Scope>::run(dev, op);
}

template <class Scope>
GPSH_DEV int gpsh_dev_collective_strided(const struct gpushmem_dev &dev, gpushmem_team_t team,
                                         void *dest, const void *source, ptrdiff_t dst,
                                         ptrdiff_t sst, uint64_t n, uint32_t width)
{
    struct gpushmem_coll_op op = {};
    op.team = team;
    op.kind = GPUSHMEM_COLL_ALLTOALLS;
    op.dest = dest;
    op.source = source;
    op.n = n;
    op.width = width;
    op.dest_stride = dst;
    op.source_stride = sst;
    return gpsh_dev_caller<Scope>::run(dev, op);
}

// A team's entry in the kernels' table, or nullptr: this PE is in no such team.
GPSH_DEV const struct gpushmem_dev_team *gpsh_dev_team_entry(const struct gpushmem_dev &dev,
                                                             gpushmem_team_t team)
{
    return gpsh_dev_team_is_valid(dev, team) ? &dev.teams[team & GPUSHMEM_TEAM_SLOT_MASK] : nullptr;
}

#endif
