// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_TCP_RENDEZVOUS_H
#define GPSH_TCP_RENDEZVOUS_H

#include "bootstrap/tcp_wire.h"

// Chooses the secret, opens the sockets and starts the thread. `timeout_ms` counts from the first
// PE that comes. Any number of meetings may go on in a process.
//   GPUSHMEM_ERR_SETTING   `interface` (see tcp_address.h) does not exist
//   GPUSHMEM_ERR_SYSTEM    no socket, no thread, no random numbers
int gpsh_tcp_rendezvous_start(const char *interface, int64_t timeout_ms,
                              struct gpushmem_uniqueid *packed);

#endif
