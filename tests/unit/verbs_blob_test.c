// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <string.h>

#include "core/error.h"
#include "transports/verbs/setup/verbs_blob.h"

#define LOCAL                                                                                      \
    {                                                                                              \
        0xfe, 0x80, [15] = 1                                                                       \
    }
#define IPV4                                                                                       \
    {                                                                                              \
        [10] = 0xff, [11] = 0xff, 10, 1, 0, 2                                                      \
    }
enum { KINDS = 1 << GPSH_VERBS_GID_V1_LOCAL | 1 << GPSH_VERBS_GID_V2_IPV4 };

static struct gpsh_verbs_blob sample(void)
{
    struct gpsh_verbs_blob blob = {
        .pe = 1,
        .n_pes = 3,
        .n_channels = 2,
        .n_rails = 2,
        .slots = 4,
        .slot_bytes = 4096,
        .serves = GPSH_VERBS_SERVES_HEAP | GPSH_VERBS_SERVES_ATOMICS,
        .secret = 0x1122334455667788,
        .bases = {0x7f0000000000, 0x10000, 0, 0x20000},
        .region_bytes = {1 << 20, 4096, 0, gpsh_verbs_stage_layout(6, 4, 4096).bytes}};
    for (uint32_t i = 0; i < blob.n_rails; i++)
        blob.rails[i] = (struct gpsh_verbs_blob_rail){
            .rkeys = {i + 10, i + 20},
            .ethernet = 1,
            .gid_kinds = KINDS,
            .gids = {[GPSH_VERBS_GID_V1_LOCAL] = LOCAL, [GPSH_VERBS_GID_V2_IPV4] = IPV4},
            .psn_seed = i + 7,
            .datagrams = 100 + i,
            .mtu = 5,
            .reads_in = 16,
            .port = 1};
    return blob;
}

static size_t pack(const struct gpsh_verbs_blob *blob, unsigned char *to)
{
    gpsh_verbs_blob_write(blob, to);
    return gpsh_verbs_blob_bytes(blob);
}

Test(verbs_blob, parse__what_was_written__comes_back)
{
    struct gpsh_verbs_blob in = sample(), out;
    unsigned char bytes[512];
    size_t size = pack(&in, bytes);
    cr_assert_eq(gpsh_verbs_blob_parse(bytes, size, &out), 0, "%s", gpsh_last_error());
    cr_assert(out.pe == 1 && out.n_pes == 3 && out.n_channels == 2 && out.n_rails == 2);
    cr_assert_eq(out.bases[0], 0x7f0000000000);
    cr_assert_eq(out.region_bytes[1], 4096);
    cr_assert(out.slots == 4 && out.slot_bytes == 4096 && out.bases[3] == 0x20000);
    cr_assert_eq(out.serves, 3);
    cr_assert_eq(out.rails[1].rkeys[1], 21);
    static const uint8_t local[16] = LOCAL, ipv4[16] = IPV4;
    cr_assert_eq(out.rails[1].gid_kinds, KINDS);
    cr_assert_arr_eq(out.rails[0].gids[GPSH_VERBS_GID_V1_LOCAL], local, sizeof local);
    cr_assert_arr_eq(out.rails[1].gids[GPSH_VERBS_GID_V2_IPV4], ipv4, sizeof ipv4);
    cr_assert_eq(out.rails[1].datagrams, 101);
    cr_assert_eq(out.secret, 0x1122334455667788);
}

Test(verbs_blob, parse__any_other_length__refused)
{
    struct gpsh_verbs_blob in = sample(), out;
    unsigned char bytes[512] = {0};
    size_t size = pack(&in, bytes);
    for (size_t length = 0; length < sizeof bytes; length++)
        cr_assert_eq(gpsh_verbs_blob_parse(bytes, length, &out) == 0, length == size, "%zu bytes",
                     length);
}

