// SPDX-License-Identifier: BSD-3-Clause
// The handle of kernels for those that the library does not launch: of the program's units.
#include <pthread.h>
#include <stdlib.h>

#include "gpushmem/compat/impl/nvshmem_calls.h"

static struct {
    pthread_mutex_t lock;
    int (**functions)(void);
    size_t n;
} units = {.lock = PTHREAD_MUTEX_INITIALIZER};

// Called while the program starts, or a library of it is loaded: what cannot be kept is told by
// the kernel's first call, which finds no handle.
void gpushmem_nvshmem_attach_by(int (*attach)(void))
{
    pthread_mutex_lock(&units.lock);
    int (**more)(void) = realloc(units.functions, (units.n + 1) * sizeof *more);
    if (more) {
        more[units.n++] = attach;
        units.functions = more;
    }
    pthread_mutex_unlock(&units.lock);
}

void gpushmem_nvshmem_attach_no_more(int (*attach)(void))
{
    pthread_mutex_lock(&units.lock);
    for (size_t i = 0; i < units.n; i++)
        if (units.functions[i] == attach)
            units.functions[i--] = units.functions[--units.n];
    pthread_mutex_unlock(&units.lock);
}

int gpushmem_nvshmem_attach(void)
{
    int status = 0;
    pthread_mutex_lock(&units.lock);
    for (size_t i = 0; i < units.n && !status; i++)
        status = units.functions[i]();
    pthread_mutex_unlock(&units.lock);
    return status;
}
