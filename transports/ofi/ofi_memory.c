// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "transports/ofi/ofi_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "transports/ofi/ofi_fabric.h"

static const uint64_t REMOTE = FI_REMOTE_READ | FI_REMOTE_WRITE;
static const uint64_t LOCAL = FI_READ | FI_WRITE | FI_SEND | FI_RECV;

// Keys of our choice are drawn, so that nobody outside the job can name its memory.
static uint64_t draw_key(const struct gpsh_ofi *ofi)
{
    uint64_t key = 0;
    size_t bytes = ofi->info->domain_attr->mr_key_size;
    if (ofi->provider_keys || getrandom(&key, sizeof key, 0) != sizeof key)
        return key;
    return bytes < sizeof key ? key & ((UINT64_C(1) << (8 * bytes)) - 1) : key;
}

static int enable(struct fid_mr *mr, struct fid_ep *ep)
{
    int error = fi_mr_bind(mr, &ep->fid, 0);
    return error ? error : fi_mr_enable(mr);
}

static struct fid_mr *reg(struct gpsh_ofi *ofi, struct fid_ep *ep, const struct gpsh_region *region,
                          uint64_t access)
{
    struct iovec iov = {region->base, region->bytes};
    struct fi_mr_attr attr = {.mr_iov = &iov, .iov_count = 1, .access = access};
    struct fid_mr *mr = NULL;
    int error = -FI_ENOKEY;
    if (region->kind == GPSH_MEMORY_DEVICE)
        attr.iface = FI_HMEM_CUDA;
    // Another part of the process may have the key already: then another is drawn.
    for (int tries = 0; error == -FI_ENOKEY && tries < 8; tries++) {
        attr.requested_key = draw_key(ofi);
        error = fi_mr_regattr(ofi->domain, &attr, 0, &mr);
    }
    if (!error && ofi->endpoint_keys) {
        error = enable(mr, ep);
        if (error)
            fi_close(&mr->fid);
    }
    if (!error)
        return mr;
    gpsh_fail(GPUSHMEM_ERR_TRANSPORT, "ofi: %zu bytes at %p cannot be registered: %s",
              region->bytes, (void *)region->base, ofi->library->strerror(-error));
    return NULL;
}

struct fid_mr *gpsh_ofi_local_register(struct gpsh_ofi *ofi, struct fid_ep *ep, void *base,
                                       size_t bytes)
{
    struct gpsh_region region = {.base = base, .bytes = bytes, .kind = GPSH_MEMORY_HOST};
    return reg(ofi, ep, &region, LOCAL);
}

// A heap that the provider does not take is left to the agent.
static int register_heap(struct gpsh_ofi *ofi)
{
    const struct gpsh_region *heap = &ofi->env.regions[GPSH_HEAP];
    ofi->n_pieces = 1;
    ofi->piece_ends[0] = heap->bytes;
    if (ofi->env.settings->gpudirect == GPSH_GPUDIRECT_NEVER) {
        snprintf(ofi->host, sizeof ofi->host, "GPUSHMEM_GPUDIRECT=never");
        return 0;
    }
    if (ofi_device_heap(ofi) && !ofi->hmem) {
        snprintf(ofi->host, sizeof ofi->host, "the provider moves no GPU memory");
        return 0;
    }
    ofi->heap_mrs[0] = reg(ofi, ofi->wire.ep, heap, REMOTE | LOCAL);
    if (!ofi->heap_mrs[0] && ofi_device_heap(ofi)) {
        GPSH_LOG(INFO, "ofi", "the heap goes through host memory: %s", gpsh_last_error());
        snprintf(ofi->host, sizeof ofi->host, "the provider registers no GPU memory");
        return 0;
    }
    return ofi->heap_mrs[0] ? 0 : gpsh_last_error_code();
}

// As verbs does: programs that name none of it run without, unless it was demanded.
static bool spare_static(struct gpsh_ofi *ofi)
{
    if (ofi->env.settings->static_data == GPSH_STATIC_DATA_ON)
        return false;
    snprintf(ofi->base.static_refused, sizeof ofi->base.static_refused, "%s", gpsh_last_error());
    ofi->env.regions[GPSH_STATIC] = (struct gpsh_region){.dmabuf_fd = -1, .dmabuf_pcie_fd = -1};
    gpsh_clear_error();
    return true;
}

int gpsh_ofi_regions_register(struct gpsh_ofi *ofi)
{
    for (int r = 0; r < GPSH_REGIONS; r++) {
        const struct gpsh_region *region = &ofi->env.regions[r];
        if (r == GPSH_HEAP || !region->bytes)
            continue;
        ofi->region_mrs[r] = reg(ofi, ofi->wire.ep, region, REMOTE | LOCAL);
        if (!ofi->region_mrs[r] && (r != GPSH_STATIC || !spare_static(ofi)))
            return gpsh_last_error_code();
    }
    int status = register_heap(ofi);
    ofi->region_mrs[GPSH_HEAP] = ofi->heap_mrs[0];
    return status;
}

