// SPDX-License-Identifier: BSD-3-Clause
// Registered memory: this PE's regions and what its heap grows by, the peers' keys, local buffers.
#ifndef GPSH_OFI_MEMORY_H
#define GPSH_OFI_MEMORY_H

#include "transports/ofi/ofi_state.h"

// When the wire's endpoint is there, which keys may belong to.
int gpsh_ofi_regions_register(struct gpsh_ofi *ofi);
void gpsh_ofi_memory_close(struct gpsh_ofi *ofi);

// Memory for local use alone, by that endpoint. NULL with a sentence on failure.
struct fid_mr *gpsh_ofi_local_register(struct gpsh_ofi *ofi, struct fid_ep *ep, void *base,
                                       size_t bytes);

// What the peers have to know of a region, or of the newest piece of the heap.
int gpsh_ofi_key_describe(struct gpsh_ofi *ofi, struct fid_mr *mr, const char *base,
                          struct ofi_blob_key *out);
int gpsh_ofi_key_import(struct gpsh_ofi *ofi, const struct ofi_blob_key *from, struct ofi_key *out);

// Where that offset of the peer's region is to one-sided operations, and how many bytes may follow.
// False: in no region, or in one that has no key.
struct ofi_remote {
    uint64_t address, key, bytes;
};
bool gpsh_ofi_remote(const struct gpsh_ofi *ofi, const struct ofi_peer *peer, int region,
                     uint64_t offset, struct ofi_remote *out);
// As far as it is known here.
uint64_t gpsh_ofi_region_bytes(const struct gpsh_ofi *ofi, int region);

// How the lanes name local memory to the provider: false if it has to go through a block.
bool gpsh_ofi_descriptor(struct gpsh_ofi *ofi, const char *local, uint64_t bytes, void **out);

int gpsh_ofi_buffer_register(struct gpsh_transport *self, const struct gpsh_region *region);
int gpsh_ofi_buffer_unregister(struct gpsh_transport *self, const void *base);
int gpsh_ofi_extend(struct gpsh_transport *self, const struct gpsh_region *chunk, void *keys);
int gpsh_ofi_extended(struct gpsh_transport *self, int pe, const void *keys);
void gpsh_ofi_retract(struct gpsh_transport *self);

#endif
