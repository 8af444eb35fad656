// SPDX-License-Identifier: BSD-3-Clause
// Registered memory: the heap, once per rail, and buffers of the program outside it.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "transports/verbs/setup/verbs_setup.h"

// A dma-buf has whole pages: that of an unaligned buffer begins before it.
uint64_t gpsh_verbs_dmabuf_offset(const struct gpsh_region *region)
{
    return (uintptr_t)region->base % (uint64_t)sysconf(_SC_PAGESIZE);
}

static struct ibv_mr *register_dmabuf(struct gpsh_verbs *verbs, struct verbs_rail *rail,
                                      const struct gpsh_region *region, int access,
                                      struct verbs_way *way)
{
    struct ibv_mr *mr = NULL;
    // What comes through that function may arrive after the completion, which comes through the
    // other one: docs/design/ordering.md.
    if (verbs->env.settings->verbs_data_direct != GPSH_DATA_DIRECT_OFF && verbs->env.can_flush)
        mr = gpsh_verbs_register_direct(rail, region, gpsh_verbs_dmabuf_offset(region), access);
    way->by = mr ? VERBS_BY_DATA_DIRECT : VERBS_BY_DMABUF;
    verbs->base.must_flush |= mr != NULL;
    if (!mr)
        mr = ibv_reg_dmabuf_mr(rail->pd, gpsh_verbs_dmabuf_offset(region), region->bytes,
                               (uintptr_t)region->base, region->dmabuf_fd, access);
    if (!mr)
        *way = (struct verbs_way){.by = VERBS_BY_ADDRESS, .dmabuf_refused = errno};
    return mr;
}

static void explain_failure(const struct gpsh_verbs *verbs, const struct verbs_rail *rail,
                            const struct gpsh_region *region, int error,
                            const struct verbs_way *way)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (region->kind == GPSH_MEMORY_DEVICE)
        gpsh_fail(
            GPUSHMEM_ERR_TRANSPORT,
            "%s cannot register %zu bytes of GPU memory (by dma-buf: %s; by address: %s): it "
            "takes dma-buf (Linux 5.12, open GPU driver) or the nvidia-peermem module; "
            "GPUSHMEM_HEAP_KIND=host needs neither; `gpushmem doctor` explains it under gpudirect",
            rail->name, region->bytes, gpsh_verbs_why_no_dmabuf(verbs, region, way),
            strerror(error));
    else if (limit.rlim_cur < region->bytes && (error == ENOMEM || error == EPERM))
        gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                  "%s cannot register %zu bytes: the limit for locked memory is %llu bytes; raise "
                  "it (`ulimit -l unlimited`, or memlock in /etc/security/limits.conf); `gpushmem "
                  "doctor` explains it under memlock",
                  rail->name, region->bytes, (unsigned long long)limit.rlim_cur);
    else
        gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                  "%s cannot register %zu bytes at %p (%s): lower GPUSHMEM_HEAP_SIZE, or see dmesg",
                  rail->name, region->bytes, (void *)region->base, strerror(error));
}

struct ibv_mr *gpsh_verbs_register(struct gpsh_verbs *verbs, struct verbs_rail *rail,
                                   const struct gpsh_region *region, int access,
                                   struct verbs_way *way)
{
    struct verbs_way not_wanted;
    way = way ? way : &not_wanted;
    *way = (struct verbs_way){.by = VERBS_BY_ADDRESS};
    int policy = verbs->env.settings->verbs_dmabuf;
    bool dmabuf =
        region->kind == GPSH_MEMORY_DEVICE && region->dmabuf_fd >= 0 && policy != GPSH_DMABUF_OFF;
    struct ibv_mr *mr = dmabuf ? register_dmabuf(verbs, rail, region, access, way) : NULL;
    if (mr)
        return mr;
    if (region->kind == GPSH_MEMORY_DEVICE && policy == GPSH_DMABUF_REQUIRE) {
        gpsh_fail(GPUSHMEM_ERR_TRANSPORT, "GPUSHMEM_TEST_VERBS_DMABUF=require, but %s",
                  region->dmabuf_fd < 0 ? "the GPU memory has no dma-buf"
                                        : "the NIC refused the dma-buf of the GPU memory");
        return NULL;
    }
    mr = ibv_reg_mr(rail->pd, region->base, region->bytes, access);
    if (!mr)
        explain_failure(verbs, rail, region, errno, way);
    return mr;
}

