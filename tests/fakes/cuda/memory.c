// SPDX-License-Identifier: BSD-3-Clause
// Device addresses and what is behind them; pinned host memory; IPC.
//
// All device addresses of a process lie in the first half of one reserved arena, where nothing can
// be read or written; the second half has the same memory again, for the driver.
#define _GNU_SOURCE // memfd_create
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_cuda.h"
#include "internal.h"

static const size_t ARENA = (size_t)256 << 30;
static const char IPC_MAGIC[8] = "fakeipc";
enum { MEMORY_HOST = 1 };

struct pinned {
    struct pinned *next;
    uintptr_t base;
    size_t bytes;
    bool registered; // the program's own memory
};

struct ipc {
    char magic[8];
    int pid, fd, device;
    size_t bytes;
};
_Static_assert(sizeof(struct ipc) <= sizeof(struct gpsh_cu_ipc_handle),
               "an IPC handle has room for it");

static struct fake_range *ranges;
static struct pinned *pins;
static size_t used[FAKE_DEVICES];
static char *arena;

// ---- Physical memory ----

struct fake_block *fake_block_new(size_t bytes, int device, int fd)
{
    bool ours = fd < 0;
    if (ours && (bytes > fake.settings.memory || used[device] > fake.settings.memory - bytes))
        return NULL;
    if (ours) {
        fd = memfd_create("fake-cuda", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, (off_t)((bytes + FAKE_PAGE - 1) / FAKE_PAGE * FAKE_PAGE)))
            return NULL;
        used[device] += bytes;
    }
    struct fake_block *block = malloc(sizeof *block);
    *block = (struct fake_block){
        .fd = fd, .device = device, .bytes = bytes, .references = 1, .ours = ours};
    return block;
}

void fake_block_release(struct fake_block *block)
{
    if (--block->references)
        return;
    if (block->ours)
        used[block->device] -= block->bytes;
    close(block->fd);
    free(block);
}

// ---- Device addresses ----

