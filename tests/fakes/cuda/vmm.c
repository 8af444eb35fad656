// SPDX-License-Identifier: BSD-3-Clause
// Virtual memory management. A handle for other processes is no file that could be mapped, as
// little as a driver's is: it is a socket in which a message with the memory's descriptor waits,
// and whoever has it looks at that message.
#define _GNU_SOURCE // SOCK_CLOEXEC
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

struct handle {
    struct handle *next;
    struct fake_block *block;
};

struct letter {
    char magic[8];
    int device;
    size_t bytes;
};
static const char MAGIC[8] = "fakevmm";

static struct handle *handles;

static struct handle *handle_new(struct fake_block *block)
{
    struct handle *handle = malloc(sizeof *handle);
    *handle = (struct handle){.next = handles, .block = block};
    handles = handle;
    return handle;
}

static struct handle **find(gpsh_cu_allocation allocation, const char *function)
{
    struct handle **link = &handles;
    while (*link && (uintptr_t)*link != (uintptr_t)allocation)
        link = &(*link)->next;
    if (!*link)
        fake_misuse("%s: %#llx is no allocation handle, or released already", function, allocation);
    return link;
}

static bool is_sound(const struct gpsh_cu_allocation_properties *p)
{
    return p->type == GPSH_CU_ALLOCATION_PINNED && p->location.type == GPSH_CU_LOCATION_DEVICE &&
           p->location.id >= 0 && p->location.id < fake.settings.devices &&
           !(p->handle_types & ~GPSH_CU_HANDLE_POSIX_FD) &&
           (!p->flags.rdma_capable || fake_attribute(GPSH_CU_ATTRIBUTE_RDMA_WITH_VMM) == 1);
}

static bool can_share(const struct gpsh_cu_allocation_properties *p)
{
    return !p->handle_types || fake_attribute(GPSH_CU_ATTRIBUTE_POSIX_FD) == 1;
}

static void check_grains(const char *function, size_t bytes)
{
    if (!bytes || bytes % FAKE_GRAIN)
        fake_misuse("%s: %zu bytes are no multiple of the granularity (%d)", function, bytes,
                    FAKE_GRAIN);
}

gpsh_cu_result cuMemGetAllocationGranularity(size_t *bytes,
                                             const struct gpsh_cu_allocation_properties *properties,
                                             int option)
{
    ENTER(NEEDS_INIT);
    *bytes = FAKE_GRAIN;
    return is_sound(properties) ? 0 : GPSH_CU_INVALID_VALUE;
}

gpsh_cu_result cuMemCreate(gpsh_cu_allocation *handle, size_t bytes,
                           const struct gpsh_cu_allocation_properties *properties,
                           unsigned long long flags)
{
    ENTER(NEEDS_INIT);
    check_grains("cuMemCreate", bytes);
    if (!is_sound(properties) || flags)
        return GPSH_CU_INVALID_VALUE;
    if (fake_attribute(GPSH_CU_ATTRIBUTE_VMM) != 1 || !can_share(properties))
        return FAKE_NOT_SUPPORTED;
    pthread_mutex_lock(&fake.lock);
    struct fake_block *block = fake_block_new(bytes, properties->location.id, -1);
    if (block) {
        block->exportable = properties->handle_types;
        *handle = (uintptr_t)handle_new(block);
    }
    pthread_mutex_unlock(&fake.lock);
    return block ? 0 : GPSH_CU_OUT_OF_MEMORY;
}

