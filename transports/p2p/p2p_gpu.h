// SPDX-License-Identifier: BSD-3-Clause
// Channels of p2p towards heaps in GPU memory: the host posts copies and atomics to a queue that
// the runtime provides.
#ifndef GPSH_P2P_GPU_H
#define GPSH_P2P_GPU_H

#include "transport/transport.h"

int gpsh_p2p_gpu_open(struct gpsh_transport *transport, const struct gpsh_transport_env *env,
                      int index, struct gpsh_channel **out);
void gpsh_p2p_gpu_close(struct gpsh_channel *channel);
// base: of op's region at op's PE
int gpsh_p2p_gpu_post(struct gpsh_channel *channel, const struct gpsh_op *op, char *base);
int gpsh_p2p_gpu_flush(struct gpsh_channel *channel);
int gpsh_p2p_gpu_progress(struct gpsh_channel *channel);

#endif
