// SPDX-License-Identifier: BSD-3-Clause
// Blobs of all PEs to all PEs: up the tree, and down again.
#ifndef GPSH_TCP_EXCHANGE_H
#define GPSH_TCP_EXCHANGE_H

#include "bootstrap/tcp_tree_state.h"

// Collective. *bundle has a record of every PE, the caller releases it.
//   GPUSHMEM_ERR_PE_FAILED  a PE has died, or left
//   GPUSHMEM_ERR_TIMEOUT    timeout_ms (0: none) passed
//   what made another PE give up
int gpsh_tree_exchange(struct gpsh_tcp_tree *tree, const void *blob, size_t bytes,
                       int64_t timeout_ms, const char *what, struct gpsh_parcel **bundle);
// A frame UP or DOWN has come; takes the parcel. With the lock.
void gpsh_tree_take_bundle(struct gpsh_tcp_tree *t, struct gpsh_tcp_link *link,
                           struct gpsh_parcel *parcel);

#endif
