// SPDX-License-Identifier: BSD-3-Clause
// Verbs connection data from a peer: whatever the bytes, the parser refuses them with a sentence,
// or every field of what it accepts is in range.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "fuzz.h"
#include "transports/verbs/setup/verbs_blob.h"

static void check_accepted(const struct gpsh_verbs_blob *blob, size_t bytes)
{
    if (blob->pe >= blob->n_pes || !blob->n_channels || !blob->n_rails ||
        blob->n_rails > GPSH_VERBS_MAX_RAILS)
        abort();
    if (gpsh_verbs_blob_bytes(blob) != bytes)
        abort();
    uint64_t slots = (uint64_t)blob->slots * blob->slot_bytes * blob->n_pes * blob->n_channels;
    if (blob->slots > GPSH_VERBS_MAX_SLOTS || slots > blob->region_bytes[GPSH_VERBS_STAGE])
        abort();
    for (uint32_t i = 0; i < blob->n_rails; i++)
        if (blob->rails[i].mtu < 1 || blob->rails[i].mtu > 5 || !blob->rails[i].port ||
            !blob->rails[i].reads_in || !blob->rails[i].gid_kinds ||
            blob->rails[i].datagrams - 2 > 0xffffff - 2)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct gpsh_verbs_blob blob, untouched;
    memset(&blob, 0x5a, sizeof blob);
    untouched = blob;
    // of its very size, so that the sanitizer sees one byte too far
    void *exact = malloc(bytes ? bytes : 1);
    memcpy(exact, data, bytes);
    int status = gpsh_verbs_blob_parse(exact, bytes, &blob);
    if (status == 0)
        check_accepted(&blob, bytes);
    else if (status != GPUSHMEM_ERR_PEER_DATA || !gpsh_last_error()[0] ||
             memcmp(&blob, &untouched, sizeof blob) != 0)
        abort();
    free(exact);
    return 0;
}

size_t fuzz_sample(int index, uint8_t *data, size_t room)
{
    // PEs, channels, rails
    static const uint32_t shapes[][3] = {{1, 1, 1}, {2, 2, 1}, {4, 3, 2}, {3, 1, 8}};
    if (index < 0 || index >= (int)(sizeof shapes / sizeof *shapes))
        return 0;
    struct gpsh_verbs_blob blob = {.pe = shapes[index][0] - 1,
                                   .n_pes = shapes[index][0],
                                   .n_channels = shapes[index][1],
                                   .n_rails = shapes[index][2],
                                   .secret = 77,
                                   .bases = {0x7f1200000000, index ? 0x7f3400000000 : 0},
                                   .region_bytes = {1 << 28, index ? 8192 : 0}};
    if (index % 2) {
        blob.slots = 8;
        blob.slot_bytes = 65536;
        blob.serves = (uint16_t)(1 + index / 2);
        blob.bases[GPSH_VERBS_STAGE] = 0x7f5600000000;
        blob.region_bytes[GPSH_VERBS_STAGE] =
            gpsh_verbs_stage_layout(blob.n_pes * blob.n_channels, 8, 65536).bytes;
    }
    uint8_t kinds = index % 2 ? 1 << GPSH_VERBS_GID_V2_IPV4 | 1 << GPSH_VERBS_GID_V1_LOCAL : 1;
    for (uint32_t i = 0; i < blob.n_rails; i++)
        blob.rails[i] = (struct gpsh_verbs_blob_rail){
            .gids = {[GPSH_VERBS_GID_V1_LOCAL] = {0xfe, 0x80, 1},
                     [GPSH_VERBS_GID_V2_IPV4] = {[10] = 0xff, [11] = 0xff, 10}},
            .gid_kinds = kinds,
            .rkeys = {i + 1, i + 9},
            .datagrams = i + 17,
            .lid = 3,
            .ethernet = (uint8_t)(index % 2),
            .mtu = 5,
            .reads_in = 16,
            .port = 1};
    size_t bytes = gpsh_verbs_blob_bytes(&blob);
    if (bytes > room)
        return 0;
    gpsh_verbs_blob_write(&blob, data);
    return bytes;
}
