// SPDX-License-Identifier: BSD-3-Clause
// GPU memory: copies by the CUDA driver, which is used only if the program has loaded it. The few
// declarations needed are here, so that it compiles without the toolkit.
//
// Reads and writes are queued in one stream, in order, and waited for together. Each costs a call
// of the driver, except small aligned writes, of which one call (cuStreamBatchMemOp) takes as many
// as there are in a row, and reads in a row of memory that is in a row, too.
#define _GNU_SOURCE // RTLD_NOLOAD
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "softhca.h"

enum {
    MEMORY_TYPE = 2,
    DEVICE_ORDINAL = 9,
    MEMORY_IS_DEVICE = 2,
    STREAM_NON_BLOCKING = 1,
    HOST_PORTABLE = 1,
    CAPTURE_RELAXED = 2
};
enum { STORE_32 = 2, STORE_64 = 5 };
enum {
    POOL_BYTES = 4 << 20,
    READS = 1024,
    STORES = 128,    // in one call; with 256, its limit, the driver refused one now and then
    STORE_MOST = 64, // bytes of a write up to which stores are cheaper than a copy
    OWN = 64,
};

struct driver {
    int (*pointer_attribute)(void *value, int attribute, unsigned long long pointer);
    int (*context_get)(void **context);
    int (*context_set)(void *context);
    int (*primary_retain)(void **context, int device);
    int (*primary_release)(int device);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_wait)(void *stream);
    int (*copy)(unsigned long long to, unsigned long long from, size_t bytes, void *stream);
    int (*host_alloc)(void **memory, size_t bytes, unsigned flags);
    int (*host_free)(void *memory);
    int (*stores)(void *stream, unsigned n, const void *operations, unsigned flags);
    int (*capture_mode)(int *mode);
};

struct pending_read {
    void *to;
    const char *from; // in the pool
    size_t bytes;
};

// What cuStreamBatchMemOp takes: CUstreamBatchMemOpParams, of which a write uses these.
struct memory_operation {
    uint32_t operation, pad;
    uint64_t address, value;
    uint32_t flags, pad_too;
    uint64_t alias, unused;
};

struct shca_gpu {
    void *context, *stream;
    int ordinal;
    bool stores; // the driver takes stores in batches
    bool failed; // for good: the context is broken
    bool queued; // something, since the last finish
    char *pool;  // pinned: data on its way
    size_t pool_used;
    struct pending_read reads[READS];
    int n_reads;
    char *row_to; // reads not yet handed to the driver: one row in memory, and in the pool
    uint64_t row_from;
    size_t row_bytes;
    int row_first; // of `reads`
    struct memory_operation operations[STORES];
    uint64_t own[OWN]; // numbers of pieces of 2 MiB known to be this GPU's
    int n_operations;
};

static struct driver driver;

static bool find(void *library, const char *name, void *function)
{
    *(void **)function = dlsym(library, name);
    return *(void **)function;
}

// Looked for again until it is there: a program may load it late.
static bool driver_loaded(void)
{
    static atomic_bool ready;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (atomic_load(&ready))
        return true;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        return false;
    pthread_mutex_lock(&lock);
    bool found = find(library, "cuPointerGetAttribute", &driver.pointer_attribute) &&
                 find(library, "cuCtxGetCurrent", &driver.context_get) &&
                 find(library, "cuCtxSetCurrent", &driver.context_set) &&
                 find(library, "cuDevicePrimaryCtxRetain", &driver.primary_retain) &&
                 find(library, "cuDevicePrimaryCtxRelease_v2", &driver.primary_release) &&
                 find(library, "cuStreamCreate", &driver.stream_create) &&
                 find(library, "cuStreamDestroy_v2", &driver.stream_destroy) &&
                 find(library, "cuStreamSynchronize", &driver.stream_wait) &&
                 find(library, "cuMemcpyAsync", &driver.copy) &&
                 find(library, "cuMemHostAlloc", &driver.host_alloc) &&
                 find(library, "cuMemFreeHost", &driver.host_free);
    find(library, "cuStreamBatchMemOp_v2", &driver.stores); // CUDA 11.7
    find(library, "cuThreadExchangeStreamCaptureMode", &driver.capture_mode);
    atomic_store(&ready, found);
    pthread_mutex_unlock(&lock);
    return found;
}

