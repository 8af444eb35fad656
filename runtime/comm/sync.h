// SPDX-License-Identifier: BSD-3-Clause
// Barriers over all PEs, through the control regions.
#ifndef GPSH_SYNC_H
#define GPSH_SYNC_H

#include "state/state.h"

// All PEs have arrived. Completes nothing. Fails if a PE dies or GPUSHMEM_WAIT_TIMEOUT_MS runs out.
int gpsh_sync_all(void);
// quiet of the default context, then gpsh_sync_all.
int gpsh_barrier_all(void);
// Starts counting anew: the control regions are fresh and zero. Before any sync, in every init.
void gpsh_sync_init(void);

#endif
