// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/gpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/hooks.h"
#include "core/log.h"
#include "core/thread.h"
#include "gpu/gpu_call.h"

struct gpsh_gpu gpsh_gpu;

// One stream for copies that the caller waits for. Non-blocking: kernels in the program's default
// stream do not hold it up.
static struct {
    pthread_mutex_t lock;
    gpsh_cu_stream stream;
} copies = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct gpsh_hooks unloaders;

void gpsh_gpu_on_close(void (*unload)(void))
{
    gpsh_hooks_add(&unloaders, unload);
}

struct gpsh_gpu_entry gpsh_gpu_enter(void)
{
    struct gpsh_gpu_entry entry = {.capture_mode = GPSH_CU_CAPTURE_MODE_RELAXED};
    gpsh_cu_context current = NULL;
    gpsh_gpu_call_begin();
    if (gpsh_cu.context_current(&current) || current != gpsh_gpu.context)
        entry.pushed = !gpsh_cu.context_push(gpsh_gpu.context);
    gpsh_cu.capture_mode(&entry.capture_mode);
    return entry;
}

void gpsh_gpu_leave(struct gpsh_gpu_entry *entry)
{
    gpsh_cu_context ours;
    gpsh_cu.capture_mode(&entry->capture_mode);
    if (entry->pushed)
        gpsh_cu.context_pop(&ours);
    gpsh_gpu_call_end();
}

static int attribute(int which)
{
    int value = 0;
    gpsh_cu.device_attribute(&value, which, gpsh_gpu.device);
    return value;
}

static void describe(void)
{
    struct gpsh_gpu *gpu = &gpsh_gpu;
    gpsh_cu.device_name(gpu->name, sizeof gpu->name, gpu->device);
    gpsh_cu.device_pci(gpu->pci, sizeof gpu->pci, gpu->device);
    gpsh_cu.device_uuid(&gpu->uuid, gpu->device);
    gpu->vmm = attribute(GPSH_CU_ATTRIBUTE_VMM);
    gpu->posix_fd = attribute(GPSH_CU_ATTRIBUTE_POSIX_FD);
    gpu->rdma_vmm = attribute(GPSH_CU_ATTRIBUTE_RDMA_WITH_VMM);
    gpu->rdma = attribute(GPSH_CU_ATTRIBUTE_RDMA);
    gpu->dmabuf = attribute(GPSH_CU_ATTRIBUTE_DMA_BUF);
    gpu->writes_ordering = attribute(GPSH_CU_ATTRIBUTE_RDMA_WRITES_ORDERING);
    gpu->pageable = attribute(GPSH_CU_ATTRIBUTE_PAGEABLE_ACCESS);
    gpu->flush_options = attribute(GPSH_CU_ATTRIBUTE_RDMA_FLUSH_OPTIONS);
    gpu->reduction = gpsh_cu.memory_ops && attribute(GPSH_CU_ATTRIBUTE_ATOMIC_REDUCTION);
}

// The program called cudaSetDevice and used the GPU, or runs in a context of its own: that is the
// GPU it means.
static int adopt(gpsh_cu_context context)
{
    gpsh_cu_result code = gpsh_cu.context_device(&gpsh_gpu.device);
    if (code)
        return gpsh_gpu_fail(code, "the program's current CUDA context cannot be used");
    gpsh_gpu.context = context;
    gpsh_gpu.chosen_by_program = true;
    return 0;
}