bool shca_gpu_owns(const void *address, size_t bytes)
{
    unsigned type = 0;
    return driver_loaded() && !driver.pointer_attribute(&type, MEMORY_TYPE, (uintptr_t)address) &&
           type == MEMORY_IS_DEVICE;
}

static void release(struct shca_gpu *gpu)
{
    if (gpu->stream)
        driver.stream_destroy(gpu->stream);
    if (gpu->pool)
        driver.host_free(gpu->pool);
    if (gpu->context)
        driver.primary_release(gpu->ordinal);
    free(gpu);
}

// Whether a store in a batch arrives, tried on pinned memory; and a first copy, since a driver
// prepares much at the first time, for which it might wait for kernels later.
static bool try_stores(struct shca_gpu *gpu, uint64_t address)
{
    volatile uint64_t *word = (uint64_t *)(void *)gpu->pool;
    struct memory_operation store = {
        .operation = STORE_64, .address = (uintptr_t)gpu->pool, .value = 1};
    *word = 0;
    if (driver.stores && driver.stores(gpu->stream, 1, &store, 0))
        return false;
    if (driver.copy((uintptr_t)gpu->pool + 8, address, 1, gpu->stream) ||
        driver.stream_wait(gpu->stream))
        return false;
    return *word == 1;
}

static struct shca_gpu *gpu_new(uint64_t address)
{
    struct shca_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu)
        return NULL;
    if (driver.pointer_attribute(&gpu->ordinal, DEVICE_ORDINAL, address) ||
        driver.primary_retain(&gpu->context, gpu->ordinal) || driver.context_set(gpu->context) ||
        driver.stream_create(&gpu->stream, STREAM_NON_BLOCKING) ||
        driver.host_alloc((void **)&gpu->pool, POOL_BYTES, HOST_PORTABLE)) {
        release(gpu);
        return NULL;
    }
    gpu->stores = try_stores(gpu, address);
    if (!shca_settings.quiet)
        shca_say("memory of GPU %d: small writes go as %s", gpu->ordinal,
                 gpu->stores ? "stores, many in one call" : "copies");
    return gpu;
}

// Makes the engine of this device ready for that memory. A stream of its own, which waits for no
// other: a kernel that spins until this copy arrives must not hold it up. For the same reason
// nothing here is done by a kernel: it might find no place beside those that spin.
int shca_gpu_use(struct shca_device *device, uint64_t address)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void *before = NULL;
    pthread_mutex_lock(&lock);
    if (!device->gpu) {
        driver.context_get(&before);
        device->gpu = gpu_new(address);
        driver.context_set(before);
    }
    pthread_mutex_unlock(&lock);
    return device->gpu ? 0 : -1;
}

void shca_gpu_free(struct shca_device *device)
{
    void *before = NULL;
    if (!device->gpu)
        return;
    driver.context_get(&before);
    driver.context_set(device->gpu->context);
    release(device->gpu);
    driver.context_set(before);
    device->gpu = NULL;
}

// ---- The engine's thread only, but for shca_gpu_look ----

static _Thread_local void *current; // the context that this thread has by enter()

// The context is that thread's from the first use on. NULL: there is no GPU, or no use in going on.
static struct shca_gpu *enter(struct shca_device *device)
{
    struct shca_gpu *gpu = device->gpu;
    if (!gpu || gpu->failed)
        return NULL;
    if (current != gpu->context && driver.context_set(gpu->context))
        return NULL;
    // the program's captures of its own streams are no concern of this thread
    int mode = CAPTURE_RELAXED;
    if (!current && driver.capture_mode)
        driver.capture_mode(&mode);
    current = gpu->context;
    return gpu;
}

static int status_of(struct shca_gpu *gpu, int code, const char *call)
{
    gpu->queued = true;
    if (code && !gpu->failed)
        shca_say("memory of GPU %d: the driver says %d to %s, so nothing more is done with it",
                 gpu->ordinal, code, call);
    gpu->failed = gpu->failed || code;
    return code ? IBV_WC_GENERAL_ERR : IBV_WC_SUCCESS;
}

// One call for all small writes since the last other operation.
static int flush_stores(struct shca_gpu *gpu)
{
    int n = gpu->n_operations;
    gpu->n_operations = 0;
    if (!n)
        return IBV_WC_SUCCESS;
    int code = driver.stores(gpu->stream, (unsigned)n, gpu->operations, 0);
    if (code && !gpu->failed)
        shca_say("%d stores, the first to 0x%llx, were refused", n,
                 (unsigned long long)gpu->operations[0].address);
    return status_of(gpu, code, "stores");
}

