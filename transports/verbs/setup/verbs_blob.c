// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "transports/verbs/setup/verbs_blob.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

enum {
    HEADER_BYTES = offsetof(struct gpsh_verbs_blob, rails),
    RAIL_BYTES = offsetof(struct gpsh_verbs_blob_rail, gids),
    GID_BYTES = 16,
    IB_KINDS = 1 << GPSH_VERBS_GID_IB | 1 << GPSH_VERBS_GID_IB_ROUTED,
    GID_FLID = 4,    // of a site-local GID: two bytes, before those of the subnet
    MTU_LOWEST = 1,  // IBV_MTU_256
    MTU_HIGHEST = 5, // IBV_MTU_4096
    MAX_PES = 1 << 20,
    MAX_QPN = 0xffffff,
    LINE = 64,
    PAGE = 4096,
};
_Static_assert(HEADER_BYTES == 112 && RAIL_BYTES == 36, "no padding is published");

size_t gpsh_verbs_blob_bytes(const struct gpsh_verbs_blob *blob)
{
    size_t gids = 0;
    for (uint32_t i = 0; i < blob->n_rails; i++)
        gids += (size_t)__builtin_popcount(blob->rails[i].gid_kinds);
    return HEADER_BYTES + (size_t)blob->n_rails * RAIL_BYTES + gids * GID_BYTES;
}

struct gpsh_verbs_stage_layout gpsh_verbs_stage_layout(uint32_t n_boxes, uint32_t slots,
                                                       uint32_t slot_bytes)
{
    uint64_t words = ((uint64_t)n_boxes * 8 + LINE - 1) / LINE * LINE;
    uint64_t start = (2 * words + PAGE - 1) / PAGE * PAGE, bytes;
    bool fits = !__builtin_mul_overflow((uint64_t)n_boxes * slots, (uint64_t)slot_bytes, &bytes) &&
                bytes <= INT64_MAX - start;
    return (struct gpsh_verbs_stage_layout){
        .answered = words, .slots = start, .bytes = fits ? start + bytes : 0};
}

static unsigned char *write_gids(const struct gpsh_verbs_blob_rail *rail, unsigned char *to)
{
    for (uint32_t rest = rail->gid_kinds; rest; rest &= rest - 1, to += GID_BYTES)
        memcpy(to, rail->gids[__builtin_ctz(rest)], GID_BYTES);
    return to;
}

void gpsh_verbs_blob_write(const struct gpsh_verbs_blob *blob, void *to)
{
    struct gpsh_verbs_blob whole = *blob;
    unsigned char *rail = (unsigned char *)to + HEADER_BYTES;
    unsigned char *gids = rail + (size_t)blob->n_rails * RAIL_BYTES;
    whole.magic = GPSH_VERBS_BLOB_MAGIC;
    whole.version = GPSH_VERBS_BLOB_VERSION;
    whole.total = gpsh_verbs_blob_bytes(blob);
    memcpy(to, &whole, HEADER_BYTES);
    for (uint32_t i = 0; i < blob->n_rails; i++, rail += RAIL_BYTES) {
        memcpy(rail, &blob->rails[i], RAIL_BYTES);
        gids = write_gids(&blob->rails[i], gids);
    }
}

static int bad(const char *field, uint64_t value, const char *allowed, ...)
    __attribute__((format(printf, 3, 4)));
static int bad(const char *field, uint64_t value, const char *allowed, ...)
{
    char text[96];
    va_list values;
    va_start(values, allowed);
    vsnprintf(text, sizeof text, allowed, values);
    va_end(values);
    return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                     "a peer's verbs data has %s %llu (allowed: %s); do all PEs run the same "
                     "version of gpushmem with the same settings?",
                     field, (unsigned long long)value, text);
}

static int check_regions(const struct gpsh_verbs_blob *blob)
{
    for (int r = 0; r < GPSH_VERBS_REGIONS; r++) {
        uint64_t base = blob->bases[r], bytes = blob->region_bytes[r];
        bool empty = r != GPSH_HEAP && !base && !bytes;
        if (!empty && (!base || base % 8)) // atomics work on whole aligned words
            return bad("region address", base, "a multiple of 8, not 0");
        if (!empty && (!bytes || bytes % 8 || bytes > UINT64_MAX - base))
            return bad("region size", bytes,
                       "a multiple of 8 that fits above the region's address");
    }
    return 0;
}