static const struct change {
    const char *what;
    size_t offset, bytes;
    uint64_t value;
} changes[] = {
    {"magic number", 0, 4, 1},
    {"version", 4, 4, 1},
    {"PE", 8, 4, 3},
    {"number of PEs", 12, 4, 0},
    {"number of PEs", 12, 4, 1u << 31},
    {"number of channels", 16, 4, 0},
    {"number of channels", 16, 4, 5000},
    {"number of rails", 20, 4, 9},
    {"region address", 32, 8, 0},
    {"region address", 32, 8, 12},
    {"region size", 64, 8, 0},
    {"region size", 64, 8, UINT64_MAX - 7},
    {"region size", 72, 8, 9},
    {"region address", 80, 8, 8},
    {"size", 96, 8, 1},
    {"link layer", 112 + 2, 1, 2},
    {"MTU", 112 + 3, 1, 6},
    {"MTU", 112 + 3, 1, 0},
    {"reads", 112 + 4, 1, 0},
    {"port", 112 + 5, 1, 0},
    {"kind of atomics", 112 + 6, 1, 3},
    {"GID of kind", 112 + 72, 2, 0},
    {"GID of kind", 112 + 72 + 16 + 10, 1, 0},
    {"size", 112 + 9, 1, KINDS | 1 << GPSH_VERBS_GID_V2_LOCAL},
    {"order of writes", 112 + 7, 1, 2},
    {"way to its heap", 112 + 8, 1, 2},
    {"kinds of GIDs", 112 + 9, 1, 3},
    {"kinds of GIDs", 112 + 9, 1, 0},
    {"need of a GRH", 112 + 10, 1, 2},
    {"QP number", 112 + 32, 4, 1},
    {"QP number", 112 + 36 + 32, 4, 1u << 24},
    {"secret", 104, 8, 0},
    {"mailbox slots", 24, 2, 65},
    {"use of its mailboxes", 26, 2, 4},
    {"use of its mailboxes", 26, 2, 0},
    {"slot bytes", 28, 4, 4095},
    {"slot bytes", 28, 4, 64},
    {"slot bytes", 24, 4, 0},
    {"mailboxes", 24, 4, 5},
    {"mailboxes", 88, 8, 8},
    {"slot bytes", 28, 4, 1u << 30},
};

Test(verbs_blob, parse__one_field_wrong__refused_by_name)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct gpsh_verbs_blob in = sample(), out = {.pe = 77};
        unsigned char bytes[512];
        size_t size = pack(&in, bytes);
        memcpy(bytes + changes[i].offset, &changes[i].value, changes[i].bytes);
        cr_assert_eq(gpsh_verbs_blob_parse(bytes, size, &out), GPUSHMEM_ERR_PEER_DATA,
                     "%s (row %zu)", changes[i].what, i);
        cr_assert(strstr(gpsh_last_error(), changes[i].what), "row %zu: %s", i, gpsh_last_error());
        cr_assert_eq(out.pe, 77, "output written on failure");
    }
}

Test(verbs_blob, size__any_number_of_pes__the_same)
{
    struct gpsh_verbs_blob blob = sample();
    blob.n_rails = 1;
    size_t bytes = gpsh_verbs_blob_bytes(&blob);
    cr_assert_leq(bytes, 256);
    blob.n_pes = 131072;
    blob.n_channels = 64;
    cr_assert_eq(gpsh_verbs_blob_bytes(&blob), bytes);
}

Test(verbs_blob, gid_text__both_families)
{
    uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff, 10, 1, 0, 2}, ipv6[16] = {0xfe, 0x80, [15] = 1};
    char text[GPSH_VERBS_ADDRESS_TEXT];
    gpsh_verbs_gid_text(ipv4, text);
    cr_assert_str_eq(text, "10.1.0.2");
    gpsh_verbs_gid_text(ipv6, text);
    cr_assert_str_eq(text, "fe80::1");
}
