// SPDX-License-Identifier: BSD-3-Clause
// gpushmem_peer_info: how a PE is reached.
#include "api/argument.h"
#include "connect/atomics.h"
#include "connect/net.h"
#include "connect/peers.h"
#include "core/sized.h"
#include "gpushmem/gpushmem.h"
#include "job/job.h"
#include "proxy/device_side.h"

int gpushmem_peer_info_sized(int pe, struct gpushmem_peer_info *out, size_t size)
{
    enum { FIRST_VERSION = 280 };
    int status = gpsh_check_pe_number("gpushmem_peer_info", pe);
    if (status)
        return status;
    const struct gpsh_peer *peer = &gpsh_job()->peers[pe];
    struct gpushmem_peer_info info = {
        .transport = gpsh_net()->transports[peer->data]->ops->name,
        .atomics = gpsh_atomics_agent(pe),
        .same_node = peer->same_node,
        .device_direct = gpsh_device_side_direct(pe) != NULL,
    };
    gpsh_peer_explain(pe, info.description, sizeof info.description);
    return gpsh_sized_fill("gpushmem_peer_info", out, size, &info, sizeof info, FIRST_VERSION);
}
