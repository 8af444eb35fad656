// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // memfd_create
#include "gpu/gpu_heap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"
#include "gpu/gpu.h"

// What a file with an IPC handle holds.
struct ipc_file {
    char magic[8];
    uint64_t bytes;
    struct gpsh_cu_ipc_handle handle;
};
static const char IPC_MAGIC[8] = "gpshipc";

static struct gpsh_cu_allocation_properties properties(void)
{
    struct gpsh_cu_allocation_properties p = {
        .type = GPSH_CU_ALLOCATION_PINNED,
        .handle_types = GPSH_CU_HANDLE_POSIX_FD,
        .location = {GPSH_CU_LOCATION_DEVICE, gpsh_gpu.device}};
    p.flags.rdma_capable = gpsh_gpu.rdma_vmm != 0;
    return p;
}

static gpsh_cu_ptr device_address(const char *at)
{
    return (gpsh_cu_ptr)(uintptr_t)at;
}

// Maps an allocation at addresses that are reserved, readable and writable by this PE's GPU. Keeps
// no reference.
static gpsh_cu_result map_at(gpsh_cu_allocation allocation, gpsh_cu_ptr at, uint64_t bytes)
{
    struct gpsh_cu_access access = {{GPSH_CU_LOCATION_DEVICE, gpsh_gpu.device},
                                    GPSH_CU_ACCESS_READWRITE};
    gpsh_cu_result code = gpsh_cu.vmm_map(at, bytes, 0, allocation, 0);
    if (code)
        return code;
    code = gpsh_cu.vmm_access(at, bytes, &access, 1);
    if (code)
        gpsh_cu.vmm_unmap(at, bytes);
    return code;
}

// *room addresses, or `bytes` where there are not as many.
static gpsh_cu_result reserve(gpsh_cu_ptr *at, uint64_t bytes, uint64_t *room)
{
    gpsh_cu_result code = gpsh_cu.vmm_reserve(at, *room, 0, 0, 0);
    if (!code || *room == bytes)
        return code;
    gpsh_gpu_fail(code, "GPUSHMEM_HEAP_MAX has no effect: addresses for %" PRIu64 " bytes", *room);
    GPSH_LOG(WARN, "heap", "%s", gpsh_last_error());
    *room = bytes;
    return gpsh_cu.vmm_reserve(at, bytes, 0, 0, 0);
}

static gpsh_cu_result map(gpsh_cu_allocation allocation, uint64_t bytes, uint64_t *room,
                          char **base)
{
    gpsh_cu_ptr at = 0;
    gpsh_cu_result code = reserve(&at, bytes, room);
    if (code)
        return code;
    code = map_at(allocation, at, bytes);
    if (code)
        gpsh_cu.vmm_unreserve(at, *room);
    else
        *base = (char *)(uintptr_t)at;
    return code;
}

static int no_memory(gpsh_cu_result code, uint64_t bytes, int node_pes)
{
    size_t available = 0, total = 0;
    gpsh_cu.memory_info(&available, &total);
    if (code != GPSH_CU_OUT_OF_MEMORY)
        return gpsh_gpu_fail(code, "a heap of %" PRIu64 "M on %s", bytes >> 20, gpsh_gpu.name);
    return gpsh_fail(
        GPUSHMEM_ERR_NO_MEMORY,
        "GPUSHMEM_HEAP_SIZE=%" PRIu64 "M does not fit on %s at %s: %zuM of its %zuM are free "
        "(%d PEs on this node share its GPUs); lower it, or set GPUSHMEM_HEAP_KIND=host",
        bytes >> 20, gpsh_gpu.name, gpsh_gpu.pci, available >> 20, total >> 20, node_pes);
}