// The mailboxes are all there or not at all, and have the size that their number makes.
static int check_stage(const struct gpsh_verbs_blob *blob)
{
    uint32_t slots = blob->slots, slot_bytes = blob->slot_bytes, serves = blob->serves;
    uint64_t bytes = blob->region_bytes[GPSH_VERBS_STAGE];
    if (slots > GPSH_VERBS_MAX_SLOTS)
        return bad("mailbox slots", slots, "0 to %d", GPSH_VERBS_MAX_SLOTS);
    if (slots ? slot_bytes < 2 * LINE || slot_bytes > GPSH_VERBS_MAX_SLOT_BYTES || slot_bytes % LINE
              : slot_bytes != 0)
        return bad("slot bytes", slot_bytes, "a multiple of %d from %d to %d, or 0 without slots",
                   LINE, 2 * LINE, GPSH_VERBS_MAX_SLOT_BYTES);
    if (bytes !=
        (slots ? gpsh_verbs_stage_layout(blob->n_pes * blob->n_channels, slots, slot_bytes).bytes
               : 0))
        return bad("mailboxes of a size of", bytes, "what their number and their slots make");
    if (serves > (GPSH_VERBS_SERVES_HEAP | GPSH_VERBS_SERVES_ATOMICS) || !serves != !slots)
        return bad("use of its mailboxes", serves,
                   "1 its heap, 2 atomics, 3 both, and 0 where there are none");
    return 0;
}

static int check_header(const struct gpsh_verbs_blob *blob, size_t size)
{
    if (blob->magic != GPSH_VERBS_BLOB_MAGIC)
        return bad("magic number", blob->magic, "%d", GPSH_VERBS_BLOB_MAGIC);
    if (blob->version != GPSH_VERBS_BLOB_VERSION)
        return bad("version", blob->version, "%d", GPSH_VERBS_BLOB_VERSION);
    if (blob->n_pes < 1 || blob->n_pes > MAX_PES)
        return bad("number of PEs", blob->n_pes, "1 to %d", MAX_PES);
    if (blob->pe >= blob->n_pes)
        return bad("PE", blob->pe, "less than its number of PEs");
    if (blob->n_channels < 1 || blob->n_channels > GPSH_VERBS_MAX_CHANNELS)
        return bad("number of channels", blob->n_channels, "1 to %d", GPSH_VERBS_MAX_CHANNELS);
    if (blob->n_rails < 1 || blob->n_rails > GPSH_VERBS_MAX_RAILS)
        return bad("number of rails", blob->n_rails, "1 to %d", GPSH_VERBS_MAX_RAILS);
    if (!blob->secret)
        return bad("secret", 0, "not 0");
    int status = check_regions(blob);
    if (status)
        return status;
    if (size < HEADER_BYTES + (size_t)blob->n_rails * RAIL_BYTES)
        return bad("a size of", size, "what its counts of PEs, channels and rails make");
    return check_stage(blob);
}

static int check_rail(const struct gpsh_verbs_blob_rail *rail)
{
    uint32_t kinds = rail->ethernet ? 0xffu & ~IB_KINDS : IB_KINDS;
    if (rail->ethernet > 1)
        return bad("link layer", rail->ethernet, "0 InfiniBand, 1 Ethernet");
    if (rail->mtu < MTU_LOWEST || rail->mtu > MTU_HIGHEST)
        return bad("MTU code", rail->mtu, "%d to %d", MTU_LOWEST, MTU_HIGHEST);
    if (!rail->reads_in)
        return bad("reads in flight", 0, "1 to 255");
    if (!rail->port)
        return bad("port", 0, "1 to 255");
    if (rail->atomics > GPSH_VERBS_ATOMICS_NONE)
        return bad("kind of atomics", rail->atomics,
                   "0 atomic to everything, 1 to each other, 2 none");
    if (rail->in_order > 1)
        return bad("order of writes", rail->in_order, "0 any, 1 as posted");
    if (rail->apart > 1)
        return bad("way to its heap", rail->apart, "0 as to its words, 1 another");
    if (!rail->gid_kinds || rail->gid_kinds & ~kinds)
        return bad("kinds of GIDs", rail->gid_kinds,
                   "some of bits 0 and 1 for InfiniBand, else of 2 "
                   "to 7");
    if (rail->needs_grh > 1)
        return bad("need of a GRH", rail->needs_grh, "0 or 1");
    if (!rail->ethernet && !rail->lid)
        return bad("LID", 0, "not 0");
    if (rail->datagrams < 2 || rail->datagrams > MAX_QPN) // 0 and 1 are the management queue pairs
        return bad("QP number", rail->datagrams, "2 to %d", MAX_QPN);
    return 0;
}

