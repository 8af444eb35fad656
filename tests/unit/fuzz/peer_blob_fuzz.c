// SPDX-License-Identifier: BSD-3-Clause
// Peers' connection data: any bytes are either refused or parsed into sections that lie inside
// them.
#include <stdlib.h>
#include <string.h>

#include "bootstrap/peer_blob.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct gpsh_peer_blob blob;
    if (gpsh_peer_blob_parse(3, data, bytes, &blob))
        return 0;
    if (!memchr(blob.hostname, '\0', sizeof blob.hostname) || blob.sections > GPSH_BLOB_SECTIONS)
        abort();
    for (int i = 0; i < blob.sections; i++) {
        const uint8_t *start = blob.section[i].data;
        if (start < data || start + blob.section[i].bytes > data + bytes)
            abort();
    }
    return 0;
}

size_t fuzz_sample(int index, uint8_t *data, size_t room)
{
    struct gpsh_peer_blob blob = {
        .pe = 3, .region_bytes = {1 << 20, 4096}, .hostname = "node", .sections = (uint8_t)index};
    void *packed;
    size_t bytes;
    if (index > 3)
        return 0;
    for (int i = 0; i < index; i++)
        blob.section[i] = (struct gpsh_blob_section){
            .name = "verbs", .data = "0123456789abcdef", .bytes = (uint64_t)i * 5};
    if (gpsh_peer_blob_pack(&blob, &packed, &bytes))
        return 0;
    memcpy(data, packed, bytes < room ? bytes : room);
    free(packed);
    return bytes;
}
