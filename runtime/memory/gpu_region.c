// SPDX-License-Identifier: BSD-3-Clause
#include "memory/gpu_region.h"

#include <stdio.h>

#include "core/config.h"
#include "gpu/gpu.h"
#include "gpu/gpu_heap.h"
#include "job/job.h"
#include "memory/heap.h"

static struct gpsh_gpu_heap heap = {.fd = -1, .dmabuf_fd = -1, .dmabuf_pcie_fd = -1};

static void tell(const struct gpsh_symmetric *region, uint64_t wish)
{
    GPSH_LOG(INFO, "heap", "%llu bytes on %s at %s, shared by %s; dma-buf: %s",
             (unsigned long long)region->bytes, gpsh_gpu.name, gpsh_gpu.pci,
             heap.ipc ? "CUDA IPC" : "VMM file descriptors",
             heap.dmabuf_fd >= 0 ? "yes" : heap.dmabuf_why);
    if (wish > heap.bytes && heap.ipc)
        GPSH_LOG(WARN, "heap",
                 "GPUSHMEM_HEAP_MAX has no effect: the heap on %s is shared by CUDA IPC and cannot "
                 "grow; set GPUSHMEM_HEAP_SIZE to what is needed",
                 gpsh_gpu.name);
}

int gpsh_gpu_region_create(struct gpsh_symmetric *region, uint64_t bytes, uint64_t reserved,
                           uint64_t room)
{
    int status = gpsh_gpu_heap_create(&heap, bytes, reserved, room, gpsh_settings()->heap_export,
                                      gpsh_job()->boot->node_n_pes);
    if (status)
        return status;
    region->base = heap.base;
    region->bytes = heap.bytes;
    region->room = heap.room;
    region->page = heap.grain;
    region->fd = heap.fd;
    snprintf(region->pages, sizeof region->pages, "GPU memory (%s), %.60s",
             heap.ipc ? "CUDA IPC" : "VMM", gpsh_gpu.name);
    tell(region, room);
    return 0;
}

void gpsh_gpu_region_destroy(struct gpsh_symmetric *region)
{
    gpsh_gpu_heap_destroy(&heap);
    *region = (struct gpsh_symmetric){.fd = -1};
}

// Peers have pieces of the same sizes, as far as they are mapped.
static void unmap_piece(int pe, const struct gpsh_gpu_piece *piece)
{
    char *base = gpsh_heap()->mapped[GPSH_HEAP][pe];
    if (pe != gpsh_job()->my_pe && base && piece->fd >= 0 &&
        gpsh_job()->peers[pe].heap_mapped > piece->offset)
        gpsh_gpu_piece_unmap(base + piece->offset, piece->bytes);
}

static void unmap_last(int pe)
{
    const struct gpsh_gpu_piece *last = &heap.added[heap.n_added - 1];
    struct gpsh_peer *peer = &gpsh_job()->peers[pe];
    unmap_piece(pe, last);
    if (peer->heap_mapped > last->offset)
        peer->heap_mapped = last->offset;
}

int gpsh_gpu_region_resize(struct gpsh_symmetric *region, uint64_t bytes)
{
    int status = bytes > heap.bytes ? gpsh_gpu_heap_grow(&heap, bytes - heap.bytes) : 0;
    while (heap.bytes > bytes) {
        for (int pe = 0; pe < gpsh_job()->n_pes; pe++)
            unmap_last(pe);
        gpsh_gpu_heap_shrink(&heap);
    }
    region->bytes = heap.bytes;
    return status;
}

int gpsh_gpu_region_adopt(struct gpsh_symmetric *region, const char *buffer, uint64_t bytes)
{
    int status = gpsh_gpu_heap_adopt(&heap, buffer, bytes);
    region->bytes = heap.bytes;
    return status;
}

bool gpsh_gpu_region_adopted(const char *address, uint64_t *offset)
{
    for (int i = 0; i < heap.n_added; i++) {
        const struct gpsh_gpu_piece *piece = &heap.added[i];
        *offset = piece->offset;
        if (piece->adopted && (address == piece->adopted || address == heap.base + piece->offset))
            return true;
    }
    return false;
}

void gpsh_gpu_region_return(uint64_t offset)
{
    for (int i = 0; i < heap.n_added; i++) {
        struct gpsh_gpu_piece *piece = &heap.added[i];
        if (piece->offset != offset)
            continue;
        for (int pe = 0; pe < gpsh_job()->n_pes; pe++)
            unmap_piece(pe, piece);
        gpsh_gpu_heap_return(&heap, piece);
    }
}

void gpsh_gpu_region_dmabufs(bool last, struct gpsh_region *out)
{
    const struct gpsh_gpu_piece *piece = last ? &heap.added[heap.n_added - 1] : NULL;
    out->dmabuf_fd = piece ? piece->dmabuf_fd : heap.dmabuf_fd;
    out->dmabuf_pcie_fd = piece ? piece->dmabuf_pcie_fd : heap.dmabuf_pcie_fd;
}

int gpsh_gpu_region_last_fd(void)
{
    return heap.added[heap.n_added - 1].fd;
}

int gpsh_gpu_region_map(int pe, int fd, uint64_t bytes, uint64_t *room)
{
    struct gpsh_peer *peer = &gpsh_job()->peers[pe];
    int status = gpsh_gpu_heap_map(fd, bytes, room, pe, &gpsh_heap()->mapped[GPSH_HEAP][pe]);
    if (!status) {
        peer->heap_room = *room;
        peer->heap_mapped = bytes;
    }
    if (status != GPUSHMEM_ERR_UNREACHABLE)
        return status;
    gpsh_peer_because(peer, gpsh_last_error());
    GPSH_LOG(INFO, "heap", "%s", gpsh_last_error());
    return 0;
}

int gpsh_gpu_region_map_last(int pe, int fd)
{
    const struct gpsh_gpu_piece *last = &heap.added[heap.n_added - 1];
    if (!gpsh_heap()->mapped[GPSH_HEAP][pe])
        return 0;
    int status =
        gpsh_gpu_piece_map(fd, last->bytes, pe, gpsh_heap()->mapped[GPSH_HEAP][pe] + last->offset);
    if (!status)
        gpsh_job()->peers[pe].heap_mapped = last->offset + last->bytes;
    return status;
}

// The first piece, and the addresses, go last.
void gpsh_gpu_region_unmap(int pe)
{
    struct gpsh_peer *peer = &gpsh_job()->peers[pe];
    char *base = gpsh_heap()->mapped[GPSH_HEAP][pe];
    for (int i = heap.n_added - 1; i >= 0; i--)
        unmap_piece(pe, &heap.added[i]);
    gpsh_gpu_heap_unmap(base, gpsh_heap()->first_bytes, peer->heap_room);
}