static char *nothing(char *at, size_t bytes)
{
    return mmap(at, bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
}

static size_t whole_grains(size_t bytes)
{
    return (bytes + FAKE_GRAIN - 1) / FAKE_GRAIN * FAKE_GRAIN;
}

// The first gap, with a guard behind it.
struct fake_range *fake_range_new(size_t bytes)
{
    if (!arena)
        arena = nothing(NULL, 2 * ARENA + FAKE_GRAIN);
    if (arena == MAP_FAILED)
        fake_misuse("there are no %zu bytes of address space", 2 * ARENA);
    arena = (char *)whole_grains((uintptr_t)arena);
    struct fake_range **link = &ranges;
    uintptr_t at = (uintptr_t)arena;
    while (*link && (*link)->base < at + bytes + FAKE_GRAIN) {
        at = (*link)->base + whole_grains((*link)->bytes) + FAKE_GRAIN;
        link = &(*link)->next;
    }
    if (bytes > ARENA || at + bytes > (uintptr_t)arena + ARENA)
        return NULL;
    struct fake_range *range = calloc(1, sizeof *range);
    *range = (struct fake_range){.next = *link, .base = at, .bytes = bytes};
    *link = range;
    return range;
}

struct fake_range *fake_range_at(uintptr_t base)
{
    struct fake_range *range = ranges;
    while (range && range->base != base)
        range = range->next;
    return range;
}

bool fake_range_is_free(const struct fake_range *range, uintptr_t base, size_t bytes)
{
    uintptr_t offset = base - range->base;
    bool free = offset < range->bytes && bytes <= range->bytes - offset;
    for (const struct fake_mapping *m = range->mappings; m && free; m = m->next)
        free = base + bytes <= m->base || m->base + m->bytes <= base;
    return free;
}

struct fake_mapping *fake_range_map(struct fake_range *range, uintptr_t base, size_t bytes,
                                    struct fake_block *block)
{
    char *seen = (char *)base, *own = seen + ARENA;
    size_t whole = (bytes + FAKE_PAGE - 1) / FAKE_PAGE * FAKE_PAGE;
    const int all = PROT_READ | PROT_WRITE;
    if (mmap(own, whole, all, MAP_SHARED | MAP_FIXED, block->fd, 0) == MAP_FAILED ||
        (fake.settings.visible &&
         mmap(seen, whole, all, MAP_SHARED | MAP_FIXED, block->fd, 0) == MAP_FAILED))
        fake_misuse("%zu bytes cannot be mapped", bytes);
    struct fake_mapping *mapping = malloc(sizeof *mapping);
    *mapping = (struct fake_mapping){
        .next = range->mappings, .base = base, .bytes = bytes, .block = block};
    range->mappings = mapping;
    block->references++;
    return mapping;
}

void fake_range_unmap(struct fake_range *range, struct fake_mapping *mapping)
{
    struct fake_mapping **link = &range->mappings;
    while (*link != mapping)
        link = &(*link)->next;
    *link = mapping->next;
    size_t bytes = whole_grains(mapping->bytes);
    nothing((char *)mapping->base, bytes);
    nothing((char *)mapping->base + ARENA, bytes);
    fake_block_release(mapping->block);
    free(mapping);
}

void fake_range_delete(struct fake_range *range)
{
    struct fake_range **link = &ranges;
    while (*link != range)
        link = &(*link)->next;
    *link = range->next;
    while (range->mappings)
        fake_range_unmap(range, range->mappings);
    free(range);
}

struct fake_range *fake_range_around(uintptr_t at)
{
    struct fake_range *range = ranges;
    while (range && at - range->base >= range->bytes)
        range = range->next;
    return range;
}

struct fake_mapping *fake_mapping_around(uintptr_t at)
{
    const struct fake_range *range = fake_range_around(at);
    struct fake_mapping *mapping = range ? range->mappings : NULL;
    while (mapping && at - mapping->base >= mapping->bytes)
        mapping = mapping->next;
    return mapping;
}

enum fake_place fake_place(uintptr_t at, size_t bytes, char **host)
{
    *host = (char *)at;
    if (arena && at - (uintptr_t)arena < ARENA) {
        const struct fake_mapping *m = fake_mapping_around(at);
        if (!m || !m->access || bytes > m->bytes - (at - m->base))
            return PLACE_BAD;
        *host += ARENA;
        return PLACE_DEVICE;
    }
    for (const struct pinned *p = pins; p; p = p->next)
        if (at - p->base < p->bytes)
            return bytes <= p->bytes - (at - p->base) ? PLACE_PINNED : PLACE_BAD;
    return PLACE_PAGEABLE;
}

void *fake_cuda_host(unsigned long long device_pointer)
{
    char *host;
    pthread_mutex_lock(&fake.lock);
    enum fake_place place = fake_place((uintptr_t)device_pointer, 1, &host);
    pthread_mutex_unlock(&fake.lock);
    return place == PLACE_DEVICE ? host : NULL;
}

// ---- The calls ----

gpsh_cu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    ENTER(NEEDS_CONTEXT);
    pthread_mutex_lock(&fake.lock);
    *total = fake.settings.memory;
    *free_bytes = *total - used[fake_current()->device];
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

// A block in a range of its own, which then holds it. 0: there are no addresses left.
static uintptr_t place(struct fake_block *block, int kind)
{
    struct fake_range *range = fake_range_new(block->bytes);
    if (range) {
        range->kind = kind;
        fake_range_map(range, range->base, block->bytes, block)->access = true;
    }
    fake_block_release(block);
    return range ? range->base : 0;
}

static uintptr_t allocate(size_t bytes, int device)
{
    struct fake_block *block = fake_block_new(bytes, device, -1);
    return block ? place(block, RANGE_ALLOCATED) : 0;
}

gpsh_cu_result cuMemAlloc_v2(gpsh_cu_ptr *memory, size_t bytes)
{
    ENTER(NEEDS_CONTEXT);
    if (!bytes)
        return GPSH_CU_INVALID_VALUE;
    pthread_mutex_lock(&fake.lock);
    uintptr_t base = allocate(bytes, fake_current()->device);
    pthread_mutex_unlock(&fake.lock);
    if (base)
        *memory = base;
    return base ? 0 : GPSH_CU_OUT_OF_MEMORY;
}

gpsh_cu_result cuMemFree_v2(gpsh_cu_ptr memory)
{
    ENTER(NEEDS_CONTEXT);
    fake_wait_context(fake_current());
    pthread_mutex_lock(&fake.lock);
    struct fake_range *range = fake_range_at((uintptr_t)memory);
    if (!range || range->kind != RANGE_ALLOCATED)
        fake_misuse("cuMemFree(%#llx): nothing that cuMemAlloc returned, or freed already", memory);
    fake_range_delete(range);
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

gpsh_cu_result cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    ENTER(NEEDS_CONTEXT);
    size_t whole = (bytes + FAKE_PAGE - 1) / FAKE_PAGE * FAKE_PAGE;
    if (!bytes || flags & ~7u)
        return GPSH_CU_INVALID_VALUE;
    struct pinned *pinned = malloc(sizeof *pinned);
    void *base = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        free(pinned);
        return GPSH_CU_OUT_OF_MEMORY;
    }
    memset(base, 0xa5, bytes); // a driver promises no zeroes
    pthread_mutex_lock(&fake.lock);
    *pinned = (struct pinned){.next = pins, .base = (uintptr_t)base, .bytes = bytes};
    pins = pinned;
    pthread_mutex_unlock(&fake.lock);
    *memory = base;
    return 0;
}

