// SPDX-License-Identifier: BSD-3-Clause
// The one agent of a job's atomics (docs/design/atomics.md). What each PE publishes
// decides, so that all choose alike.
#ifndef GPSH_ATOMICS_H
#define GPSH_ATOMICS_H

#include "connect/records.h"

// What this PE's transports can do, and its GPUSHMEM_AMO_AGENT.
void gpsh_atomics_offer(struct gpsh_peer_blob *blob);
// Whether that of another PE fits this one's.
int gpsh_atomics_check(const struct gpsh_peer_blob *blob);
// Whether agents have to execute the atomics that no mapping reaches: the same on all PEs. Then
// this PE's transports have one, and describe themselves anew.
bool gpsh_atomics_need_agents(const struct gpsh_records *records);
int gpsh_atomics_serve(void);
// When all PEs are connected: GPSH_COMMON_PROCESSOR and _NIC as far as this PE knows.
uint32_t gpsh_atomics_reach(const struct gpsh_records *records);
// `common` is what holds for every PE, and `open_failures` the sentences of transports that could
// not be opened, or "".
int gpsh_atomics_choose(uint32_t common, const char *open_failures);

// What executes atomics on that PE: "processor", "agent", or a transport's name.
const char *gpsh_atomics_agent(int pe);
// "atomics by processors and agents: the NIC of PE 2 on node-b executes no atomics"
void gpsh_atomics_explain(char *line, size_t bytes);

#endif
