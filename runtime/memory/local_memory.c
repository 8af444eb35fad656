// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // process_vm_readv
#include "memory/local_memory.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "gpu/gpu.h"
#include "memory/heap.h"
#include "transport/buffers.h"

enum { REMEMBERED = 8, GOOD_FOR_NS = 1000000 };

struct range {
    uint64_t base, bytes;
};

static struct gpsh_buffers registered = {.lock = PTHREAD_RWLOCK_INITIALIZER};

// ---- Registered buffers ----

bool gpsh_local_overlaps(const void *base, size_t bytes)
{
    return gpsh_buffers_overlap(&registered, base, bytes);
}

int gpsh_local_register(void *base, size_t bytes)
{
    return gpsh_buffers_add(&registered,
                            &(struct gpsh_buffer){.region = {.base = base, .bytes = bytes}});
}

bool gpsh_local_unregister(const void *base)
{
    struct gpsh_buffer buffer;
    return !gpsh_buffers_take(&registered, base, &buffer);
}

void *gpsh_local_any(void)
{
    pthread_rwlock_rdlock(&registered.lock);
    void *base = registered.n ? registered.list[registered.n - 1].region.base : NULL;
    pthread_rwlock_unlock(&registered.lock);
    return base;
}

void gpsh_local_finalize(void)
{
    gpsh_buffers_clear(&registered);
}

static bool holds(const struct range *range, uint64_t address, uint64_t bytes)
{
    uint64_t offset = address - range->base;
    return offset < range->bytes && bytes <= range->bytes - offset;
}

static bool find_registered(uint64_t address, uint64_t bytes, struct range *found)
{
    pthread_rwlock_rdlock(&registered.lock);
    const struct gpsh_buffer *buffer =
        gpsh_buffers_find(&registered, (const void *)(uintptr_t)address, bytes);
    if (buffer)
        *found = (struct range){(uintptr_t)buffer->region.base, buffer->region.bytes};
    pthread_rwlock_unlock(&registered.lock);
    return buffer;
}

// ---- What CUDA and the kernel say ----

// Allocations may lie side by side: a buffer over several of them is as good.
static bool find_allocated(uint64_t address, uint64_t bytes, struct range *found)
{
    uint64_t begin = 0, at = address, end = address + bytes;
    while (at < end) {
        char *base;
        size_t size;
        if (!gpsh_gpu_allocation((void *)(uintptr_t)at, &base, &size) ||
            (uintptr_t)base + size <= at)
            return false;
        if (!begin)
            begin = (uintptr_t)base;
        at = (uintptr_t)base + size;
    }
    *found = (struct range){begin, at - begin};
    return true;
}

static bool readable(uint64_t address)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)address, 1};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 || errno != EFAULT;
}

// Both ends can be read, and there is no hole between them.
static bool is_mapped(uint64_t address, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = address / page * page;
    return readable(address) && readable(address + bytes - 1) &&
           (!msync((void *)(uintptr_t)first, address + bytes - first, MS_ASYNC) || errno != ENOMEM);
}

bool gpsh_local_exists(const void *base, size_t bytes)
{
    struct range ignored;
    uint64_t address = (uintptr_t)base;
    return bytes && bytes - 1 <= UINT64_MAX - address &&
           ((gpsh_heap()->device && find_allocated(address, bytes, &ignored)) ||
            is_mapped(address, bytes));
}

static bool find(uint64_t address, uint64_t bytes, struct range *found)
{
    if (find_registered(address, bytes, found) || find_allocated(address, bytes, found))
        return true;
    *found = (struct range){address, bytes};
    return gpsh_gpu.pageable && is_mapped(address, bytes);
}

bool gpsh_local_known(uint64_t address, uint64_t bytes)
{
    static _Thread_local struct {
        struct range range;
        uint64_t until;
    } recent[REMEMBERED];
    static _Thread_local unsigned next;
    uint64_t now = gpsh_clock_ns();
    for (int i = 0; i < REMEMBERED; i++)
        if (now < recent[i].until && holds(&recent[i].range, address, bytes))
            return true;
    struct range found;
    if (!find(address, bytes, &found))
        return false;
    recent[next].range = found;
    recent[next].until = now + GOOD_FOR_NS;
    next = (next + 1) % REMEMBERED;
    return true;
}
