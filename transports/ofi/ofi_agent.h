// SPDX-License-Identifier: BSD-3-Clause
// The agent: carries out the requests of the peers' flows, each flow's in order, and replies. On
// host memory by the processor; on a GPU's by an in-order queue (env.queues), and where records of
// both meet, each in its turn. All with the wire's lock held.
#ifndef GPSH_OFI_AGENT_H
#define GPSH_OFI_AGENT_H

#include "transports/ofi/ofi_state.h"

int gpsh_ofi_agent_open(struct gpsh_ofi *ofi);
void gpsh_ofi_agent_close(struct gpsh_ofi *ofi);

// A request or a ping, which goes back to be received when nothing reads it any more.
void gpsh_ofi_agent_take(struct gpsh_ofi *ofi, struct ofi_message *message);
// Notices what the GPU has done, and sends replies. True while it is at work.
bool gpsh_ofi_agent_reply(struct gpsh_ofi *ofi);

#endif
