// SPDX-License-Identifier: BSD-3-Clause
// Flows: operations issued in the order that fences and signals ask for, and completed.
#ifndef GPSH_OFI_FLOW_H
#define GPSH_OFI_FLOW_H

#include "transports/ofi/ofi_state.h"

// The flow of that channel, made on first use. NULL with a sentence without memory.
struct ofi_flow *gpsh_ofi_flow(struct ofi_channel *channel, int pe);
void gpsh_ofi_flow_free(struct ofi_flow *flow);
// Closes its key before the endpoint to which it may belong; gpsh_ofi_flow_free does it otherwise.
void gpsh_ofi_flow_unregister(struct ofi_flow *flow);

// With the channel's lock held: issues what may go. `ring`: also sends a parcel that is not full.
void gpsh_ofi_flow_issue(struct ofi_flow *flow, bool ring);
// Whether the source of that operation is not needed any more.
bool gpsh_ofi_flow_has_source(const struct ofi_slot *slot);
// By the channel's owner, without its lock: completes what is there.
void gpsh_ofi_flow_retire(struct ofi_flow *flow);
// With the lock: everything fails, when nothing uses its memory any more.
void gpsh_ofi_flow_fail(struct ofi_flow *flow, int code);

// Drives flows that can go on, from any thread. Those of a channel that is locked are left to the
// thread that has the lock.
void gpsh_ofi_push(struct ofi_flow *pushed);
// Unlocks a channel, and drives what others have left to this thread.
void gpsh_ofi_unlock(struct ofi_channel *channel);

#endif
