// SPDX-License-Identifier: BSD-3-Clause
// What each PE publishes about itself through the bootstrap, packed and versioned; read with
// suspicion.
#ifndef GPSH_PEER_BLOB_H
#define GPSH_PEER_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "bootstrap/fd_exchange.h"
#include "core/config.h"
#include "transport/transport.h"

enum { GPSH_BLOB_MAGIC = 0x47505348, GPSH_BLOB_VERSION = 13, GPSH_BLOB_SECTIONS = 8 };

// Whether the PE has opened a NIC, and whether that executes atomics.
enum gpsh_nic_atomics { GPSH_NIC_NONE, GPSH_NIC_ATOMICS, GPSH_NIC_NO_ATOMICS };

// One transport's connection data inside a blob; points into the blob.
struct gpsh_blob_section {
    char name[16];
    const void *data;
    uint64_t bytes;
};

// Up to `hostname` it is published as it is.
struct gpsh_peer_blob {
    uint32_t magic, version, total_bytes; // set by gpsh_peer_blob_pack
    int32_t pe;
    int32_t status; // negative: this PE failed to initialise; `sentence` says why
    int32_t pid;
    int32_t node, node_pe; // smallest PE of its node, position there
    int32_t teams;         // slots
    // The file that the node's PEs share for a region, 0: one of its own. And where it begins in
    // its file: of a heap in host memory 0, if the control region has another file. Of the control
    // region neither is said.
    uint32_t region_file[GPSH_REGIONS];
    uint64_t region_at[GPSH_REGIONS];
    uint64_t region_bytes[GPSH_REGIONS];
    uint64_t static_id; // of the program whose static data is shared, 0: it is not
    int64_t team_epoch;
    uint64_t team_memory;
    uint64_t heap_fits;  // of a heap that nobody gave a size: what the PE has room for; 0: given
    uint32_t page_bytes; // of its symmetric host memory: a power of two
    uint8_t device_heap;
    uint8_t amo_agent;   // enum gpsh_amo_agent
    uint8_t nic_atomics; // enum gpsh_nic_atomics
    uint8_t sections;
    char hostname[64];
    char gpu[64]; // name and PCI address, "" for a host heap
    char socket_path[GPSH_FD_PATH_BYTES];
    char collectives[GPSH_COLLECTIVES_TEXT]; // what GPUSHMEM_COLLECTIVES stands for
    char sentence[256];                      // with status 0: why its static data is not shared
    struct gpsh_blob_section section[GPSH_BLOB_SECTIONS];
};

// Packs into malloc'ed memory that the caller frees.
int gpsh_peer_blob_pack(const struct gpsh_peer_blob *blob, void **packed, size_t *bytes);
// Checks magic, version, lengths, text termination; GPUSHMEM_ERR_PEER_DATA with a sentence naming
// `pe` otherwise. No other side effect: any bytes may be given.
int gpsh_peer_blob_parse(int pe, const void *packed, size_t bytes, struct gpsh_peer_blob *out);
const struct gpsh_blob_section *gpsh_peer_blob_find(const struct gpsh_peer_blob *blob,
                                                    const char *name);

#endif
