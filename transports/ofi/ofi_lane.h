// SPDX-License-Identifier: BSD-3-Clause
// A channel's endpoint: one-sided operations and the provider's atomics. With the channel's lock
// held.
#ifndef GPSH_OFI_LANE_H
#define GPSH_OFI_LANE_H

#include "transports/ofi/ofi_state.h"

int gpsh_ofi_lane_open(struct gpsh_ofi *ofi, struct ofi_channel *channel);
void gpsh_ofi_lane_close(struct ofi_channel *channel);

// Posts the next piece of a put or get, from slot->offset on. Bytes posted; 0: there is no room; a
// negative status with a sentence.
int64_t gpsh_ofi_lane_move(struct ofi_flow *flow, struct ofi_slot *slot);
// Posts the slot's atomic, or its signal. 1, 0 or a negative status.
int gpsh_ofi_lane_atomic(struct ofi_flow *flow, struct ofi_slot *slot);
// Notes what has completed in the slots. A flow that is to fail gets `failing`.
void gpsh_ofi_lane_read(struct ofi_channel *channel);

// The flow is to fail: its peer is told of, the rest is for who drives it.
void gpsh_ofi_flow_break(struct ofi_flow *flow, int code, const char *why);
// Between local memory of an operation with these flags and the processor's.
void gpsh_ofi_copy(struct gpsh_ofi *ofi, unsigned flags, void *to, const void *from, size_t bytes);

#endif
