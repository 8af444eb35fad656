// SPDX-License-Identifier: BSD-3-Clause
// What drives the transport: the runtime's calls on a channel, passes over the wire, the thread.
#ifndef GPSH_OFI_DRIVE_H
#define GPSH_OFI_DRIVE_H

#include "transports/ofi/ofi_state.h"

// ofi_post.c: what the runtime calls on a channel.
int gpsh_ofi_post(struct gpsh_channel *channel, const struct gpsh_op *op);
int gpsh_ofi_flush(struct gpsh_channel *channel);
void gpsh_ofi_fence(struct gpsh_channel *channel, int pe);
int gpsh_ofi_progress(struct gpsh_channel *channel);
bool gpsh_ofi_help(struct gpsh_transport *self); // by a thread that waits

// ofi_serve.c: a pass over the wire. Requests are carried out, replies noted in the flows that wait
// for them. By whoever waits, or the service thread; not if another thread is at it. `pushed`:
// flows that can go on by what came, linked by next_pushed, to be driven by gpsh_ofi_push. True if
// it found something, or is in the middle of something.
bool gpsh_ofi_serve(struct gpsh_ofi *ofi, struct ofi_flow **pushed);

// ofi_thread.c: the service thread. It sleeps until something arrives on the wire, so that a PE is
// reached while its program computes, and asks PEs that are silent whether they are there.
int gpsh_ofi_thread_start(struct gpsh_ofi *ofi);
void gpsh_ofi_thread_stop(struct gpsh_ofi *ofi);
// Something of that flow is under way from now on. By the channel's owner, after `posted` says so.
void gpsh_ofi_watch(struct ofi_flow *flow);

#endif