// A cudaMemcpy of pageable memory to the GPU may return before the GPU has all of it, and
// cudaMemset before anything is set: what this PE sent then would be old. With this flag the
// program's synchronous calls are complete when they return, for memory of any kind. It stays after
// gpushmem_finalize: the context may be the program's, and in use.
static void make_copies_complete(void)
{
    unsigned flags = 0;
    if (!gpsh_cu.context_set_flags || gpsh_cu.context_flags(&flags)) {
        GPSH_LOG(INFO, "gpu",
                 "this driver is older than CUDA 12.1: call cudaDeviceSynchronize between a "
                 "cudaMemcpy or cudaMemset of symmetric memory and a put of it");
        return;
    }
    gpsh_cu_result code = 0;
    if (!(flags & GPSH_CU_CONTEXT_SYNC_MEMOPS))
        code = gpsh_cu.context_set_flags(flags | GPSH_CU_CONTEXT_SYNC_MEMOPS);
    if (code)
        GPSH_LOG(WARN, "gpu",
                 "CU_CTX_SYNC_MEMOPS cannot be set (CUDA error %d): call cudaDeviceSynchronize "
                 "between a cudaMemcpy or cudaMemset of symmetric memory and a put of it",
                 code);
}

static int preferred = -1;

void gpsh_gpu_prefer(int ordinal)
{
    preferred = ordinal;
}

static int choose(int node_pe)
{
    int count = 0;
    gpsh_cu_result code = gpsh_cu.device_count(&count);
    if (code || count < 1)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "the CUDA driver sees no GPU; is CUDA_VISIBLE_DEVICES set to nothing?");
    if (preferred >= count)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "the program asks for GPU %d; this process sees GPUs 0 to %d", preferred,
                         count - 1);
    gpsh_gpu.ordinal = preferred >= 0 ? preferred : node_pe % count;
    code = gpsh_cu.device_get(&gpsh_gpu.device, gpsh_gpu.ordinal);
    if (!code)
        code = gpsh_cu.primary_retain(&gpsh_gpu.context, gpsh_gpu.device);
    if (code)
        return gpsh_gpu_fail(
            code, "GPU %d cannot be used; is it in exclusive mode and taken by another process?",
            gpsh_gpu.ordinal);
    gpsh_cu.context_set(gpsh_gpu.context);
    return 0;
}

static int open_context(void *node_pe)
{
    int status = gpsh_gpu_load_driver();
    if (status)
        return status;
    gpsh_gpu = (struct gpsh_gpu){.ordinal = -1};
    gpsh_cu_context current = NULL;
    gpsh_cu.context_current(&current);
    return current && preferred < 0 ? adopt(current) : choose(*(int *)node_pe);
}

int gpsh_gpu_open(int node_pe)
{
    // The driver starts threads of its own when it is loaded and when a context is made.
    int status = gpsh_without_signals(open_context, &node_pe);
    if (status)
        return status;
    describe();
    GPSH_IN_GPU;
    make_copies_complete();
    gpsh_cu_result code = gpsh_cu.stream_create(&copies.stream, GPSH_CU_STREAM_NON_BLOCKING);
    if (code) {
        status = gpsh_gpu_fail(code, "no stream on GPU %s", gpsh_gpu.pci);
        gpsh_gpu_close();
        return status;
    }
    GPSH_LOG(INFO, "gpu", "%s at %s, %s; driver for CUDA %d.%d", gpsh_gpu.name, gpsh_gpu.pci,
             gpsh_gpu.chosen_by_program ? "the program's choice"
                                        : "by the PE's number on this node",
             gpsh_gpu_driver_version() / 1000, gpsh_gpu_driver_version() % 1000 / 10);
    return 0;
}

static int load_driver(void *unused)
{
    (void)unused;
    return gpsh_gpu_load_driver();
}

bool gpsh_gpu_would_choose(void)
{
    gpsh_cu_context current = NULL;
    int count = 0;
    if (gpsh_without_signals(load_driver, NULL)) {
        gpsh_clear_error();
        return false;
    }
    return preferred < 0 && !gpsh_cu.device_count(&count) && count > 0 &&
           !gpsh_cu.context_current(&current) && !current;
}

uint64_t gpsh_gpu_room(int node_pes)
{
    size_t available = 0, total = 0;
    int devices = 0;
    GPSH_IN_GPU;
    gpsh_cu_result code = gpsh_cu.memory_info(&available, &total);
    if (code || gpsh_cu.device_count(&devices) || devices < 1)
        return UINT64_MAX;
    return available / (uint64_t)((node_pes + devices - 1) / devices);
}

