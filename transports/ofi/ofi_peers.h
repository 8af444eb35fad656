// SPDX-License-Identifier: BSD-3-Clause
// What a PE keeps of the others. Of each a row, written at init: its address, its keys, its secret.
// Of those it has to do with also a struct ofi_peer, and their address in libfabric's table, which
// takes some hundred bytes: made on first use, or for many at once.
#ifndef GPSH_OFI_PEERS_H
#define GPSH_OFI_PEERS_H

#include "transports/ofi/ofi_state.h"

// When the wire's endpoint is there: rows are as long as its address. GPUSHMEM_ERR_NO_MEMORY.
int gpsh_ofi_peers_open(struct gpsh_ofi *ofi);
// After what uses the flows is closed; before the address vector.
void gpsh_ofi_peers_close(struct gpsh_ofi *ofi);

// Writes that PE's row. A negative status if its keys or its address are not as the provider's are.
int gpsh_ofi_peers_keep(struct gpsh_ofi *ofi, int pe, const struct ofi_blob *blob);
// Whether it has a row: any thread, with the wire's lock held.
bool gpsh_ofi_peers_known(const struct gpsh_ofi *ofi, int pe);
// The address in its row.
const void *gpsh_ofi_peers_address(const struct gpsh_ofi *ofi, int pe);

// That PE's, with an address that libfabric takes. Any thread; not with peers.lock held. NULL with
// a sentence.
struct ofi_peer *gpsh_ofi_peer(struct gpsh_ofi *ofi, int pe);
// The same, perhaps without an address yet: for what is noted of a PE.
struct ofi_peer *gpsh_ofi_peer_note(struct gpsh_ofi *ofi, int pe);
// What is wrong with that peer, once; any thread. Later codes are not told.
void gpsh_ofi_peer_fail(struct gpsh_ofi *ofi, int pe, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// transport.h: addresses of all PEs that were begun with are taken in one call.
int gpsh_ofi_establish(struct gpsh_transport *self, int pe, bool begin);

#endif