// Takes the pinned memory that begins there off the list, behind everything that may use it. NULL:
// there is none of that kind.
static struct pinned *unpin(const void *memory, bool registered)
{
    fake_wait_context(fake_current());
    pthread_mutex_lock(&fake.lock);
    struct pinned **link = &pins;
    while (*link && (*link)->base != (uintptr_t)memory)
        link = &(*link)->next;
    struct pinned *pinned = *link && (*link)->registered == registered ? *link : NULL;
    if (pinned)
        *link = pinned->next;
    pthread_mutex_unlock(&fake.lock);
    return pinned;
}

gpsh_cu_result cuMemFreeHost(void *memory)
{
    ENTER(NEEDS_CONTEXT);
    struct pinned *pinned = unpin(memory, false);
    if (!pinned)
        fake_misuse("cuMemFreeHost(%p): nothing that cuMemHostAlloc returned, or freed already",
                    memory);
    munmap(memory, (pinned->bytes + FAKE_PAGE - 1) / FAKE_PAGE * FAKE_PAGE);
    free(pinned);
    return 0;
}

gpsh_cu_result cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
    ENTER(NEEDS_CONTEXT);
    char *host;
    if (!memory || !bytes || flags & ~15u)
        return GPSH_CU_INVALID_VALUE;
    struct pinned *pinned = malloc(sizeof *pinned);
    pthread_mutex_lock(&fake.lock);
    bool free_range = fake_place((uintptr_t)memory, 1, &host) == PLACE_PAGEABLE &&
                      fake_place((uintptr_t)memory + bytes - 1, 1, &host) == PLACE_PAGEABLE;
    if (free_range) {
        *pinned = (struct pinned){
            .next = pins, .base = (uintptr_t)memory, .bytes = bytes, .registered = true};
        pins = pinned;
    } else {
        free(pinned);
    }
    pthread_mutex_unlock(&fake.lock);
    return free_range ? 0 : FAKE_ALREADY_REGISTERED;
}

gpsh_cu_result cuMemHostUnregister(void *memory)
{
    ENTER(NEEDS_CONTEXT);
    struct pinned *pinned = unpin(memory, true);
    if (!pinned)
        fake_misuse(
            "cuMemHostUnregister(%p): nothing that cuMemHostRegister took, or unregistered already",
            memory);
    free(pinned);
    return 0;
}

gpsh_cu_result cuMemGetAddressRange_v2(gpsh_cu_ptr *base, size_t *bytes, gpsh_cu_ptr pointer)
{
    ENTER(NEEDS_CONTEXT);
    pthread_mutex_lock(&fake.lock);
    const struct fake_mapping *m = fake_mapping_around((uintptr_t)pointer);
    bool known = m && m->access;
    if (known) {
        *base = m->base;
        *bytes = m->bytes;
    }
    pthread_mutex_unlock(&fake.lock);
    return known ? 0 : FAKE_NOT_FOUND;
}

// Where pinned host memory begins and ends.
static struct pinned pinned_around(uintptr_t at)
{
    struct pinned found = {0};
    for (const struct pinned *p = pins; p; p = p->next)
        if (at - p->base < p->bytes)
            found = *p;
    return found;
}

gpsh_cu_result cuPointerGetAttribute(void *value, int attribute, gpsh_cu_ptr pointer)
{
    ENTER(NEEDS_INIT);
    char *host;
    pthread_mutex_lock(&fake.lock);
    enum fake_place place = fake_place((uintptr_t)pointer, 1, &host);
    int device = place == PLACE_DEVICE ? fake_mapping_around((uintptr_t)pointer)->block->device : 0;
    struct pinned pinned = pinned_around((uintptr_t)pointer);
    pthread_mutex_unlock(&fake.lock);
    if (place != PLACE_DEVICE && place != PLACE_PINNED)
        return GPSH_CU_INVALID_VALUE; // memory that CUDA does not know
    if (attribute == GPSH_CU_POINTER_MEMORY_TYPE)
        *(unsigned *)value = place == PLACE_DEVICE ? GPSH_CU_MEMORY_DEVICE : MEMORY_HOST;
    else if (attribute == GPSH_CU_POINTER_ORDINAL)
        *(int *)value = device;
    else if (attribute == GPSH_CU_POINTER_RANGE_START && place == PLACE_PINNED)
        *(gpsh_cu_ptr *)value = pinned.base;
    else if (attribute == GPSH_CU_POINTER_RANGE_SIZE && place == PLACE_PINNED)
        *(size_t *)value = pinned.bytes;
    else
        fake_misuse("cuPointerGetAttribute: attribute %d is none this driver knows", attribute);
    return 0;
}

