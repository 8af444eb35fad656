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

// Reserves addresses for an allocation and maps it there, readable and writable by this PE's GPU.
// Keeps no reference.
static gpsh_cu_result map(gpsh_cu_allocation allocation, uint64_t bytes, char **base)
{
    struct gpsh_cu_access access = {{GPSH_CU_LOCATION_DEVICE, gpsh_gpu.device},
                                    GPSH_CU_ACCESS_READWRITE};
    gpsh_cu_ptr at = 0;
    gpsh_cu_result code = gpsh_cu.vmm_reserve(&at, bytes, 0, 0, 0);
    if (code)
        return code;
    code = gpsh_cu.vmm_map(at, bytes, 0, allocation, 0);
    if (code)
        goto err_unreserve;
    code = gpsh_cu.vmm_access(at, bytes, &access, 1);
    if (code)
        goto err_unmap;
    *base = (char *)(uintptr_t)at;
    return 0;
err_unmap:
    gpsh_cu.vmm_unmap(at, bytes);
err_unreserve:
    gpsh_cu.vmm_unreserve(at, bytes);
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
    heap->bytes = (asked + grain - 1) / grain * grain;
    gpsh_cu_allocation allocation;
    gpsh_cu_result code = gpsh_cu.vmm_create(&allocation, heap->bytes, &p, 0);
    if (code)
        return no_memory(code, asked - heap->reserved, node_pes);
    int status = 0;
    code = map(allocation, heap->bytes, &heap->base);
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
    heap->bytes = (asked + (2 << 20) - 1) / (2 << 20) * (2 << 20);
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

static void make_dmabuf(struct gpsh_gpu_heap *heap)
{
    if (!gpsh_cu.range_handle || !gpsh_gpu.dmabuf) {
        snprintf(heap->dmabuf_why, sizeof heap->dmabuf_why,
                 "the driver has no dma-buf for GPU memory");
        return;
    }
    int fd = -1;
    gpsh_cu_result code = gpsh_cu.range_handle(&fd, (gpsh_cu_ptr)(uintptr_t)heap->base, heap->bytes,
                                               GPSH_CU_RANGE_DMA_BUF_FD, 0);
    if (!code) {
        heap->dmabuf_fd = fd;
        if (!gpsh_cu.range_handle(&fd, (gpsh_cu_ptr)(uintptr_t)heap->base, heap->bytes,
                                  GPSH_CU_RANGE_DMA_BUF_FD, GPSH_CU_RANGE_MAPPING_PCIE))
            heap->dmabuf_pcie_fd = fd;
        return;
    }
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
    bool entered = gpsh_gpu_enter();
    gpsh_cu_result code = gpsh_cu.range_handle(&fd, first, whole, GPSH_CU_RANGE_DMA_BUF_FD, 0);
    gpsh_gpu_leave(entered);
    return code ? -1 : fd;
}

int gpsh_gpu_heap_create(struct gpsh_gpu_heap *heap, uint64_t bytes, uint64_t reserved, int wish,
                         int node_pes)
{
    *heap = (struct gpsh_gpu_heap){
        .bytes = bytes, .reserved = reserved, .fd = -1, .dmabuf_fd = -1, .dmabuf_pcie_fd = -1};
    bool can_vmm = gpsh_gpu.vmm && gpsh_gpu.posix_fd;
    if (wish == GPSH_EXPORT_VMM && !can_vmm)
        return gpsh_fail(
            GPUSHMEM_ERR_UNSUPPORTED,
            "GPUSHMEM_HEAP_EXPORT=vmm: %s has no file descriptors for VMM memory; set it "
            "to auto",
            gpsh_gpu.name);
    bool entered = gpsh_gpu_enter();
    bool vmm = wish != GPSH_EXPORT_IPC && can_vmm;
    int status = vmm ? create_vmm(heap, node_pes) : create_ipc(heap, node_pes);
    if (status == GPUSHMEM_ERR_CUDA && vmm && wish == GPSH_EXPORT_AUTO) {
        GPSH_LOG(INFO, "heap", "%s; CUDA IPC is used instead", gpsh_last_error());
        gpsh_gpu_heap_destroy(heap);
        *heap = (struct gpsh_gpu_heap){
            .bytes = bytes, .reserved = reserved, .fd = -1, .dmabuf_fd = -1, .dmabuf_pcie_fd = -1};
        status = create_ipc(heap, node_pes);
    }
    if (!status) // also the words of the device barrier at its end
        status = gpsh_gpu_zero(heap->base, heap->bytes);
    if (!status)
        make_dmabuf(heap);
    else
        gpsh_gpu_heap_destroy(heap);
    gpsh_gpu.heap = heap->base;
    gpsh_gpu.heap_bytes = heap->base ? heap->bytes : 0;
    gpsh_gpu_leave(entered);
    return status;
}

void gpsh_gpu_heap_destroy(struct gpsh_gpu_heap *heap)
{
    bool entered = gpsh_gpu_enter();
    if (heap->dmabuf_fd >= 0)
        close(heap->dmabuf_fd);
    if (heap->dmabuf_pcie_fd >= 0)
        close(heap->dmabuf_pcie_fd);
    if (heap->fd >= 0)
        close(heap->fd);
    if (heap->base && heap->ipc)
        gpsh_cu.memory_free((gpsh_cu_ptr)(uintptr_t)heap->base);
    else
        gpsh_gpu_heap_unmap(heap->base, heap->bytes);
    gpsh_gpu_leave(entered);
    *heap = (struct gpsh_gpu_heap){.fd = -1, .dmabuf_fd = -1, .dmabuf_pcie_fd = -1};
}

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

static int map_vmm(int fd, uint64_t bytes, int pe, char **base)
{
    gpsh_cu_allocation allocation;
    gpsh_cu_result code =
        gpsh_cu.vmm_import(&allocation, (void *)(intptr_t)fd, GPSH_CU_HANDLE_POSIX_FD);
    if (!code) {
        code = map(allocation, bytes, base);
        gpsh_cu.vmm_release(allocation);
    }
    if (!code)
        return 0;
    gpsh_gpu_fail(code, "GPU %s cannot map PE %d's heap", gpsh_gpu.pci, pe);
    return GPUSHMEM_ERR_UNREACHABLE;
}

int gpsh_gpu_heap_map(int fd, uint64_t bytes, int pe, char **base)
{
    struct stat info;
    if (fstat(fd, &info))
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d handed over a descriptor that cannot be used (%s)", pe,
                         strerror(errno));
    bool entered = gpsh_gpu_enter();
    // The driver's handles are no regular files; the one that holds an IPC handle is.
    int status =
        S_ISREG(info.st_mode) ? map_ipc(fd, bytes, pe, base) : map_vmm(fd, bytes, pe, base);
    gpsh_gpu_leave(entered);
    return status;
}

void gpsh_gpu_heap_unmap(char *base, uint64_t bytes)
{
    if (!base)
        return;
    gpsh_cu_ptr at = (gpsh_cu_ptr)(uintptr_t)base;
    bool entered = gpsh_gpu_enter();
    // Only the exporter decides between VMM and IPC; the driver knows which of the two this address
    // is.
    if (gpsh_cu.vmm_unmap(at, bytes))
        gpsh_cu.ipc_close(at);
    else
        gpsh_cu.vmm_unreserve(at, bytes);
    gpsh_gpu_leave(entered);
}
