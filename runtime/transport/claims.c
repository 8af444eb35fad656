// SPDX-License-Identifier: BSD-3-Clause
// What PEs have to have alike to move data by any network.
#include <inttypes.h>

#include "core/error.h"
#include "transport/transport.h"

int gpsh_peer_claims_check(const struct gpsh_transport_env *env, int pe, const char *network,
                           const struct gpsh_peer_claims *claims)
{
    if (claims->pe != (uint32_t)pe || claims->n_pes != (uint32_t)env->n_pes)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d published the %s data of PE %" PRIu32 " of %" PRIu32
                         " (this job has %d PEs)",
                         pe, network, claims->pe, claims->n_pes, env->n_pes);
    if (claims->n_channels != (uint32_t)env->channels)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d has %" PRIu32 " channels, this one %d: give all PEs the same "
                         "GPUSHMEM_CONTEXTS, GPUSHMEM_PROXY_THREADS and GPUSHMEM_DEVICE_POST",
                         pe, claims->n_channels, env->channels);
    for (int r = 0; r < GPSH_REGIONS; r++)
        if (claims->region_bytes[r] != env->regions[r].bytes && r != GPSH_STATIC)
            return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                             "PE %d has %" PRIu64 " bytes of symmetric memory where this one has "
                             "%zu: give all PEs the same GPUSHMEM_HEAP_SIZE",
                             pe, claims->region_bytes[r], env->regions[r].bytes);
    return 0;
}
