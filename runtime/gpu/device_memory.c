// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // MAP_ANONYMOUS, memfd_create
#include "gpu/device_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"
#include "gpushmem/gpushmem.h"

static void *host_alloc(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void host_free(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

static int host_write(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return 0;
}

int gpsh_host_shared_alloc(size_t bytes, void **memory, int *file)
{
    void *at = MAP_FAILED;
    int fd = memfd_create("gpushmem-queues", MFD_CLOEXEC);
    if (fd >= 0 && !ftruncate(fd, (off_t)bytes))
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) {
        *memory = at;
        *file = fd;
        return 0;
    }
    gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no %zu bytes of memory for kernels' queues (%s)", bytes,
              strerror(errno));
    if (fd >= 0)
        close(fd);
    return GPUSHMEM_ERR_NO_MEMORY;
}

void gpsh_host_shared_free(void *memory, size_t bytes, int file)
{
    munmap(memory, bytes);
    close(file);
}

const struct gpsh_device_memory gpsh_device_memory_host = {
    .host_alloc = host_alloc,
    .host_free = host_free,
    .device_alloc = host_alloc,
    .device_free = host_free,
    .device_write = host_write,
    .cpu_threads = true,
};