static int create_vmm(struct gpsh_gpu_heap *heap, int node_pes)
{
    const struct gpsh_cu_allocation_properties p = properties();
    size_t grain = 2 << 20;
    gpsh_cu.vmm_granularity(&grain, &p, GPSH_CU_GRANULARITY_RECOMMENDED);
    uint64_t asked = heap->bytes;
    heap->grain = grain;
    heap->bytes = (asked + grain - 1) / grain * grain;
    heap->room = (heap->room + grain - 1) / grain * grain;
    heap->room = heap->room > heap->bytes ? heap->room : heap->bytes;
    gpsh_cu_allocation allocation;
    gpsh_cu_result code = gpsh_cu.vmm_create(&allocation, heap->bytes, &p, 0);
    if (code)
        return no_memory(code, asked - heap->reserved, node_pes);
    int status = 0;
    code = map(allocation, heap->bytes, &heap->room, &heap->base);
    if (code)
        status = gpsh_gpu_fail(code, "mapping a heap of %" PRIu64 " bytes on %s", heap->bytes,
                               gpsh_gpu.name);
    if (!status) {
        code = gpsh_cu.vmm_export(&heap->fd, allocation, GPSH_CU_HANDLE_POSIX_FD, 0);
        if (code)
            status = gpsh_gpu_fail(code, "exporting the heap on %s to the node's other PEs",
                                   gpsh_gpu.name);
    }
    gpsh_cu.vmm_release(allocation); // the mapping and the descriptor hold it
    return status;
}

static int create_ipc(struct gpsh_gpu_heap *heap, int node_pes)
{
    gpsh_cu_ptr at = 0;
    heap->ipc = true;
    uint64_t asked = heap->bytes;
    heap->bytes = heap->room = (asked + (2 << 20) - 1) / (2 << 20) * (2 << 20);
    gpsh_cu_result code = gpsh_cu.memory_alloc(&at, heap->bytes);
    if (code)
        return no_memory(code, asked - heap->reserved, node_pes);
    heap->base = (char *)(uintptr_t)at;
    struct ipc_file file = {.bytes = heap->bytes};
    memcpy(file.magic, IPC_MAGIC, sizeof file.magic);
    code = gpsh_cu.ipc_get(&file.handle, at);
    if (code)
        return gpsh_gpu_fail(
            code, "a CUDA IPC handle for the heap on %s; containers need --ipc=host for it",
            gpsh_gpu.name);
    heap->fd = memfd_create("gpushmem-ipc", MFD_CLOEXEC);
    if (heap->fd < 0 || write(heap->fd, &file, sizeof file) != (ssize_t)sizeof file)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "the heap's IPC handle could not be written (%s)",
                         strerror(errno));
    return 0;
}

// Of the whole piece; both stay -1 where the driver refuses.
static gpsh_cu_result export_dmabuf(const char *at, uint64_t bytes, int *dmabuf, int *pcie)
{
    int fd = -1;
    gpsh_cu_result code =
        gpsh_cu.range_handle(&fd, device_address(at), bytes, GPSH_CU_RANGE_DMA_BUF_FD, 0);
    if (code)
        return code;
    *dmabuf = fd;
    if (!gpsh_cu.range_handle(&fd, device_address(at), bytes, GPSH_CU_RANGE_DMA_BUF_FD,
                              GPSH_CU_RANGE_MAPPING_PCIE))
        *pcie = fd;
    return 0;
}

static void make_dmabuf(struct gpsh_gpu_heap *heap)
{
    if (!gpsh_cu.range_handle || !gpsh_gpu.dmabuf) {
        snprintf(heap->dmabuf_why, sizeof heap->dmabuf_why,
                 "the driver has no dma-buf for GPU memory");
        return;
    }
    gpsh_cu_result code =
        export_dmabuf(heap->base, heap->bytes, &heap->dmabuf_fd, &heap->dmabuf_pcie_fd);
    if (!code)
        return;
    gpsh_gpu_fail(code, "the driver refused a dma-buf of the heap");
    snprintf(heap->dmabuf_why, sizeof heap->dmabuf_why, "%.*s", (int)sizeof heap->dmabuf_why - 1,
             gpsh_last_error());
}