static int flush_row(struct shca_gpu *gpu)
{
    size_t bytes = gpu->row_bytes;
    gpu->row_bytes = 0;
    if (!bytes)
        return IBV_WC_SUCCESS;
    int code = driver.copy((uintptr_t)gpu->row_to, gpu->row_from, bytes, gpu->stream);
    if (!code)
        return status_of(gpu, code, "a copy of reads in a row");
    // they may be of allocations that happen to be neighbours
    for (int i = gpu->row_first; i < gpu->n_reads; i++) {
        const struct pending_read *read = &gpu->reads[i];
        uint64_t from = gpu->row_from + (uint64_t)(read->from - gpu->row_to);
        code = driver.copy((uintptr_t)read->from, from, read->bytes, gpu->stream);
        if (status_of(gpu, code, "the copy of a read") != IBV_WC_SUCCESS)
            break;
    }
    return code ? IBV_WC_GENERAL_ERR : IBV_WC_SUCCESS;
}

// Of the two at most one holds something: whoever adds to one of them hands the other over first.
static int flush(struct shca_gpu *gpu)
{
    int row = flush_row(gpu), stores = flush_stores(gpu);
    return row == IBV_WC_SUCCESS ? stores : row;
}

int shca_gpu_submit(struct shca_device *device)
{
    return device->gpu ? flush(device->gpu) : IBV_WC_SUCCESS;
}

int shca_gpu_finish(struct shca_device *device)
{
    struct shca_gpu *gpu = device->gpu;
    if (!gpu || (!gpu->queued && !gpu->n_operations && !gpu->row_bytes))
        return gpu && gpu->failed ? IBV_WC_GENERAL_ERR : IBV_WC_SUCCESS;
    flush(gpu);
    status_of(gpu, driver.stream_wait(gpu->stream), "waiting for the stream");
    for (int i = 0; i < gpu->n_reads && !gpu->failed; i++)
        shca_copy(gpu->reads[i].to, gpu->reads[i].from, gpu->reads[i].bytes);
    gpu->n_reads = 0;
    gpu->pool_used = 0;
    gpu->queued = false;
    return gpu->failed ? IBV_WC_GENERAL_ERR : IBV_WC_SUCCESS;
}

static char *pool_take(struct shca_device *device, struct shca_gpu *gpu, size_t bytes)
{
    if (bytes > POOL_BYTES - gpu->pool_used && shca_gpu_finish(device) != IBV_WC_SUCCESS)
        return NULL;
    char *place = gpu->pool + gpu->pool_used;
    gpu->pool_used += (bytes + 7) & ~(size_t)7;
    return place;
}

// Whether the memory is this GPU's, so that its streams may store there; asked once for each piece
// of 2 MiB.
static bool is_own(struct shca_gpu *gpu, uint64_t address)
{
    uint64_t *known = &gpu->own[(address >> 21) % OWN];
    int ordinal = -1;
    if (*known == address >> 21)
        return true;
    if (driver.pointer_attribute(&ordinal, DEVICE_ORDINAL, address) || ordinal != gpu->ordinal)
        return false;
    *known = address >> 21;
    return true;
}

// A write of whole aligned words, as stores.
static int store(struct shca_gpu *gpu, uint64_t to, const char *from, size_t bytes)
{
    while (bytes) {
        bool wide = to % 8 == 0 && bytes >= 8;
        struct memory_operation *operation = &gpu->operations[gpu->n_operations++];
        *operation =
            (struct memory_operation){.operation = wide ? STORE_64 : STORE_32, .address = to};
        // little endian: a value of 4 bytes is the lower half
        memcpy(&operation->value, from, wide ? 8 : 4);
        to += wide ? 8 : 4;
        from += wide ? 8 : 4;
        bytes -= wide ? 8 : 4;
        if (gpu->n_operations == STORES && flush_stores(gpu) != IBV_WC_SUCCESS)
            return IBV_WC_GENERAL_ERR;
    }
    return IBV_WC_SUCCESS;
}

