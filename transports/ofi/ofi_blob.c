// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "transports/ofi/ofi_blob.h"

#include <stdbool.h>
#include <string.h>

#include "core/error.h"

enum { HEAD_BYTES = offsetof(struct ofi_blob, keys) };
_Static_assert(HEAD_BYTES == 72, "no compiler's padding is part of what is published");

int gpsh_ofi_key_check(const struct ofi_blob_key *key)
{
    if (key->keyed > 1 || key->key_bytes > OFI_KEY_BYTES || (key->keyed && !key->key_bytes))
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "libfabric data of a peer has a key of %u bytes (kind %u), where there "
                         "are at most %d",
                         key->key_bytes, key->keyed, OFI_KEY_BYTES);
    return 0;
}

static void add(unsigned char *to, size_t *used, const void *from, size_t bytes)
{
    if (to)
        memcpy(to + *used, from, bytes);
    *used += bytes;
}

size_t gpsh_ofi_blob_write(const struct ofi_blob *blob, void *to)
{
    size_t used = 0;
    add(to, &used, blob, HEAD_BYTES);
    for (int r = 0; r < GPSH_REGIONS; r++) {
        const struct ofi_blob_key *key = &blob->keys[r];
        uint8_t bytes = key->keyed ? (uint8_t)key->key_bytes : 0;
        add(to, &used, &key->base, sizeof key->base);
        add(to, &used, &bytes, 1);
        add(to, &used, key->key, bytes);
    }
    add(to, &used, blob->provider, blob->provider_bytes);
    add(to, &used, blob->address, blob->address_bytes);
    return used;
}

struct reader {
    const unsigned char *at;
    size_t left;
};

static bool take(struct reader *reader, void *to, size_t bytes)
{
    if (reader->left < bytes)
        return false;
    memcpy(to, reader->at, bytes);
    reader->at += bytes;
    reader->left -= bytes;
    return true;
}

static bool take_key(struct reader *reader, struct ofi_blob_key *key)
{
    uint8_t bytes;
    if (!take(reader, &key->base, sizeof key->base) || !take(reader, &bytes, 1))
        return false;
    key->key_bytes = bytes;
    key->keyed = bytes > 0;
    return bytes <= sizeof key->key && take(reader, key->key, bytes);
}

static int check_head(const struct ofi_blob *blob)
{
    if (blob->magic != OFI_BLOB_MAGIC || blob->version != OFI_BLOB_VERSION)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "libfabric data begins with %x, version %u, instead of %x, version %d: "
                         "start all PEs with the same gpushmem library",
                         blob->magic, blob->version, OFI_BLOB_MAGIC, OFI_BLOB_VERSION);
    if (blob->n_pes == 0 || blob->pe >= blob->n_pes)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA, "libfabric data of PE %u of %u PEs", blob->pe,
                         blob->n_pes);
    if (blob->address_bytes == 0 || blob->address_bytes > OFI_ADDRESS_BYTES)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "libfabric data of PE %u has an address of %u bytes, not of 1 to %d",
                         blob->pe, blob->address_bytes, OFI_ADDRESS_BYTES);
    if (blob->provider_bytes >= sizeof blob->provider)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "libfabric data of PE %u has a provider's name of %u bytes, not of up to "
                         "%d",
                         blob->pe, blob->provider_bytes, OFI_NAME_BYTES - 1);
    return 0;
}

int gpsh_ofi_blob_parse(const void *bytes, size_t size, struct ofi_blob *out)
{
    struct ofi_blob blob = {.magic = 0};
    struct reader reader = {bytes, size};
    bool whole = take(&reader, &blob, HEAD_BYTES);
    int status = whole ? check_head(&blob) : 0;
    if (status)
        return status;
    for (int r = 0; r < GPSH_REGIONS; r++)
        whole = whole && take_key(&reader, &blob.keys[r]);
    whole = whole && take(&reader, blob.provider, blob.provider_bytes) &&
            take(&reader, blob.address, blob.address_bytes);
    if (!whole || reader.left)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "libfabric data of %zu bytes is not as long as its parts say", size);
    *out = blob;
    return 0;
}