int gpsh_gpu_dmabuf(const void *memory, size_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), address = (uintptr_t)memory;
    uint64_t first = address / page * page;
    int fd = -1;
    if (!gpsh_cu.range_handle || !gpsh_gpu.dmabuf)
        return -1;
    // The driver takes whole pages only, and hands out GPU memory in larger ones.
    uint64_t whole = (address - first + bytes + page - 1) / page * page;
    GPSH_IN_GPU;
    gpsh_cu_result code = gpsh_cu.range_handle(&fd, first, whole, GPSH_CU_RANGE_DMA_BUF_FD, 0);
    return code ? -1 : fd;
}

// Whole pages of the GPU, of which nothing else is: the driver exports no less.
static size_t whole_gpu_pages(size_t bytes)
{
    const size_t page = (size_t)2 << 20;
    return (bytes + page - 1) / page * page;
}

int gpsh_gpu_shared_alloc(size_t bytes, void **memory, int *dmabuf_fd)
{
    *memory = gpsh_device_memory_gpu.device_alloc(whole_gpu_pages(bytes));
    if (!*memory)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no %zu bytes of GPU memory for kernels' queues",
                         bytes);
    *dmabuf_fd = gpsh_gpu_dmabuf(*memory, whole_gpu_pages(bytes));
    if (*dmabuf_fd >= 0)
        return 0;
    gpsh_device_memory_gpu.device_free(*memory, whole_gpu_pages(bytes));
    return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED, "the driver has no dma-buf for GPU memory");
}

void gpsh_gpu_shared_free(void *memory, size_t bytes, int dmabuf_fd)
{
    close(dmabuf_fd);
    gpsh_device_memory_gpu.device_free(memory, whole_gpu_pages(bytes));
}

static struct gpsh_gpu_heap nothing_yet(uint64_t bytes, uint64_t reserved, uint64_t room)
{
    return (struct gpsh_gpu_heap){.bytes = bytes,
                                  .reserved = reserved,
                                  .room = room,
                                  .fd = -1,
                                  .dmabuf_fd = -1,
                                  .dmabuf_pcie_fd = -1};
}

// Other threads ask whether a word is in the heap.
static void note_heap(const struct gpsh_gpu_heap *heap)
{
    gpsh_gpu.heap = heap->base;
    __atomic_store_n(&gpsh_gpu.heap_bytes, heap->base ? heap->bytes : 0, __ATOMIC_RELAXED);
}

int gpsh_gpu_heap_create(struct gpsh_gpu_heap *heap, uint64_t bytes, uint64_t reserved,
                         uint64_t room, int wish, int node_pes)
{
    *heap = nothing_yet(bytes, reserved, room);
    bool can_vmm = gpsh_gpu.vmm && gpsh_gpu.posix_fd;
    if (wish == GPSH_EXPORT_VMM && !can_vmm)
        return gpsh_fail(
            GPUSHMEM_ERR_UNSUPPORTED,
            "GPUSHMEM_TEST_HEAP_EXPORT=vmm: %s has no file descriptors for VMM memory; set it "
            "to auto",
            gpsh_gpu.name);
    GPSH_IN_GPU;
    bool vmm = wish != GPSH_EXPORT_IPC && can_vmm;
    int status = vmm ? create_vmm(heap, node_pes) : create_ipc(heap, node_pes);
    if (status == GPUSHMEM_ERR_CUDA && vmm && wish == GPSH_EXPORT_AUTO) {
        GPSH_LOG(INFO, "heap", "%s; CUDA IPC is used instead", gpsh_last_error());
        gpsh_gpu_heap_destroy(heap);
        *heap = nothing_yet(bytes, reserved, room);
        status = create_ipc(heap, node_pes);
    }
    if (!status) // also the words of the device barrier at its end
        status = gpsh_gpu_fill(heap->base, 0, heap->bytes);
    if (!status)
        make_dmabuf(heap);
    else
        gpsh_gpu_heap_destroy(heap);
    note_heap(heap);
    return status;
}