static void deregister(struct fid_mr **mr)
{
    if (*mr)
        fi_close(&(*mr)->fid);
    *mr = NULL;
}

static void buffer_deregister(const struct gpsh_buffer *buffer)
{
    struct fid_mr *mr = buffer->keys[0];
    deregister(&mr);
}

void gpsh_ofi_memory_close(struct gpsh_ofi *ofi)
{
    ofi->region_mrs[GPSH_HEAP] = NULL;
    for (int r = 0; r < GPSH_REGIONS; r++)
        deregister(&ofi->region_mrs[r]);
    for (int i = 0; i < OFI_PIECES; i++) {
        deregister(&ofi->heap_mrs[i]);
        free(ofi->piece_keys[i]);
    }
    for (size_t i = 0; i < ofi->buffers.n; i++)
        buffer_deregister(&ofi->buffers.list[i]);
    gpsh_buffers_clear(&ofi->buffers);
}

// ------------------------------------------------------------------------------------------
// keys

int gpsh_ofi_key_describe(struct gpsh_ofi *ofi, struct fid_mr *mr, const char *base,
                          struct ofi_blob_key *out)
{
    *out = (struct ofi_blob_key){.base = ofi->virtual_addresses ? (uintptr_t)base : 0};
    if (!mr)
        return 0;
    uint64_t key = fi_mr_key(mr);
    size_t bytes = sizeof out->key;
    out->keyed = 1;
    out->key_bytes = sizeof key;
    memcpy(out->key, &key, sizeof key);
    if (!ofi->raw_keys)
        return 0;
    uint64_t raw_base = 0;
    int error = fi_mr_raw_attr(mr, &raw_base, out->key, &bytes, 0);
    if (error)
        return gpsh_ofi_error(ofi, "fi_mr_raw_attr", error);
    out->key_bytes = (uint32_t)bytes;
    out->base = raw_base;
    return 0;
}

int gpsh_ofi_key_import(struct gpsh_ofi *ofi, const struct ofi_blob_key *from, struct ofi_key *out)
{
    int status = gpsh_ofi_key_check(from);
    if (status)
        return status;
    *out = (struct ofi_key){.base = from->base, .keyed = from->keyed};
    if (!from->keyed)
        return 0;
    if (!ofi->raw_keys && from->key_bytes != sizeof out->key)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "libfabric data of a peer has a key of %u bytes, not of 8",
                         from->key_bytes);
    memcpy(&out->key, from->key, sizeof out->key);
    if (!ofi->raw_keys)
        return 0;
    uint8_t raw[OFI_KEY_BYTES];
    memcpy(raw, from->key, sizeof raw);
    int error = fi_mr_map_raw(ofi->domain, from->base, raw, from->key_bytes, &out->key, 0);
    return error ? gpsh_ofi_error(ofi, "fi_mr_map_raw", error) : 0;
}

uint64_t gpsh_ofi_region_bytes(const struct gpsh_ofi *ofi, int region)
{
    return region == GPSH_HEAP
               ? ofi->piece_ends[atomic_load_explicit(&ofi->n_pieces, memory_order_acquire) - 1]
               : ofi->env.regions[region].bytes;
}

bool gpsh_ofi_remote(const struct gpsh_ofi *ofi, const struct ofi_peer *peer, int region,
                     uint64_t offset, struct ofi_remote *out)
{
    const struct ofi_key *key = &peer->keys[region];
    uint64_t begin = 0, end = peer->static_bytes;
    if (region != GPSH_STATIC)
        end = region == GPSH_HEAP ? ofi->piece_ends[0] : ofi->env.regions[region].bytes;
    if (region == GPSH_HEAP) {
        uint32_t n = atomic_load_explicit(&ofi->n_pieces, memory_order_acquire), i = 0;
        while (i < n && offset >= ofi->piece_ends[i])
            i++;
        if (i == n)
            return false;
        begin = i ? ofi->piece_ends[i - 1] : 0;
        end = ofi->piece_ends[i];
        key = i ? &ofi->piece_keys[i][peer->pe] : key;
    }
    if (offset >= end || !key->keyed)
        return false;
    *out = (struct ofi_remote){key->base + (offset - begin), key->key, end - offset};
    return true;
}

