// SPDX-License-Identifier: BSD-3-Clause
#include "transports/ofi/ofi_blob.h"

#include <string.h>

#include "core/error.h"

int gpsh_ofi_key_check(const struct ofi_blob_key *key)
{
    if (key->keyed > 1 || key->key_bytes > OFI_KEY_BYTES || (key->keyed && !key->key_bytes))
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "libfabric data of a peer has a key of %u bytes (kind %u), where there "
                         "are at most %d",
                         key->key_bytes, key->keyed, OFI_KEY_BYTES);
    return 0;
}

static int check_fields(const struct ofi_blob *blob)
{
    if (blob->n_pes == 0 || blob->pe >= blob->n_pes)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA, "libfabric data of PE %u of %u PEs", blob->pe,
                         blob->n_pes);
    if (blob->address_bytes == 0 || blob->address_bytes > OFI_ADDRESS_BYTES)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "libfabric data of PE %u has an address of %u bytes, not of 1 to %d",
                         blob->pe, blob->address_bytes, OFI_ADDRESS_BYTES);
    if (!memchr(blob->provider, 0, sizeof blob->provider))
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "libfabric data of PE %u has a provider's name without an end", blob->pe);
    for (int r = 0; r < GPSH_REGIONS; r++) {
        int status = gpsh_ofi_key_check(&blob->keys[r]);
        if (status)
            return status;
    }
    return 0;
}

int gpsh_ofi_blob_parse(const void *bytes, size_t size, struct ofi_blob *out)
{
    struct ofi_blob blob;
    if (size != sizeof blob)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA, "libfabric data has %zu bytes instead of %zu",
                         size, sizeof blob);
    memcpy(&blob, bytes, sizeof blob);
    if (blob.magic != OFI_BLOB_MAGIC || blob.version != OFI_BLOB_VERSION)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "libfabric data begins with %x, version %u, instead of %x, version %d: "
                         "start all PEs with the same gpushmem library",
                         blob.magic, blob.version, OFI_BLOB_MAGIC, OFI_BLOB_VERSION);
    int status = check_fields(&blob);
    if (!status)
        *out = blob;
    return status;
}