static void close_all(int fd, int dmabuf_fd, int dmabuf_pcie_fd)
{
    const int fds[] = {dmabuf_fd, dmabuf_pcie_fd, fd};
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

void gpsh_gpu_heap_destroy(struct gpsh_gpu_heap *heap)
{
    GPSH_IN_GPU;
    while (heap->n_added)
        gpsh_gpu_heap_shrink(heap);
    close_all(heap->fd, heap->dmabuf_fd, heap->dmabuf_pcie_fd);
    if (heap->base && heap->ipc)
        gpsh_cu.memory_free(device_address(heap->base));
    else
        gpsh_gpu_heap_unmap(heap->base, heap->bytes, heap->room);
    *heap = nothing_yet(0, 0, 0);
}

// ---- Growing ----

static int no_more(gpsh_cu_result code, uint64_t bytes)
{
    size_t available = 0, total = 0;
    gpsh_cu.memory_info(&available, &total);
    if (code != GPSH_CU_OUT_OF_MEMORY)
        return gpsh_gpu_fail(code, "%" PRIu64 "M more on %s", bytes >> 20, gpsh_gpu.name);
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                     "%" PRIu64
                     "M more do not fit on %s at %s: %zuM of its %zuM are free; free some "
                     "of it, or allocate less",
                     bytes >> 20, gpsh_gpu.name, gpsh_gpu.pci, available >> 20, total >> 20);
}

// Maps it where the heap ends, and exports it.
static int place_piece(struct gpsh_gpu_piece *piece, char *at, gpsh_cu_allocation allocation)
{
    gpsh_cu_result code = map_at(allocation, device_address(at), piece->bytes);
    if (code)
        return gpsh_gpu_fail(code, "mapping %" PRIu64 "M more on %s", piece->bytes >> 20,
                             gpsh_gpu.name);
    code = gpsh_cu.vmm_export(&piece->fd, allocation, GPSH_CU_HANDLE_POSIX_FD, 0);
    if (!code)
        return 0;
    gpsh_cu.vmm_unmap(device_address(at), piece->bytes);
    if (piece->adopted && code != GPSH_CU_OUT_OF_MEMORY)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "the driver does not export it (error %d); make it by cuMemCreate with "
                         "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR",
                         code);
    return gpsh_gpu_fail(code, "exporting %" PRIu64 "M more on %s", piece->bytes >> 20,
                         gpsh_gpu.name);
}

static int create_piece(struct gpsh_gpu_piece *piece, char *at)
{
    const struct gpsh_cu_allocation_properties p = properties();
    gpsh_cu_allocation allocation;
    gpsh_cu_result code = gpsh_cu.vmm_create(&allocation, piece->bytes, &p, 0);
    if (code)
        return no_more(code, piece->bytes);
    int status = place_piece(piece, at, allocation);
    gpsh_cu.vmm_release(allocation); // as of the first piece
    return status;
}

// The same physical memory at one more address.
static int adopt_piece(struct gpsh_gpu_piece *piece, char *at)
{
    gpsh_cu_allocation allocation;
    void *program = (void *)(uintptr_t)piece->adopted;
    gpsh_cu_result code =
        gpsh_cu.vmm_retain ? gpsh_cu.vmm_retain(&allocation, program) : GPSH_CU_NOT_SUPPORTED;
    if (code)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "it is no memory of cuMemCreate (error %d), and no other can become "
                         "symmetric; allocate it by cuMemCreate",
                         code);
    int status = place_piece(piece, at, allocation);
    gpsh_cu.vmm_release(allocation);
    return status;
}

