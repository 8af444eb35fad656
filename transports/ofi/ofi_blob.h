// SPDX-License-Identifier: BSD-3-Clause
// What a PE publishes so that the others can connect by libfabric. Everything in it comes from
// another process: gpsh_ofi_blob_parse checks every field, and calls nothing of libfabric.
#ifndef GPSH_OFI_BLOB_H
#define GPSH_OFI_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

enum {
    OFI_BLOB_MAGIC = 0x666f7067, // "gpof"
    OFI_BLOB_VERSION = 3,
    OFI_ADDRESS_BYTES = 256,
    OFI_KEY_BYTES = 48, // of the provider's keys
    OFI_NAME_BYTES = 32,
};

// How peers reach a region, or a piece of the heap. Also what `extend` writes: 64 bytes.
struct ofi_blob_key {
    uint64_t base;      // what offsets are added to
    uint32_t keyed;     // 1: by one-sided operations; 0: by the agent alone
    uint32_t key_bytes; // 8 where keys are plain numbers
    uint8_t key[OFI_KEY_BYTES];
};
_Static_assert(sizeof(struct ofi_blob_key) == 64, "what extend may write");

struct ofi_blob {
    struct {
        uint32_t magic, version;
        uint32_t pe, n_pes, n_channels;
        uint32_t address_format; // libfabric's number: IPv4, IPv6 or another
        uint16_t address_bytes;
        uint16_t provider_bytes; // without its end
        uint32_t reserved;
        uint64_t secret;  // what messages to it have to hold
        uint64_t machine; // not 0: its address is good on that machine alone
        uint64_t region_bytes[GPSH_REGIONS];
    };
    struct ofi_blob_key keys[GPSH_REGIONS];
    char provider[OFI_NAME_BYTES];
    uint8_t address[OFI_ADDRESS_BYTES];
};

// What is published has no room that is not used: the first part as it is; of each region the base,
// how long its key is (0: none) and the key; the provider's name; the address. Some 150 bytes by
// TCP, and never more than the struct has. Returns their number; `to` may be NULL.
size_t gpsh_ofi_blob_write(const struct ofi_blob *blob, void *to);

// 0, or GPUSHMEM_ERR_PEER_DATA with a sentence about the field that is wrong; *out is untouched
// then.
int gpsh_ofi_blob_parse(const void *bytes, size_t size, struct ofi_blob *out);
int gpsh_ofi_key_check(const struct ofi_blob_key *key);

#endif