void gpsh_gpu_close(void)
{
    if (!gpsh_gpu.context)
        return;
    GPSH_IN_GPU;
    for (int i = 0; i < GPSH_HOOKS && unloaders.list[i]; i++)
        unloaders.list[i]();
    if (copies.stream)
        gpsh_cu.stream_destroy(copies.stream);
    copies.stream = NULL;
    gpsh_gpu_forget_calls();
    // A primary context stays retained: the runtime API, PyTorch or our own next init may find it
    // current in some thread.
    gpsh_gpu = (struct gpsh_gpu){.ordinal = -1};
}

static int finish(gpsh_cu_result code, const char *what, const void *where, size_t bytes)
{
    if (!code)
        code = gpsh_cu.stream_sync(copies.stream);
    return code ? gpsh_gpu_fail(code, "%s of %zu bytes at %p", what, bytes, where) : 0;
}

int gpsh_gpu_copy(void *to, const void *from, size_t bytes)
{
    if (!bytes)
        return 0;
    GPSH_IN_GPU;
    pthread_mutex_lock(&copies.lock);
    gpsh_cu_result code = gpsh_cu.copy_any((gpsh_cu_ptr)(uintptr_t)to, (gpsh_cu_ptr)(uintptr_t)from,
                                           bytes, copies.stream);
    int status = finish(code, "copy", to, bytes);
    pthread_mutex_unlock(&copies.lock);
    return status;
}

int gpsh_gpu_fill(void *memory, int byte, size_t bytes)
{
    if (!bytes)
        return 0;
    GPSH_IN_GPU;
    pthread_mutex_lock(&copies.lock);
    gpsh_cu_result code =
        gpsh_cu.fill8((gpsh_cu_ptr)(uintptr_t)memory, (unsigned char)byte, bytes, copies.stream);
    int status = finish(code, "fill", memory, bytes);
    pthread_mutex_unlock(&copies.lock);
    return status;
}

bool gpsh_gpu_can_flush(void)
{
    return gpsh_cu.flush_writes && gpsh_gpu.flush_options & GPSH_CU_FLUSH_OPTION_HOST;
}

bool gpsh_gpu_needs_flush(void)
{
    if (gpsh_gpu.writes_ordering >= GPSH_CU_WRITES_ORDERED_TO_OWNER)
        return false;
    bool can = gpsh_gpu_can_flush();
    GPSH_LOG(WARN, "gpu",
             "%s does not order what NICs write to it: %s kernels that wait for a signal from "
             "another node may see it "
             "before its data. GPUSHMEM_HEAP_KIND=host is safe",
             gpsh_gpu.name,
             can ? "the host's waits flush, but" : "and has no flush, so the host and");
    return can;
}

void gpsh_gpu_flush(void)
{
    GPSH_IN_GPU;
    gpsh_cu_result code =
        gpsh_cu.flush_writes(GPSH_CU_FLUSH_CURRENT_CONTEXT, GPSH_CU_FLUSH_TO_OWNER);
    if (code)
        gpsh_gpu_fail(code, "flushing what NICs wrote to %s", gpsh_gpu.name);
}

bool gpsh_gpu_is_device_memory(const void *memory)
{
    unsigned type = 0; // stays so for memory CUDA knows nothing of
    gpsh_cu.pointer_attribute(&type, GPSH_CU_POINTER_MEMORY_TYPE, (gpsh_cu_ptr)(uintptr_t)memory);
    return type == GPSH_CU_MEMORY_DEVICE;
}