// `adopted` NULL: with memory of its own, zeroed.
static int add_piece(struct gpsh_gpu_heap *heap, uint64_t bytes, const char *adopted)
{
    struct gpsh_gpu_piece *piece = &heap->added[heap->n_added];
    char *at = heap->base + heap->bytes;
    *piece = (struct gpsh_gpu_piece){.offset = heap->bytes,
                                     .bytes = bytes,
                                     .adopted = adopted,
                                     .fd = -1,
                                     .dmabuf_fd = -1,
                                     .dmabuf_pcie_fd = -1};
    int status = adopted ? adopt_piece(piece, at) : create_piece(piece, at);
    if (status)
        return status;
    heap->bytes += bytes;
    heap->n_added++;
    status = adopted ? 0 : gpsh_gpu_fill(at, 0, bytes);
    if (status)
        gpsh_gpu_heap_shrink(heap);
    else if (heap->dmabuf_fd >= 0) // else NICs do without
        (void)export_dmabuf(at, bytes, &piece->dmabuf_fd, &piece->dmabuf_pcie_fd);
    return status;
}

static int grow_by(struct gpsh_gpu_heap *heap, uint64_t bytes, const char *adopted)
{
    if (heap->n_added == GPSH_GPU_PIECES)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "the heap was added to %d times, and no more can be; begin with a larger "
                         "GPUSHMEM_HEAP_SIZE",
                         heap->n_added);
    if (bytes > heap->room - heap->bytes)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "the heap has %" PRIu64 " bytes, and addresses for %" PRIu64
                         "; raise GPUSHMEM_HEAP_MAX",
                         heap->bytes, heap->room);
    GPSH_IN_GPU;
    int status = add_piece(heap, bytes, adopted);
    note_heap(heap);
    return status;
}

int gpsh_gpu_heap_grow(struct gpsh_gpu_heap *heap, uint64_t bytes)
{
    return grow_by(heap, bytes, NULL);
}

// One handle maps all of its allocation, or nothing.
static int check_adoptable(const struct gpsh_gpu_heap *heap, const char *buffer, uint64_t bytes)
{
    char *base = NULL;
    size_t whole = 0;
    int ordinal = -1;
    gpsh_cu.pointer_attribute(&ordinal, GPSH_CU_POINTER_ORDINAL, device_address(buffer));
    if (ordinal != gpsh_gpu.device)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "it is on GPU %d, and the heap on GPU %d; allocate it there", ordinal,
                         gpsh_gpu.device);
    if (!gpsh_gpu_allocation(buffer, &base, &whole) || base != buffer || whole != bytes)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "it is not exactly one allocation, which has %zu bytes at %p; register "
                         "each whole one",
                         whole, (void *)base);
    if (bytes % heap->grain)
        return gpsh_fail(GPUSHMEM_ERR_ALIGNMENT,
                         "%" PRIu64 " bytes are no multiple of %" PRIu64
                         ", this GPU's granularity; make it of such a size",
                         bytes, heap->grain);
    for (int i = 0; i < heap->n_added; i++)
        if (heap->added[i].adopted == buffer)
            return gpsh_fail(
                GPUSHMEM_ERR_INVALID,
                "it is symmetric already; unregister it before, or use the address that it got");
    return 0;
}

int gpsh_gpu_heap_adopt(struct gpsh_gpu_heap *heap, const char *buffer, uint64_t bytes)
{
    int status = check_adoptable(heap, buffer, bytes);
    return status ? status : grow_by(heap, bytes, buffer);
}

void gpsh_gpu_heap_return(struct gpsh_gpu_heap *heap, struct gpsh_gpu_piece *piece)
{
    if (piece->fd < 0) // it has been returned
        return;
    close_all(piece->fd, piece->dmabuf_fd, piece->dmabuf_pcie_fd);
    piece->fd = piece->dmabuf_fd = piece->dmabuf_pcie_fd = -1;
    piece->adopted = NULL;
    gpsh_gpu_piece_unmap(heap->base + piece->offset, piece->bytes);
}

