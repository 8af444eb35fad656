// SPDX-License-Identifier: BSD-3-Clause
// Collectives of a team by all blocks of a grid, from the middle of a kernel: for data that one
// block of threads would take long for.
//
// int gpushmem_dev_TYPE_broadcast_grid(...), and so on, for each collective of gpushmem/device.cuh
//     In kernels of GPUSHMEM_LAUNCH_COLLECTIVE: called by all threads of all blocks, on every
//     member of the team, with the arguments of the form without _grid. The grid meets at the
//     beginning and at the end (gpushmem/grid_sync.cuh): all blocks may have written source
//     before, and each thread may read all of dest, and write source, after it. A call without
//     elements is a meeting of the grid, not of the members. Grids of all members have the same
//     number of blocks; the first 64 take part. Where a member is reached through rings, the first
//     one does.
//     An operation of the team's sequence of streams: not while one of a stream is under way on
//     this PE (GPUSHMEM_CHECK=1: GPUSHMEM_ERR_STATE), and on all members in one order with those.
//     Nor while another kernel calls one for the team on this PE: blocks of the two grids would be
//     taken for each other's where they meet, which nothing finds.
//     GPUSHMEM_CHECK=1 compares it with kernels' own calls of channel 0, so that a member that
//     forgets _grid is found: then one of the team's channel 0 may not be under way either. Another
//     channel, or another team, may.
//     0, or a negative status, the same for all threads of the grid:
//       GPUSHMEM_ERR_INVALID    no such team on this PE, a channel of one, or a team without
//                               memory for operations of streams (GPUSHMEM_TEAM_MEMORY)
//       GPUSHMEM_ERR_STATE      the kernel was not launched so that its blocks can meet
//       GPUSHMEM_ERR_ASYMMETRY  with GPUSHMEM_CHECK=1: members call differently, or by grids of
//                               different numbers of blocks; none begins, and the team goes on
//     or why the wait for the others ended: then the team can only be destroyed.
// int gpushmem_dev_team_sync_grid(gpushmem_team_t team)
// int gpushmem_dev_barrier_grid(gpushmem_team_t team)
//     The same for what moves no data.
#ifndef GPUSHMEM_COLL_GRID_CUH
#define GPUSHMEM_COLL_GRID_CUH

#include "gpushmem/device/coll_grid.cuh"

template <> struct gpsh_dev_caller<gpsh_scope_grid> {
    static __device__ __forceinline__ int run(const struct gpushmem_dev &dev,
                                              const struct gpushmem_coll_op &op)
    {
        return gpsh_dev_coll_grid(*dev.self, gpsh_dev_teams_of(dev), op);
    }
    static __device__ __forceinline__ int meet(const struct gpushmem_dev &dev, gpushmem_team_t team,
                                               bool quiet)
    {
        struct gpushmem_coll_op op = {};
        op.team = team;
        op.kind = (uint8_t)(quiet ? GPUSHMEM_COLL_BARRIER : GPUSHMEM_COLL_SYNC);
        return run(dev, op);
    }
};

#pragma push_macro("GPSH_SCOPES")
#undef GPSH_SCOPES
#define GPSH_SCOPES(X, ...) X(_grid, gpsh_scope_grid, __VA_ARGS__)
#include "gpushmem/device/api_coll_rows.cuh"
#pragma pop_macro("GPSH_SCOPES")

#endif
