// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/gpu_runtimes.h"

#include <pthread.h>

#include "gpu/gpu.h"
#include "gpushmem/device_host.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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

void gpsh_gpu_runtimes_begin(void)
{
    pthread_mutex_lock(&lock);
    for (struct gpushmem_cuda_runtime *r = runtimes; r; r = r->next) {
        if (r->begun == gpsh_gpu.context)
            continue;
        r->begin();
        r->begun = gpsh_gpu.context;
    }
    pthread_mutex_unlock(&lock);
}