void gpsh_gpu_heap_shrink(struct gpsh_gpu_heap *heap)
{
    struct gpsh_gpu_piece *piece = &heap->added[--heap->n_added];
    heap->bytes = piece->offset;
    note_heap(heap);
    gpsh_gpu_heap_return(heap, piece);
}

// ---- What peers handed over ----

static int map_ipc(int fd, uint64_t bytes, int pe, char **base)
{
    struct ipc_file file;
    if (pread(fd, &file, sizeof file, 0) != (ssize_t)sizeof file ||
        memcmp(file.magic, IPC_MAGIC, sizeof file.magic) != 0 || file.bytes != bytes)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d handed over a file that is no GPU heap of %" PRIu64 " bytes", pe,
                         bytes);
    gpsh_cu_ptr at = 0;
    gpsh_cu_result code = gpsh_cu.ipc_open(&at, file.handle, GPSH_CU_IPC_LAZY_PEER_ACCESS);
    if (code) {
        gpsh_gpu_fail(code, "GPU %s cannot map PE %d's heap by CUDA IPC", gpsh_gpu.pci, pe);
        return GPUSHMEM_ERR_UNREACHABLE;
    }
    *base = (char *)(uintptr_t)at;
    return 0;
}

static int map_vmm(int fd, uint64_t bytes, uint64_t *room, int pe, char **base)
{
    gpsh_cu_allocation allocation;
    gpsh_cu_result code =
        gpsh_cu.vmm_import(&allocation, (void *)(intptr_t)fd, GPSH_CU_HANDLE_POSIX_FD);
    if (!code) {
        code = map(allocation, bytes, room, base);
        gpsh_cu.vmm_release(allocation);
    }
    if (!code)
        return 0;
    gpsh_gpu_fail(code, "GPU %s cannot map PE %d's heap", gpsh_gpu.pci, pe);
    return GPUSHMEM_ERR_UNREACHABLE;
}

int gpsh_gpu_piece_map(int fd, uint64_t bytes, int pe, char *at)
{
    gpsh_cu_allocation allocation;
    GPSH_IN_GPU;
    gpsh_cu_result code =
        gpsh_cu.vmm_import(&allocation, (void *)(intptr_t)fd, GPSH_CU_HANDLE_POSIX_FD);
    if (!code) {
        code = map_at(allocation, device_address(at), bytes);
        gpsh_cu.vmm_release(allocation);
    }
    return code ? gpsh_gpu_fail(code, "GPU %s cannot map %" PRIu64 "M more of PE %d's heap",
                                gpsh_gpu.pci, bytes >> 20, pe)
                : 0;
}

void gpsh_gpu_piece_unmap(char *at, uint64_t bytes)
{
    GPSH_IN_GPU;
    gpsh_cu.vmm_unmap(device_address(at), bytes);
}

int gpsh_gpu_heap_map(int fd, uint64_t bytes, uint64_t *room, int pe, char **base)
{
    struct stat info;
    if (fstat(fd, &info))
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d handed over a descriptor that cannot be used (%s)", pe,
                         strerror(errno));
    GPSH_IN_GPU;
    // The driver's handles are no regular files; the one that holds an IPC handle is.
    bool ipc = S_ISREG(info.st_mode);
    *room = ipc ? bytes : *room;
    return ipc ? map_ipc(fd, bytes, pe, base) : map_vmm(fd, bytes, room, pe, base);
}

void gpsh_gpu_heap_unmap(char *base, uint64_t bytes, uint64_t room)
{
    if (!base)
        return;
    gpsh_cu_ptr at = device_address(base);
    GPSH_IN_GPU;
    // Only the exporter decides between VMM and IPC; the driver knows which of the two this address
    // is.
    if (gpsh_cu.vmm_unmap(at, bytes))
        gpsh_cu.ipc_close(at);
    else
        gpsh_cu.vmm_unreserve(at, room);
}
