// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/gpu_runtimes.h"

#include <pthread.h>

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