int shca_gpu_write(struct shca_device *device, void *to, const void *from, size_t bytes)
{
    struct shca_gpu *gpu = enter(device);
    if (!gpu)
        return IBV_WC_GENERAL_ERR;
    if (flush_row(gpu) != IBV_WC_SUCCESS)
        return IBV_WC_GENERAL_ERR;
    if (gpu->stores && bytes <= STORE_MOST && !(((uintptr_t)to | bytes) & 3) &&
        is_own(gpu, (uintptr_t)to))
        return store(gpu, (uintptr_t)to, from, bytes);
    char *place = pool_take(device, gpu, bytes);
    if (!place || flush_stores(gpu) != IBV_WC_SUCCESS)
        return IBV_WC_GENERAL_ERR;
    memcpy(place, from, bytes);
    return status_of(gpu, driver.copy((uintptr_t)to, (uintptr_t)place, bytes, gpu->stream),
                     "the copy of a write");
}

int shca_gpu_read(struct shca_device *device, void *to, const void *from, size_t bytes)
{
    struct shca_gpu *gpu = enter(device);
    if (!gpu || (gpu->n_reads == READS && shca_gpu_finish(device) != IBV_WC_SUCCESS))
        return IBV_WC_GENERAL_ERR;
    char *place = pool_take(device, gpu, bytes);
    if (!place || flush_stores(gpu) != IBV_WC_SUCCESS)
        return IBV_WC_GENERAL_ERR;
    bool next = gpu->row_bytes && place == gpu->row_to + gpu->row_bytes &&
                (uintptr_t)from == gpu->row_from + gpu->row_bytes;
    if (!next && flush_row(gpu) != IBV_WC_SUCCESS)
        return IBV_WC_GENERAL_ERR;
    if (!next) {
        gpu->row_to = place;
        gpu->row_from = (uintptr_t)from;
        gpu->row_first = gpu->n_reads;
    }
    gpu->reads[gpu->n_reads++] = (struct pending_read){to, place, bytes};
    gpu->row_bytes += bytes;
    return IBV_WC_SUCCESS;
}

int shca_gpu_copy(struct shca_device *device, void *to, const void *from, size_t bytes)
{
    struct shca_gpu *gpu = enter(device);
    if (!gpu || flush(gpu) != IBV_WC_SUCCESS)
        return IBV_WC_GENERAL_ERR;
    status_of(gpu, driver.copy((uintptr_t)to, (uintptr_t)from, bytes, gpu->stream),
              "a copy within the GPU");
    return shca_gpu_finish(device);
}

// The last 8 bytes are not seen before the rest, by kernels that run. The driver promises it of the
// stores of a batch, each of which comes with a fence of the system before it (cuStreamWriteValue32
// without its flag NO_MEMORY_BARRIER). A copy has no order within: where it is taken instead, the
// last word is one of its own, and begins when the rest is complete.
int shca_gpu_publish(struct shca_device *device, void *to, const void *from, size_t bytes)
{
    enum { LAST = 8 };
    struct shca_gpu *gpu = device->gpu;
    bool by_stores = gpu && gpu->stores && bytes <= STORE_MOST && is_own(gpu, (uintptr_t)to);
    size_t rest = by_stores ? 0 : bytes - LAST;
    int status = rest ? shca_gpu_write(device, to, from, rest) : IBV_WC_SUCCESS;
    if (rest && status == IBV_WC_SUCCESS)
        status = shca_gpu_finish(device);
    if (status == IBV_WC_SUCCESS)
        status = shca_gpu_write(device, (char *)to + rest, (const char *)from + rest, bytes - rest);
    return status;
}

static int read_all(struct shca_device *device, char *to, const char *from, size_t bytes)
{
    int status = IBV_WC_SUCCESS;
    for (size_t done = 0, n; done < bytes && status == IBV_WC_SUCCESS; done += n) {
        n = bytes - done < SHCA_MAIL_BYTES ? bytes - done : SHCA_MAIL_BYTES;
        status = shca_gpu_read(device, to + done, from + done, n);
        if (status == IBV_WC_SUCCESS)
            status = shca_gpu_finish(device);
    }
    return status;
}

// The thread stands in for the engine's. What the program has set for it comes back.
int shca_gpu_look(struct shca_device *device, void *to, const void *from, size_t bytes)
{
    void *context = NULL;
    int mode = CAPTURE_RELAXED;
    pthread_mutex_lock(&device->engine_lock);
    driver.context_get(&context);
    if (driver.capture_mode)
        driver.capture_mode(&mode);
    int status = read_all(device, to, from, bytes);
    driver.context_set(context);
    current = NULL;
    if (driver.capture_mode)
        driver.capture_mode(&mode);
    pthread_mutex_unlock(&device->engine_lock);
    return status;
}
