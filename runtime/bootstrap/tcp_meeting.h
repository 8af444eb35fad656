// SPDX-License-Identifier: BSD-3-Clause
// Where the PEs of a unique id meet: a thread of the process that made the id. It waits for all of
// them, tells each where its parent in the tree of PEs listens, and ends. What is wrong it tells to
// all: a PE that does not come, a number that two have.
#ifndef GPSH_TCP_MEETING_H
#define GPSH_TCP_MEETING_H

#include "bootstrap/uniqueid.h"

// Chooses the secret, opens the sockets and starts the thread. `timeout_ms` counts from the first
// PE that comes. Any number of meetings may go on in a process.
//   GPUSHMEM_ERR_SETTING   `interface` (see tcp_address.h) does not exist
//   GPUSHMEM_ERR_SYSTEM    no socket, no thread, no random numbers
int gpsh_tcp_meeting_start(const char *interface, int64_t timeout_ms,
                           struct gpushmem_uniqueid *packed);

#endif
