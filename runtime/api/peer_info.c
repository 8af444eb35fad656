// SPDX-License-Identifier: BSD-3-Clause
// gpushmem_peer_info: how a PE is reached.
#include "api/argument.h"
#include "connect/peers.h"
#include "gpushmem/gpushmem.h"
#include "proxy/device_side.h"
#include "state/state.h"

int gpushmem_peer_info(int pe, struct gpushmem_peer_info *info)
{
    int status = gpsh_check_pe_number(__func__, pe);
    if (status)
        return status;
    if (!info)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "gpushmem_peer_info: info is NULL");
    const struct gpsh_peer *peer = &gpsh.peers[pe];
    *info = (struct gpushmem_peer_info){
        .transport = gpsh.transports[peer->data]->ops->name,
        .atomics = gpsh.cpu_atomics ? "processor" : gpsh.transports[peer->amo]->ops->name,
        .same_node = peer->same_node,
        .device_direct = gpsh_device_side_direct(pe) != NULL,
    };
    gpsh_peer_explain(pe, info->description, sizeof info->description);
    return 0;
}