bool gpsh_gpu_allocation(const void *address, char **base, size_t *bytes)
{
    gpsh_cu_ptr pointer = (gpsh_cu_ptr)(uintptr_t)address, start = 0;
    unsigned type = 0;
    GPSH_IN_GPU;
    gpsh_cu_result code = gpsh_cu.pointer_attribute(&type, GPSH_CU_POINTER_MEMORY_TYPE, pointer);
    if (!code && type == GPSH_CU_MEMORY_DEVICE)
        code = gpsh_cu.address_range(&start, bytes, pointer);
    else if (!code)
        code = gpsh_cu.pointer_attribute(&start, GPSH_CU_POINTER_RANGE_START, pointer);
    if (!code && type != GPSH_CU_MEMORY_DEVICE)
        code = gpsh_cu.pointer_attribute(bytes, GPSH_CU_POINTER_RANGE_SIZE, pointer);
    bool is_variable = code && type == GPSH_CU_MEMORY_DEVICE;
    if (is_variable) { // of a module: the driver knows the address, and may not know its allocation
        start = pointer;
        *bytes = 4096 - pointer % 4096;
    }
    *base = (char *)(uintptr_t)start;
    return (!code || is_variable) && start;
}

// ---- Memory for rings ----

static void *host_alloc(size_t bytes)
{
    void *memory = NULL;
    GPSH_IN_GPU;
    if (!gpsh_cu.host_alloc(&memory, bytes, GPSH_CU_HOST_PORTABLE | GPSH_CU_HOST_DEVICEMAP))
        memset(memory, 0, bytes);
    return memory;
}

static void host_free(void *memory, size_t bytes)
{
    GPSH_IN_GPU;
    gpsh_cu.host_free(memory);
}

static void device_free(void *memory, size_t bytes)
{
    GPSH_IN_GPU;
    gpsh_cu.memory_free((gpsh_cu_ptr)(uintptr_t)memory);
}

static void *device_alloc(size_t bytes)
{
    gpsh_cu_ptr memory = 0;
    GPSH_IN_GPU;
    if (gpsh_cu.memory_alloc(&memory, bytes))
        return NULL;
    if (gpsh_gpu_fill((void *)(uintptr_t)memory, 0, bytes)) {
        device_free((void *)(uintptr_t)memory, bytes);
        return NULL;
    }
    return (void *)(uintptr_t)memory;
}

static uintptr_t page_of(const void *memory)
{
    return (uintptr_t)memory / 4096 * 4096;
}

static gpsh_cu_result register_pages(uintptr_t first, size_t bytes, bool registers)
{
    const unsigned flags = GPSH_CU_HOST_PORTABLE | GPSH_CU_HOST_DEVICEMAP;
    gpsh_cu_result code = gpsh_cu.host_register((void *)first, bytes,
                                                registers ? flags | GPSH_CU_HOST_IOMEMORY : flags);
    // a device that exists in software only has registers in ordinary memory
    if (code && code != GPSH_CU_ALREADY_REGISTERED && registers)
        code = gpsh_cu.host_register((void *)first, bytes, flags);
    return code;
}

static int map(void *memory, size_t bytes, bool registers, bool *mapped)
{
    uintptr_t first = page_of(memory), end = page_of((char *)memory + bytes + 4095);
    *mapped = false;
    if (!gpsh_cu.host_register)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "this CUDA driver cannot map memory that is there already");
    GPSH_IN_GPU;
    gpsh_cu_result code = register_pages(first, end - first, registers);
    *mapped = !code;
    return code && code != GPSH_CU_ALREADY_REGISTERED
               ? gpsh_gpu_fail(code, "mapping %zu bytes of %s at %p", bytes,
                               registers ? "a NIC's registers" : "host memory", memory)
               : 0;
}

static void unmap(void *memory)
{
    GPSH_IN_GPU;
    gpsh_cu.host_unregister((void *)page_of(memory));
}

const struct gpsh_device_memory gpsh_device_memory_gpu = {
    .host_alloc = host_alloc,
    .host_free = host_free,
    .device_alloc = device_alloc,
    .device_free = device_free,
    .device_write = gpsh_gpu_copy,
    .device_read = gpsh_gpu_copy,
    .map = map,
    .unmap = unmap,
    .cpu_threads = false,
};