// What peers may do; a NIC without atomics refuses to be asked for them.
unsigned gpsh_verbs_remote_access(const struct verbs_rail *rail)
{
    unsigned access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    return rail->atomics == GPSH_VERBS_ATOMICS_NONE ? access : access | IBV_ACCESS_REMOTE_ATOMIC;
}

static void region_deregister(struct gpsh_verbs *verbs, int number)
{
    for (int i = 0; i < verbs->n_rails; i++) {
        if (verbs->rails[i].mrs[number])
            ibv_dereg_mr(verbs->rails[i].mrs[number]);
        verbs->rails[i].mrs[number] = NULL;
    }
}

// With every rail, or with none and a sentence.
int gpsh_verbs_region_register(struct gpsh_verbs *verbs, int number,
                               const struct gpsh_region *region)
{
    for (int i = 0; i < verbs->n_rails && region->bytes; i++) {
        struct verbs_rail *rail = &verbs->rails[i];
        int access = IBV_ACCESS_LOCAL_WRITE | (int)gpsh_verbs_remote_access(rail);
        rail->mrs[number] = gpsh_verbs_register(verbs, rail, region, access,
                                                number == GPSH_HEAP ? &rail->heap_way : NULL);
        if (!rail->mrs[number]) {
            region_deregister(verbs, number);
            return gpsh_last_error_code();
        }
    }
    return 0;
}

// Index of the first buffer whose end is above `address`. The caller holds the lock.
static size_t find(const struct gpsh_verbs *verbs, const char *address)
{
    size_t low = 0, high = verbs->n_buffers;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gpsh_region *region = &verbs->buffers[middle].region;
        if (region->base + region->bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct verbs_buffer *find_range(const struct gpsh_verbs *verbs, const char *local,
                                             uint64_t bytes)
{
    size_t i = find(verbs, local);
    return i < verbs->n_buffers && verbs_in(&verbs->buffers[i].region, local, bytes)
               ? &verbs->buffers[i]
               : NULL;
}

enum verbs_where gpsh_verbs_where(struct gpsh_verbs *verbs, const char *local, uint64_t bytes)
{
    if (verbs_in(&verbs->env.regions[GPSH_HEAP], local, bytes))
        return verbs->stage.mode == VERBS_STAGE_ALL ? VERBS_ELSEWHERE : VERBS_HEAP;
    if (verbs_in(&verbs->env.regions[GPSH_CONTROL], local, bytes))
        return VERBS_CONTROL;
    if (!atomic_load_explicit(&verbs->n_buffers, memory_order_relaxed))
        return VERBS_ELSEWHERE;
    pthread_rwlock_rdlock(&verbs->buffers_lock);
    const struct verbs_buffer *buffer = find_range(verbs, local, bytes);
    enum verbs_where where = !buffer || !buffer->mr[0]                   ? VERBS_ELSEWHERE
                             : buffer->region.kind == GPSH_MEMORY_DEVICE ? VERBS_DEVICE_BUFFER
                                                                         : VERBS_BUFFER;
    pthread_rwlock_unlock(&verbs->buffers_lock);
    return where;
}

bool gpsh_verbs_buffer_lkey(struct gpsh_verbs *verbs, const char *local, uint64_t bytes, int rail,
                            uint32_t *lkey)
{
    pthread_rwlock_rdlock(&verbs->buffers_lock);
    const struct verbs_buffer *buffer = find_range(verbs, local, bytes);
    bool registered = buffer && buffer->mr[rail];
    if (registered)
        *lkey = buffer->mr[rail]->lkey;
    pthread_rwlock_unlock(&verbs->buffers_lock);
    return registered;
}

static void deregister(struct verbs_buffer *buffer)
{
    for (int i = 0; i < GPSH_VERBS_MAX_RAILS; i++)
        if (buffer->mr[i])
            ibv_dereg_mr(buffer->mr[i]);
}

static bool overlaps(const struct gpsh_region *a, const struct gpsh_region *b)
{
    return a->base < b->base + b->bytes && b->base < a->base + a->bytes;
}

// Makes room and puts the buffer in its place. The caller holds the lock for writing.
static int insert(struct gpsh_verbs *verbs, const struct verbs_buffer *buffer)
{
    size_t n = verbs->n_buffers, at = find(verbs, buffer->region.base);
    if (at < n && overlaps(&verbs->buffers[at].region, &buffer->region))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "the buffer at %p overlaps one that is registered already",
                         (void *)buffer->region.base);
    if (n == verbs->buffers_room) {
        size_t room = n ? 2 * n : 16;
        struct verbs_buffer *more = realloc(verbs->buffers, room * sizeof *more);
        if (!more)
            return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                             "no memory for the list of registered buffers");
        verbs->buffers = more;
        verbs->buffers_room = room;
    }
    memmove(&verbs->buffers[at + 1], &verbs->buffers[at], (n - at) * sizeof *verbs->buffers);
    verbs->buffers[at] = *buffer;
    verbs->n_buffers = n + 1;
    return 0;
}

