// SPDX-License-Identifier: BSD-3-Clause
// Libfabric connection data from a peer: whatever the bytes, the parser refuses them with a
// sentence, or what it accepts is in range and is written as the same bytes again.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "fuzz.h"
#include "transports/ofi/ofi_blob.h"

static void check_accepted(const struct ofi_blob *blob, const void *from, size_t bytes)
{
    unsigned char again[sizeof *blob];
    if (blob->pe >= blob->n_pes || !blob->address_bytes ||
        blob->address_bytes > OFI_ADDRESS_BYTES || strlen(blob->provider) > blob->provider_bytes ||
        blob->provider_bytes >= OFI_NAME_BYTES)
        abort();
    for (int r = 0; r < GPSH_REGIONS; r++)
        if (gpsh_ofi_key_check(&blob->keys[r]))
            abort();
    if (gpsh_ofi_blob_write(blob, NULL) != bytes || bytes > sizeof again)
        abort();
    gpsh_ofi_blob_write(blob, again);
    if (memcmp(again, from, bytes) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct ofi_blob blob, untouched;
    memset(&blob, 0x5a, sizeof blob);
    untouched = blob;
    // of its very size, so that the sanitizer sees one byte too far
    void *exact = malloc(bytes ? bytes : 1);
    memcpy(exact, data, bytes);
    int status = gpsh_ofi_blob_parse(exact, bytes, &blob);
    if (status == 0)
        check_accepted(&blob, exact, bytes);
    else if (status != GPUSHMEM_ERR_PEER_DATA || !gpsh_last_error()[0] ||
             memcmp(&blob, &untouched, sizeof blob) != 0)
        abort();
    free(exact);
    return 0;
}

size_t fuzz_sample(int index, uint8_t *data, size_t room)
{
    // bytes of the keys of two regions, and of the address
    static const uint32_t shapes[][3] = {{8, 8, 16}, {0, 8, 28}, {24, 48, 256}, {0, 0, 1}};
    if (index < 0 || index >= (int)(sizeof shapes / sizeof *shapes))
        return 0;
    const uint32_t *shape = shapes[index];
    struct ofi_blob blob = {.magic = OFI_BLOB_MAGIC,
                            .version = OFI_BLOB_VERSION,
                            .pe = (uint32_t)index,
                            .n_pes = 4,
                            .n_channels = 3,
                            .address_format = 2,
                            .address_bytes = (uint16_t)shape[2],
                            .provider_bytes = 11,
                            .secret = 77,
                            .region_bytes = {1 << 28, 4096},
                            .provider = "tcp;ofi_rxm",
                            .address = {2, 0, 9, 9, 127, 0, 0, 1}};
    for (int r = 0; r < 2; r++)
        blob.keys[r] = (struct ofi_blob_key){
            .base = 0x7f1200000000, .keyed = shape[r] > 0, .key_bytes = shape[r], .key = {1, 2, 3}};
    return gpsh_ofi_blob_write(&blob, NULL) <= room ? gpsh_ofi_blob_write(&blob, data) : 0;
}