// An InfiniBand port's first GID may not be known, and is not needed within its subnet.
static int parse_gids(const unsigned char **from, struct gpsh_verbs_blob_rail *rail)
{
    static const uint8_t no_gid[GID_BYTES];
    for (uint32_t rest = rail->gid_kinds; rest; rest &= rest - 1, *from += GID_BYTES) {
        enum gpsh_verbs_gid_kind kind = (enum gpsh_verbs_gid_kind)__builtin_ctz(rest);
        int roce = kind < GPSH_VERBS_GID_V1_LOCAL ? 0 : kind < GPSH_VERBS_GID_V2_LOCAL ? 1 : 2;
        memcpy(rail->gids[kind], *from, GID_BYTES);
        bool empty = !memcmp(*from, no_gid, GID_BYTES);
        if (empty ? kind != GPSH_VERBS_GID_IB : gpsh_verbs_gid_kind(*from, roce) != kind)
            return bad("GID of kind", kind, "an address of that kind");
    }
    return 0;
}

static int parse_rails(const unsigned char *at, size_t size, struct gpsh_verbs_blob *out)
{
    int status = 0;
    for (uint32_t i = 0; !status && i < out->n_rails; i++, at += RAIL_BYTES) {
        memcpy(&out->rails[i], at, RAIL_BYTES);
        status = check_rail(&out->rails[i]);
    }
    uint64_t total = gpsh_verbs_blob_bytes(out);
    if (!status && (total != out->total || total != size))
        status = bad("a size of", size, "what its counts of PEs, channels, rails and GIDs make");
    for (uint32_t i = 0; !status && i < out->n_rails; i++)
        status = parse_gids(&at, &out->rails[i]);
    return status;
}

int gpsh_verbs_blob_parse(const void *bytes, size_t size, struct gpsh_verbs_blob *out)
{
    struct gpsh_verbs_blob blob = {0};
    if (size < HEADER_BYTES)
        return bad("a size of", size, "%d bytes and more", HEADER_BYTES);
    memcpy(&blob, bytes, HEADER_BYTES);
    int status = check_header(&blob, size);
    if (!status)
        status = parse_rails((const unsigned char *)bytes + HEADER_BYTES, size, &blob);
    if (!status)
        *out = blob;
    return status;
}

static bool is_ipv4(const uint8_t gid[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return !memcmp(gid, mapped, sizeof mapped);
}

static bool is_link_local(const uint8_t gid[16])
{
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

uint16_t gpsh_verbs_gid_flid(const uint8_t gid[16])
{
    static const uint8_t site_local[GID_FLID] = {0xfe, 0xc0};
    if (memcmp(gid, site_local, sizeof site_local) != 0)
        return 0;
    return (uint16_t)(gid[GID_FLID] << 8 | gid[GID_FLID + 1]);
}

enum gpsh_verbs_gid_kind gpsh_verbs_gid_kind(const uint8_t gid[16], int roce)
{
    if (!roce)
        return gpsh_verbs_gid_flid(gid) ? GPSH_VERBS_GID_IB_ROUTED : GPSH_VERBS_GID_IB;
    if (is_ipv4(gid))
        return roce == 1 ? GPSH_VERBS_GID_V1_IPV4 : GPSH_VERBS_GID_V2_IPV4;
    if (is_link_local(gid))
        return roce == 1 ? GPSH_VERBS_GID_V1_LOCAL : GPSH_VERBS_GID_V2_LOCAL;
    return roce == 1 ? GPSH_VERBS_GID_V1_IPV6 : GPSH_VERBS_GID_V2_IPV6;
}

const char *gpsh_verbs_gid_kind_text(enum gpsh_verbs_gid_kind kind)
{
    static const char *const texts[GPSH_VERBS_GID_KINDS] = {
        "InfiniBand",   "InfiniBand with a FLID", "link-local RoCE v1", "IPv6 RoCE v1",
        "IPv4 RoCE v1", "link-local RoCE v2",     "IPv6 RoCE v2",       "IPv4 RoCE v2"};
    return texts[kind];
}

void gpsh_verbs_gid_text(const uint8_t gid[16], char text[GPSH_VERBS_ADDRESS_TEXT])
{
    bool ipv4 = is_ipv4(gid);
    inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? gid + 12 : gid, text, GPSH_VERBS_ADDRESS_TEXT);
}