int gpsh_verbs_buffer_add(struct gpsh_verbs *verbs, struct verbs_buffer *buffer, bool remote)
{
    // Memory that the NICs cannot, or must not, access stays without keys: it is copied.
    const struct gpsh_region *region = &buffer->region;
    bool keyless =
        verbs->stage.mode == VERBS_STAGE_ALL && (remote || region->kind == GPSH_MEMORY_DEVICE);
    for (int i = 0; i < verbs->n_rails && !keyless; i++) {
        struct verbs_rail *rail = &verbs->rails[i];
        int access = IBV_ACCESS_LOCAL_WRITE | (remote ? (int)gpsh_verbs_remote_access(rail) : 0);
        buffer->mr[i] = gpsh_verbs_register(verbs, rail, region, access, NULL);
        if (!buffer->mr[i]) {
            deregister(buffer);
            return gpsh_last_error_code();
        }
    }
    pthread_rwlock_wrlock(&verbs->buffers_lock);
    int status = insert(verbs, buffer);
    pthread_rwlock_unlock(&verbs->buffers_lock);
    if (status)
        deregister(buffer);
    return status;
}

int gpsh_verbs_buffer_register(struct gpsh_transport *self, const struct gpsh_region *region)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    struct verbs_buffer buffer = {.region = *region};
    if (!region->base || !region->bytes || overlaps(region, &verbs->env.regions[GPSH_HEAP]))
        return gpsh_fail(
            GPUSHMEM_ERR_INVALID,
            "a buffer of %zu bytes at %p cannot be registered: it must not be empty and "
            "not overlap the symmetric heap",
            region->bytes, (void *)region->base);
    return gpsh_verbs_buffer_add(verbs, &buffer, false);
}

int gpsh_verbs_buffer_unregister(struct gpsh_transport *self, const void *base)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    struct verbs_buffer buffer = {0};
    pthread_rwlock_wrlock(&verbs->buffers_lock);
    size_t n = verbs->n_buffers, at = find(verbs, base);
    bool found = at < n && verbs->buffers[at].region.base == base;
    if (found) {
        buffer = verbs->buffers[at];
        memmove(&verbs->buffers[at], &verbs->buffers[at + 1],
                (n - at - 1) * sizeof *verbs->buffers);
        verbs->n_buffers = n - 1;
    }
    pthread_rwlock_unlock(&verbs->buffers_lock);
    if (!found)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "no buffer is registered at %p", base);
    deregister(&buffer);
    return 0;
}

void gpsh_verbs_buffers_free(struct gpsh_verbs *verbs)
{
    for (size_t i = 0; i < verbs->n_buffers; i++)
        deregister(&verbs->buffers[i]);
    free(verbs->buffers);
    verbs->buffers = NULL;
    verbs->n_buffers = verbs->buffers_room = 0;
}
