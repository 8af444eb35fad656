// SPDX-License-Identifier: BSD-3-Clause
// Symmetric memory on the GPU: an allocation per PE that the node's other PEs map. Of VMM memory
// there may be several, one behind the other: a heap that grows.
//
// Virtual memory management (VMM) with a file descriptor as handle is preferred: it can be
// registered for GPUDirect RDMA, and works between PEs on one GPU as well. Where the driver has no
// such handles, cudaMalloc memory goes over CUDA IPC; the IPC handle then travels in an anonymous
// file, so that both look alike to the code that hands descriptors around.
#ifndef GPSH_GPU_HEAP_H
#define GPSH_GPU_HEAP_H

#include "gpu/gpu_driver.h"

// as the choices of GPUSHMEM_TEST_HEAP_EXPORT
enum gpsh_gpu_export { GPSH_EXPORT_AUTO, GPSH_EXPORT_VMM, GPSH_EXPORT_IPC };

// What a heap has got by growing, or of the program's memory.
struct gpsh_gpu_piece {
    uint64_t offset, bytes;            // of the heap
    const char *adopted;               // where the program has it; NULL: it is the heap's own
    int fd, dmabuf_fd, dmabuf_pcie_fd; // as the heap's
};
enum { GPSH_GPU_PIECES = 24 };

struct gpsh_gpu_heap {
    char *base;     // device address
    uint64_t bytes; // of all pieces
    uint64_t room;  // of addresses from base on: it may grow to that
    uint64_t grain; // of which pieces are multiples
    int n_added;
    struct gpsh_gpu_piece added[GPSH_GPU_PIECES];
    // the first piece
    uint64_t reserved;  // of its bytes the library's, which nobody asked for
    int fd;             // for the peers: memory itself (VMM), or a file with the IPC handle
    int dmabuf_fd;      // for NICs; -1: none, `dmabuf_why` says why
    int dmabuf_pcie_fd; // the same of the PCIe mapping; -1: the driver knows no difference
    bool ipc;
    char dmabuf_why[128];
};

// Allocates, maps and zeroes `bytes`, `reserved` of them the library's own (rounded up to the
// granularity) on the current GPU. Where `room` is more than that, and VMM gives as many addresses,
// the heap may grow. GPUSHMEM_ERR_NO_MEMORY if it does not fit, GPUSHMEM_ERR_UNSUPPORTED if the
// wished export is not possible. *heap is zeroed but for fds (-1) on failure.
int gpsh_gpu_heap_create(struct gpsh_gpu_heap *heap, uint64_t bytes, uint64_t reserved,
                         uint64_t room, int wish, int node_pes);
void gpsh_gpu_heap_destroy(struct gpsh_gpu_heap *heap);

// Adds a piece of `bytes`, zeroed, where the heap ends. 0, or a negative status with a sentence,
// and then the heap is as it was.
int gpsh_gpu_heap_grow(struct gpsh_gpu_heap *heap, uint64_t bytes);
void gpsh_gpu_heap_shrink(struct gpsh_gpu_heap *heap); // by the piece that was added last
// Adds VMM memory of the program, where the heap ends: all of an allocation that is mapped at
// `buffer`, which stays mapped there, with what it holds.
int gpsh_gpu_heap_adopt(struct gpsh_gpu_heap *heap, const char *buffer, uint64_t bytes);
// Takes the memory of such a piece away. Its addresses stay taken.
void gpsh_gpu_heap_return(struct gpsh_gpu_heap *heap, struct gpsh_gpu_piece *piece);

// The dma-buf of other GPU memory, whose owner the caller becomes; -1 if the driver gives none. It
// consists of whole pages of the host: the memory begins as far into it as into its first page.
int gpsh_gpu_dmabuf(const void *memory, size_t bytes);
// Zeroed GPU memory that NICs reach by its dma-buf. 0, or a negative status with a sentence.
int gpsh_gpu_shared_alloc(size_t bytes, void **memory, int *dmabuf_fd);
void gpsh_gpu_shared_free(void *memory, size_t bytes, int dmabuf_fd);

// Maps a peer's heap from its descriptor, which stays open, with addresses for *room bytes (at
// least `bytes`), or less, which is written there. GPUSHMEM_ERR_UNREACHABLE with a sentence if this
// GPU cannot reach that memory, GPUSHMEM_ERR_PEER_DATA if the descriptor is no such handle.
int gpsh_gpu_heap_map(int fd, uint64_t bytes, uint64_t *room, int pe, char **base);
// After the pieces that were mapped behind it.
void gpsh_gpu_heap_unmap(char *base, uint64_t bytes, uint64_t room);
// The same for a piece, at its address within that room.
int gpsh_gpu_piece_map(int fd, uint64_t bytes, int pe, char *at);
void gpsh_gpu_piece_unmap(char *at, uint64_t bytes);

#endif
