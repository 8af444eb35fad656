// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // MAP_ANONYMOUS
#include "gpu/device_memory.h"

#include <string.h>
#include <sys/mman.h>

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

const struct gpsh_device_memory gpsh_device_memory_host = {
    .host_alloc = host_alloc,
    .host_free = host_free,
    .device_alloc = host_alloc,
    .device_free = host_free,
    .device_write = host_write,
    .cpu_threads = true,
};