gpsh_cu_result cuMemGetHandleForAddressRange(void *handle, gpsh_cu_ptr base, size_t bytes, int type,
                                             unsigned long long flags)
{
    ENTER(NEEDS_INIT);
    if (fake_attribute(GPSH_CU_ATTRIBUTE_DMA_BUF) != 1)
        return FAKE_NOT_SUPPORTED;
    if (flags == GPSH_CU_RANGE_MAPPING_PCIE && fake_attribute(FAKE_ATTRIBUTE_PCIE_DMABUF) != 1)
        return FAKE_NOT_SUPPORTED;
    if (type != GPSH_CU_RANGE_DMA_BUF_FD || flags > GPSH_CU_RANGE_MAPPING_PCIE ||
        base % FAKE_PAGE || bytes % FAKE_PAGE || !bytes)
        return GPSH_CU_INVALID_VALUE;
    int fd = -1;
    pthread_mutex_lock(&fake.lock);
    const struct fake_mapping *m = fake_mapping_around((uintptr_t)base);
    if (m && m->access && m->base == base && bytes <= m->bytes)
        fd = fcntl(m->block->fd, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&fake.lock);
    if (fd >= 0)
        *(int *)handle = fd;
    return fd >= 0 ? 0 : GPSH_CU_INVALID_VALUE;
}

// ---- IPC: other processes open the file through this one's list of descriptors ----

gpsh_cu_result cuIpcGetMemHandle(struct gpsh_cu_ipc_handle *handle, gpsh_cu_ptr memory)
{
    ENTER(NEEDS_INIT);
    pthread_mutex_lock(&fake.lock);
    const struct fake_range *range = fake_range_at((uintptr_t)memory);
    bool good = range && range->kind == RANGE_ALLOCATED;
    struct ipc ipc = {.pid = getpid()};
    if (good) {
        memcpy(ipc.magic, IPC_MAGIC, sizeof ipc.magic);
        ipc.fd = range->mappings->block->fd;
        ipc.device = range->mappings->block->device;
        ipc.bytes = range->bytes;
    }
    pthread_mutex_unlock(&fake.lock);
    if (!good)
        return GPSH_CU_INVALID_VALUE; // so it is for VMM memory
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &ipc, sizeof ipc);
    return 0;
}

gpsh_cu_result cuIpcOpenMemHandle_v2(gpsh_cu_ptr *memory, struct gpsh_cu_ipc_handle handle,
                                     unsigned flags)
{
    ENTER(NEEDS_CONTEXT);
    struct ipc ipc;
    char path[64];
    memcpy(&ipc, &handle, sizeof ipc);
    if (memcmp(ipc.magic, IPC_MAGIC, sizeof ipc.magic) || flags != GPSH_CU_IPC_LAZY_PEER_ACCESS)
        return GPSH_CU_INVALID_VALUE;
    if (ipc.pid == getpid())
        return FAKE_INVALID_CONTEXT;
    if (ipc.device != fake_current()->device && !fake.settings.peer)
        return FAKE_PEER_UNSUPPORTED;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", ipc.pid, ipc.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return GPSH_CU_INVALID_VALUE;
    pthread_mutex_lock(&fake.lock);
    uintptr_t base = place(fake_block_new(ipc.bytes, ipc.device, fd), RANGE_IPC);
    pthread_mutex_unlock(&fake.lock);
    *memory = base;
    return base ? 0 : GPSH_CU_OUT_OF_MEMORY;
}

gpsh_cu_result cuIpcCloseMemHandle(gpsh_cu_ptr memory)
{
    ENTER(NEEDS_CONTEXT);
    pthread_mutex_lock(&fake.lock);
    struct fake_range *range = fake_range_at((uintptr_t)memory);
    if (!range || range->kind != RANGE_IPC)
        fake_misuse("cuIpcCloseMemHandle(%#llx): nothing that cuIpcOpenMemHandle returned, or "
                    "closed already",
                    memory);
    fake_range_delete(range);
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

void fake_memory_report(int *leaks)
{
    static const char *const calls[] = {"cuMemAddressReserve", "cuMemAlloc", "cuIpcOpenMemHandle"};
    for (const struct fake_range *range = ranges; range; range = range->next)
        fake_leak(leaks, "%zu bytes at %#lx, from %s", range->bytes, (unsigned long)range->base,
                  calls[range->kind]);
    for (const struct pinned *p = pins; p; p = p->next)
        fake_leak(leaks, "%zu bytes of pinned host memory at %#lx", p->bytes,
                  (unsigned long)p->base);
}