int gpsh_ofi_extend(struct gpsh_transport *self, const struct gpsh_region *chunk, void *keys)
{
    struct gpsh_ofi *ofi = (struct gpsh_ofi *)self;
    uint32_t n = atomic_load(&ofi->n_pieces);
    if (n == OFI_PIECES)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "it has grown %d times already", OFI_PIECES - 1);
    struct ofi_key *peers = calloc((size_t)ofi->env.n_pes, sizeof *peers);
    if (!peers)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the keys of %d PEs",
                         ofi->env.n_pes);
    struct fid_mr *mr = NULL;
    if (ofi->heap_mrs[0])
        mr = reg(ofi, ofi->wire.ep, chunk, REMOTE | LOCAL);
    struct ofi_blob_key key;
    int status = ofi->heap_mrs[0] && !mr ? gpsh_last_error_code()
                                         : gpsh_ofi_key_describe(ofi, mr, chunk->base, &key);
    if (status) {
        deregister(&mr);
        free(peers);
        return status;
    }
    memcpy(keys, &key, sizeof key);
    free(ofi->piece_keys[n]);
    ofi->piece_keys[n] = peers;
    ofi->heap_mrs[n] = mr;
    ofi->piece_ends[n] = ofi->piece_ends[n - 1] + chunk->bytes;
    atomic_store_explicit(&ofi->n_pieces, n + 1, memory_order_release);
    return 0;
}

int gpsh_ofi_extended(struct gpsh_transport *self, int pe, const void *keys)
{
    struct gpsh_ofi *ofi = (struct gpsh_ofi *)self;
    struct ofi_blob_key key;
    memcpy(&key, keys, sizeof key);
    return gpsh_ofi_key_import(ofi, &key, &ofi->piece_keys[atomic_load(&ofi->n_pieces) - 1][pe]);
}

void gpsh_ofi_retract(struct gpsh_transport *self)
{
    struct gpsh_ofi *ofi = (struct gpsh_ofi *)self;
    uint32_t last = atomic_load(&ofi->n_pieces) - 1;
    atomic_store(&ofi->n_pieces, last);
    deregister(&ofi->heap_mrs[last]);
}

// ------------------------------------------------------------------------------------------
// local memory

static bool in_buffer(struct gpsh_ofi *ofi, const char *local, uint64_t bytes, void **out)
{
    pthread_rwlock_rdlock(&ofi->buffers.lock);
    const struct gpsh_buffer *buffer = gpsh_buffers_find(&ofi->buffers, local, bytes);
    struct fid_mr *mr = buffer ? buffer->keys[0] : NULL;
    if (mr)
        *out = fi_mr_desc(mr);
    pthread_rwlock_unlock(&ofi->buffers.lock);
    return mr;
}

static bool in_heap(struct gpsh_ofi *ofi, const char *local, uint64_t bytes, void **out)
{
    char *base = ofi->env.regions[GPSH_HEAP].base;
    uint32_t n = atomic_load_explicit(&ofi->n_pieces, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t begin = i ? ofi->piece_ends[i - 1] : 0;
        const struct gpsh_region piece = {.base = base + begin,
                                          .bytes = ofi->piece_ends[i] - begin};
        if (!gpsh_region_holds(&piece, local, bytes))
            continue;
        *out = ofi->heap_mrs[i] ? fi_mr_desc(ofi->heap_mrs[i]) : NULL;
        return ofi->heap_mrs[i];
    }
    return false;
}

bool gpsh_ofi_descriptor(struct gpsh_ofi *ofi, const char *local, uint64_t bytes, void **out)
{
    *out = NULL;
    if (!ofi->local_keys)
        return true;
    // Keys of the heap belong to the wire's endpoint, not to the lanes'.
    if (ofi->endpoint_keys)
        return false;
    if (in_heap(ofi, local, bytes, out))
        return true;
    for (int r = GPSH_CONTROL; r < GPSH_REGIONS; r++) {
        const struct gpsh_region *region = &ofi->env.regions[r];
        if (ofi->region_mrs[r] && gpsh_region_holds(region, local, bytes)) {
            *out = fi_mr_desc(ofi->region_mrs[r]);
            return true;
        }
    }
    return in_buffer(ofi, local, bytes, out);
}

int gpsh_ofi_buffer_register(struct gpsh_transport *self, const struct gpsh_region *region)
{
    struct gpsh_ofi *ofi = (struct gpsh_ofi *)self;
    struct gpsh_buffer buffer = {.region = *region};
    // Where the provider asks for no local keys, or cannot have this one, there is nothing to do.
    if (ofi->local_keys && !ofi->endpoint_keys && (region->kind == GPSH_MEMORY_HOST || ofi->hmem)) {
        buffer.keys[0] = reg(ofi, ofi->wire.ep, region, LOCAL);
        if (!buffer.keys[0])
            return gpsh_last_error_code();
    }
    int status = gpsh_buffers_add(&ofi->buffers, &buffer);
    if (status)
        buffer_deregister(&buffer);
    return status;
}

int gpsh_ofi_buffer_unregister(struct gpsh_transport *self, const void *base)
{
    struct gpsh_ofi *ofi = (struct gpsh_ofi *)self;
    struct gpsh_buffer buffer;
    int status = gpsh_buffers_take(&ofi->buffers, base, &buffer);
    if (!status)
        buffer_deregister(&buffer);
    return status;
}
