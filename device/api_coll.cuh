// SPDX-License-Identifier: BSD-3-Clause
// The public collectives of kernels (contracts: gpushmem/device.cuh).
#ifndef GPUSHMEM_DEVICE_API_COLL_CUH
#define GPUSHMEM_DEVICE_API_COLL_CUH

#include "gpushmem/device/api.cuh"
#include "gpushmem/device/coll.cuh"
#include "gpushmem/impl/coll_types.h"
#include "gpushmem/impl/complex_types.h"

// The bytes of an element. Complex types may be declared only.
template <typename T> constexpr size_t gpsh_dev_size = sizeof(T);
template <typename T> constexpr size_t gpsh_dev_size<std::complex<T>> = 2 * sizeof(T);

GPSH_API(int, gpushmem_dev_team_my_pe, (gpushmem_team_t team), (team),
         return gpsh_dev_team_is_valid(dev, team)
                    ? dev.teams[team & GPUSHMEM_TEAM_SLOT_MASK].my_rank
                    : -1)
GPSH_API(int, gpushmem_dev_team_n_pes, (gpushmem_team_t team), (team),
         return gpsh_dev_team_is_valid(dev, team) ? dev.teams[team & GPUSHMEM_TEAM_SLOT_MASK].n
                                                  : -1)
// The number in WORLD of the member with this rank, or -1.
GPSH_API(int, gpushmem_dev_team_world_pe, (gpushmem_team_t team, int rank), (team, rank),
         return gpsh_dev_team_is_valid(dev, team) &&
                        (unsigned)rank < (unsigned)dev.teams[team & GPUSHMEM_TEAM_SLOT_MASK].n
                    ? dev.teams[team & GPUSHMEM_TEAM_SLOT_MASK].pes[rank]
                    : -1)

#include "gpushmem/device/api_coll_rows.cuh"

#endif
