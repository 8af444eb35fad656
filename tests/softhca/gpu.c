// SPDX-License-Identifier: BSD-3-Clause
// GPU memory: copies by the CUDA driver, which is used only if the program has loaded it. The few declarations needed
// are here, so that it compiles without the toolkit.
#define _GNU_SOURCE // RTLD_NOLOAD
#include <dlfcn.h>
#include <stdlib.h>

#include "softhca.h"

enum { MEMORY_TYPE = 2, DEVICE_ORDINAL = 9, MEMORY_IS_DEVICE = 2, STREAM_NON_BLOCKING = 1 };

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
};

struct shca_gpu {
    void *context, *stream;
    int ordinal;
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
                 find(library, "cuMemcpyAsync", &driver.copy);
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

// Makes the engine of this device ready for that memory. A stream of its own, which waits for no other: a kernel that
// spins until this copy arrives must not hold it up.
int shca_gpu_use(struct shca_device *device, uint64_t address)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void *before = NULL;
    int status = 0;
    pthread_mutex_lock(&lock);
    if (!device->gpu) {
        struct shca_gpu *gpu = calloc(1, sizeof *gpu);
        driver.context_get(&before);
        if (!gpu || driver.pointer_attribute(&gpu->ordinal, DEVICE_ORDINAL, address) ||
            driver.primary_retain(&gpu->context, gpu->ordinal) || driver.context_set(gpu->context) ||
            driver.stream_create(&gpu->stream, STREAM_NON_BLOCKING)) {
            free(gpu);
            gpu = NULL;
            status = -1;
        }
        driver.context_set(before);
        device->gpu = gpu;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

// Called by the engine's thread only. The context is that thread's from the first copy on.
int shca_gpu_copy(struct shca_device *device, void *to, const void *from, size_t bytes)
{
    static _Thread_local void *current;
    struct shca_gpu *gpu = device->gpu;
    if (!gpu)
        return IBV_WC_LOC_QP_OP_ERR;
    if (current != gpu->context && driver.context_set(gpu->context))
        return IBV_WC_GENERAL_ERR;
    current = gpu->context;
    if (driver.copy((uintptr_t)to, (uintptr_t)from, bytes, gpu->stream) || driver.stream_wait(gpu->stream))
        return IBV_WC_GENERAL_ERR;
    return IBV_WC_SUCCESS;
}

void shca_gpu_free(struct shca_device *device)
{
    if (!device->gpu)
        return;
    driver.stream_destroy(device->gpu->stream);
    driver.primary_release(device->gpu->ordinal);
    free(device->gpu);
    device->gpu = NULL;
}
