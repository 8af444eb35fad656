// SPDX-License-Identifier: BSD-3-Clause
// What a PE publishes so that the others can connect. Everything in it comes from another process:
// gpsh_verbs_blob_parse checks every field before anything is used, and calls no verbs.
//
// Layout: the first part of the struct, as it is; that of n_rails rails; then their GIDs of 16
// bytes each (of each rail those of its gid_kinds, from the lowest bit on). Its size does not
// depend on the number of PEs: the numbers of queue pairs are exchanged by datagrams when a
// connection is wanted.
#ifndef GPSH_VERBS_BLOB_H
#define GPSH_VERBS_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

enum {
    GPSH_VERBS_MAX_RAILS = 8,
    GPSH_VERBS_MAX_CHANNELS = 4096,
    GPSH_VERBS_BLOB_MAGIC = 0x62767067, // "gpvb"
    GPSH_VERBS_BLOB_VERSION = 9,
    GPSH_VERBS_ADDRESS_TEXT = 48,
    // the mailboxes (verbs_staging.h), a region like the others to the NICs
    GPSH_VERBS_STAGE = GPSH_REGIONS,
    GPSH_VERBS_REGIONS,
    GPSH_VERBS_MAX_SLOTS = 64,
    GPSH_VERBS_MAX_SLOT_BYTES = 1 << 29,
};

// What a NIC's atomics are atomic to: everything, its own only (IBV_ATOMIC_HCA); or it has none.
enum gpsh_verbs_atomics { GPSH_VERBS_ATOMICS_ALL, GPSH_VERBS_ATOMICS_OWN, GPSH_VERBS_ATOMICS_NONE };

// Two ports reach each other by GIDs of the same kind only: a packet has one version of RoCE, and
// both its addresses are of one family. Of those that both have they take the last one here. The
// routed kind of InfiniBand holds a FLID, see verbs_path.c.
enum gpsh_verbs_gid_kind {
    GPSH_VERBS_GID_IB,
    GPSH_VERBS_GID_IB_ROUTED,
    GPSH_VERBS_GID_V1_LOCAL, // RoCE; local: link-local
    GPSH_VERBS_GID_V1_IPV6,
    GPSH_VERBS_GID_V1_IPV4,
    GPSH_VERBS_GID_V2_LOCAL,
    GPSH_VERBS_GID_V2_IPV6,
    GPSH_VERBS_GID_V2_IPV4,
    GPSH_VERBS_GID_KINDS
};

// What a PE's mailboxes are for: everything on its heap, which no NIC reaches; atomics.
enum gpsh_verbs_serves { GPSH_VERBS_SERVES_HEAP = 1, GPSH_VERBS_SERVES_ATOMICS = 2 };

struct gpsh_verbs_blob_rail {
    uint16_t lid;
    uint8_t ethernet; // 0 InfiniBand, 1 RoCE
    uint8_t mtu;      // enum ibv_mtu
    uint8_t reads_in; // reads and atomics one QP accepts
    uint8_t port;
    uint8_t atomics;   // enum gpsh_verbs_atomics
    uint8_t in_order;  // writes that arrive there are placed as they were posted
    uint8_t apart;     // writes to the heap and to its words take different ways there
    uint8_t gid_kinds; // bits: the kinds that it has
    uint8_t needs_grh; // its InfiniBand port takes packets with a global route header only
    uint8_t zero;
    uint32_t psn_seed; // what its queue pairs' first packet numbers are made of
    uint32_t rkeys[GPSH_VERBS_REGIONS];
    uint32_t datagrams; // number of the queue pair that takes datagrams
    // what goes before is published as it is
    uint8_t gids[GPSH_VERBS_GID_KINDS][16]; // one of each kind, 0 if there is none
};

struct gpsh_verbs_blob {
    uint32_t magic, version; // set by gpsh_verbs_blob_write
    uint32_t pe, n_pes, n_channels, n_rails;
    uint16_t slots;      // of each mailbox; 0: there are none
    uint16_t serves;     // bits of enum gpsh_verbs_serves; 0: no mailboxes
    uint32_t slot_bytes; // 0 without slots
    uint64_t bases[GPSH_VERBS_REGIONS], region_bytes[GPSH_VERBS_REGIONS]; // an empty region is 0, 0
    uint64_t total; // bytes of all that is published; set by gpsh_verbs_blob_write
    // Random, and in every datagram that it accepts: only PEs of the job know it. Not 0.
    uint64_t secret;
    struct gpsh_verbs_blob_rail rails[GPSH_VERBS_MAX_RAILS];
};

// Size of the blob, by its counts and its rails' kinds of GIDs.
size_t gpsh_verbs_blob_bytes(const struct gpsh_verbs_blob *blob);

// Size of the staging area with these mailboxes, where its parts begin; 0 if that exceeds 2^63.
struct gpsh_verbs_stage_layout {
    uint64_t arrived, answered, slots, bytes; // arrived, answered: a word for each mailbox
};
struct gpsh_verbs_stage_layout gpsh_verbs_stage_layout(uint32_t n_boxes, uint32_t slots,
                                                       uint32_t slot_bytes);

// `to` holds gpsh_verbs_blob_bytes(...).
void gpsh_verbs_blob_write(const struct gpsh_verbs_blob *blob, void *to);

// 0, or GPUSHMEM_ERR_PEER_DATA with a sentence about the field that is wrong; *out is untouched
// then.
int gpsh_verbs_blob_parse(const void *bytes, size_t size, struct gpsh_verbs_blob *out);

// The kind of a GID that is not 0. roce: 0 InfiniBand, else the version.
enum gpsh_verbs_gid_kind gpsh_verbs_gid_kind(const uint8_t gid[16], int roce);
const char *gpsh_verbs_gid_kind_text(enum gpsh_verbs_gid_kind kind);
// What a router that goes by FLIDs knows the port by: a LID that other subnets may send to; 0:
// none.
uint16_t gpsh_verbs_gid_flid(const uint8_t gid[16]);
// "10.1.0.1" for an IPv4-mapped GID, else the IPv6 notation.
void gpsh_verbs_gid_text(const uint8_t gid[16], char text[GPSH_VERBS_ADDRESS_TEXT]);

#endif