gpsh_cu_result cuMemRelease(gpsh_cu_allocation allocation)
{
    ENTER(NEEDS_INIT);
    pthread_mutex_lock(&fake.lock);
    struct handle **link = find(allocation, "cuMemRelease"), *handle = *link;
    *link = handle->next;
    fake_block_release(handle->block);
    free(handle);
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

gpsh_cu_result cuMemRetainAllocationHandle(gpsh_cu_allocation *handle, void *mapped)
{
    ENTER(NEEDS_INIT);
    pthread_mutex_lock(&fake.lock);
    const struct fake_range *range = fake_range_around((uintptr_t)mapped);
    const struct fake_mapping *m = fake_mapping_around((uintptr_t)mapped);
    bool good = m && range->kind == RANGE_RESERVED;
    if (good) {
        m->block->references++;
        *handle = (uintptr_t)handle_new(m->block);
    }
    pthread_mutex_unlock(&fake.lock);
    return good ? 0 : GPSH_CU_INVALID_VALUE;
}

gpsh_cu_result cuMemAddressReserve(gpsh_cu_ptr *base, size_t bytes, size_t alignment,
                                   gpsh_cu_ptr wish, unsigned long long flags)
{
    ENTER(NEEDS_INIT);
    check_grains("cuMemAddressReserve", bytes);
    if (flags || alignment & (alignment - 1) || alignment > FAKE_GRAIN)
        return GPSH_CU_INVALID_VALUE;
    pthread_mutex_lock(&fake.lock);
    const struct fake_range *range = fake_range_new(bytes);
    if (range)
        *base = range->base;
    pthread_mutex_unlock(&fake.lock);
    return range ? 0 : GPSH_CU_OUT_OF_MEMORY;
}

gpsh_cu_result cuMemAddressFree(gpsh_cu_ptr base, size_t bytes)
{
    ENTER(NEEDS_INIT);
    pthread_mutex_lock(&fake.lock);
    struct fake_range *range = fake_range_at((uintptr_t)base);
    if (!range || range->kind != RANGE_RESERVED || range->bytes != bytes)
        fake_misuse("cuMemAddressFree(%#llx, %zu): no such reservation", base, bytes);
    if (range->mappings)
        fake_misuse("cuMemAddressFree(%#llx): memory is still mapped there", base);
    fake_range_delete(range);
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

gpsh_cu_result cuMemMap(gpsh_cu_ptr base, size_t bytes, size_t offset,
                        gpsh_cu_allocation allocation, unsigned long long flags)
{
    ENTER(NEEDS_INIT);
    check_grains("cuMemMap", bytes);
    if (flags || offset)
        return GPSH_CU_INVALID_VALUE; // CUDA wants 0 as well
    pthread_mutex_lock(&fake.lock);
    struct handle *handle = *find(allocation, "cuMemMap");
    struct fake_range *range = fake_range_around((uintptr_t)base);
    if (!range || range->kind != RANGE_RESERVED ||
        !fake_range_is_free(range, (uintptr_t)base, bytes))
        fake_misuse("cuMemMap(%#llx, %zu): not in one reservation, or not all of it is free", base,
                    bytes);
    gpsh_cu_result code = bytes <= handle->block->bytes ? 0 : GPSH_CU_INVALID_VALUE;
    if (!code)
        fake_range_map(range, (uintptr_t)base, bytes, handle->block);
    pthread_mutex_unlock(&fake.lock);
    return code;
}

gpsh_cu_result cuMemUnmap(gpsh_cu_ptr base, size_t bytes)
{
    ENTER(NEEDS_INIT);
    pthread_mutex_lock(&fake.lock);
    struct fake_range *range = fake_range_around((uintptr_t)base);
    struct fake_mapping *m = fake_mapping_around((uintptr_t)base);
    bool mapped = m && range->kind == RANGE_RESERVED && m->base == base && m->bytes == bytes;
    if (mapped)
        fake_range_unmap(range, m);
    pthread_mutex_unlock(&fake.lock);
    return mapped ? 0 : GPSH_CU_INVALID_VALUE;
}

gpsh_cu_result cuMemSetAccess(gpsh_cu_ptr base, size_t bytes, const struct gpsh_cu_access *access,
                              size_t count)
{
    ENTER(NEEDS_INIT);
    gpsh_cu_result code = GPSH_CU_INVALID_VALUE;
    pthread_mutex_lock(&fake.lock);
    struct fake_mapping *m = fake_mapping_around((uintptr_t)base);
    if (m && m->base == base && m->bytes == bytes && count == 1 &&
        access->flags == GPSH_CU_ACCESS_READWRITE &&
        access->location.type == GPSH_CU_LOCATION_DEVICE)
        code = access->location.id != m->block->device && !fake.settings.peer
                   ? FAKE_PEER_UNSUPPORTED
                   : 0;
    if (!code)
        m->access = true;
    pthread_mutex_unlock(&fake.lock);
    return code;
}

// ---- Handles for other processes ----

union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr alignment;
};

static int post_letter(const struct fake_block *block)
{
    struct letter letter = {.device = block->device, .bytes = block->bytes};
    struct iovec part = {&letter, sizeof letter};
    union control control = {0};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int ends[2];
    memcpy(letter.magic, MAGIC, sizeof MAGIC);
    *head = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(head), &block->fd, sizeof(int));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return -1;
    if (sendmsg(ends[0], &message, 0) != (ssize_t)sizeof letter) {
        close(ends[1]);
        ends[1] = -1;
    }
    close(ends[0]);
    return ends[1];
}

// The descriptor in the letter, which stays in the socket; -1 if that is no such socket.
static int read_letter(int socket, struct letter *letter)
{
    struct iovec part = {letter, sizeof *letter};
    union control control = {0};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *head = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
    int fd = -1;
    if (head && head->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(head), sizeof fd);
    if (fd < 0 || (got == (ssize_t)sizeof *letter && !memcmp(letter->magic, MAGIC, sizeof MAGIC)))
        return fd;
    close(fd);
    return -1;
}

gpsh_cu_result cuMemExportToShareableHandle(void *fd, gpsh_cu_allocation allocation, int type,
                                            unsigned long long flags)
{
    ENTER(NEEDS_INIT);
    pthread_mutex_lock(&fake.lock);
    const struct handle *handle = *find(allocation, "cuMemExportToShareableHandle");
    bool good = handle->block->exportable && type == GPSH_CU_HANDLE_POSIX_FD && !flags;
    int made = good ? post_letter(handle->block) : -1;
    pthread_mutex_unlock(&fake.lock);
    if (made >= 0)
        *(int *)fd = made;
    return made >= 0 ? 0 : GPSH_CU_INVALID_VALUE;
}

gpsh_cu_result cuMemImportFromShareableHandle(gpsh_cu_allocation *allocation, void *handle,
                                              int type)
{
    ENTER(NEEDS_INIT);
    struct letter letter;
    int fd = type == GPSH_CU_HANDLE_POSIX_FD ? read_letter((int)(intptr_t)handle, &letter) : -1;
    if (fd < 0)
        return GPSH_CU_INVALID_VALUE;
    pthread_mutex_lock(&fake.lock);
    *allocation = (uintptr_t)handle_new(fake_block_new(letter.bytes, letter.device, fd));
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

void fake_vmm_report(int *leaks)
{
    for (const struct handle *handle = handles; handle; handle = handle->next)
        fake_leak(leaks, "a handle of %zu bytes of GPU %d", handle->block->bytes,
                  handle->block->device);
}
