// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/gpu_runtimes.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/log.h"
#include "gpu/gpu.h"
#include "gpushmem/device_host.h"

static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER; // held while one begins
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;      // of the list, never held for long
static struct gpushmem_cuda_runtime *runtimes;

void gpushmem_cuda_runtime_add(struct gpushmem_cuda_runtime *runtime)
{
    pthread_mutex_lock(&lock);
    runtime->next = runtimes;
    runtimes = runtime;
    pthread_mutex_unlock(&lock);
}

void gpushmem_cuda_runtime_remove(struct gpushmem_cuda_runtime *runtime)
{
    pthread_mutex_lock(&lock);
    struct gpushmem_cuda_runtime **at = &runtimes;
    while (*at && *at != runtime)
        at = &(*at)->next;
    if (*at)
        *at = runtime->next;
    pthread_mutex_unlock(&lock);
}

// One that has not begun in this context, and counts as begun from now on, or NULL.
static struct gpushmem_cuda_runtime *take_next(void)
{
    pthread_mutex_lock(&lock);
    struct gpushmem_cuda_runtime *r = runtimes;
    while (r && r->begun == gpsh_gpu.context)
        r = r->next;
    if (r)
        r->begun = gpsh_gpu.context;
    pthread_mutex_unlock(&lock);
    return r;
}

// Without the lock of the list: a runtime loads libraries when it begins, for which it waits for
// the loader, and a thread that has the loader may be adding a runtime.
void gpsh_gpu_runtimes_begin(void)
{
    pthread_mutex_lock(&beginning);
    for (struct gpushmem_cuda_runtime *r; (r = take_next());)
        r->begin();
    pthread_mutex_unlock(&beginning);
}

// ---- Kernels of the program ----

static bool loads_late(void)
{
    int mode = 0;
    return gpsh_cu.loading_mode && gpsh_cu.function_module && gpsh_cu.function_count &&
           gpsh_cu.functions && gpsh_cu.function_load && !gpsh_cu.loading_mode(&mode) &&
           mode == GPSH_CU_LOADING_LAZY;
}

// The program may capture a stream meanwhile.
void gpushmem_kernels_load(void *function)
{
    gpsh_cu_module module;
    unsigned count = 0;
    if (gpsh_gpu_load_driver() || !loads_late())
        return;
    int mode = gpsh_gpu_relax();
    if (!gpsh_cu.function_module(&module, function) && !gpsh_cu.function_count(&count, module)) {
        gpsh_cu_function *functions = calloc((size_t)count + 1, sizeof *functions);
        if (functions && !gpsh_cu.functions(functions, count, module))
            for (unsigned i = 0; i < count; i++)
                gpsh_cu.function_load(functions[i]);
        free(functions);
        GPSH_LOG(DEBUG, "gpu", "loaded the %u kernels of a module before the first launch", count);
    }
    gpsh_gpu_restore(mode);
}
