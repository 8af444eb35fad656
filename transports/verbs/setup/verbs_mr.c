// SPDX-License-Identifier: BSD-3-Clause
// Registered memory: the heap, once per rail, and buffers of the program outside it.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "transports/verbs/setup/verbs_setup.h"

_Static_assert((int)GPSH_BUFFER_KEYS >= (int)GPSH_VERBS_MAX_RAILS, "a key for each rail");

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

enum verbs_where gpsh_verbs_where(struct gpsh_verbs *verbs, const char *local, uint64_t bytes)
{
    if (gpsh_region_holds(&verbs->env.regions[GPSH_HEAP], local, bytes))
        return verbs->stage.mode == VERBS_STAGE_ALL ? VERBS_ELSEWHERE : VERBS_HEAP;
    if (gpsh_region_holds(&verbs->env.regions[GPSH_CONTROL], local, bytes))
        return VERBS_CONTROL;
    if (!atomic_load_explicit(&verbs->buffers.n, memory_order_relaxed))
        return VERBS_ELSEWHERE;
    pthread_rwlock_rdlock(&verbs->buffers.lock);
    const struct gpsh_buffer *buffer = gpsh_buffers_find(&verbs->buffers, local, bytes);
    enum verbs_where where = !buffer || !buffer->keys[0]                 ? VERBS_ELSEWHERE
                             : buffer->region.kind == GPSH_MEMORY_DEVICE ? VERBS_DEVICE_BUFFER
                                                                         : VERBS_BUFFER;
    pthread_rwlock_unlock(&verbs->buffers.lock);
    return where;
}

bool gpsh_verbs_buffer_lkey(struct gpsh_verbs *verbs, const char *local, uint64_t bytes, int rail,
                            uint32_t *lkey)
{
    pthread_rwlock_rdlock(&verbs->buffers.lock);
    const struct gpsh_buffer *buffer = gpsh_buffers_find(&verbs->buffers, local, bytes);
    const struct ibv_mr *mr = buffer ? buffer->keys[rail] : NULL;
    if (mr)
        *lkey = mr->lkey;
    pthread_rwlock_unlock(&verbs->buffers.lock);
    return mr;
}

static void deregister(const struct gpsh_buffer *buffer)
{
    for (int i = 0; i < GPSH_VERBS_MAX_RAILS; i++)
        if (buffer->keys[i])
            ibv_dereg_mr(buffer->keys[i]);
}

int gpsh_verbs_buffer_add(struct gpsh_verbs *verbs, struct gpsh_buffer *buffer, bool remote)
{
    // Memory that the NICs cannot, or must not, access stays without keys: it is copied.
    const struct gpsh_region *region = &buffer->region;
    bool keyless =
        verbs->stage.mode == VERBS_STAGE_ALL && (remote || region->kind == GPSH_MEMORY_DEVICE);
    for (int i = 0; i < verbs->n_rails && !keyless; i++) {
        struct verbs_rail *rail = &verbs->rails[i];
        int access = IBV_ACCESS_LOCAL_WRITE | (remote ? (int)gpsh_verbs_remote_access(rail) : 0);
        buffer->keys[i] = gpsh_verbs_register(verbs, rail, region, access, NULL);
        if (!buffer->keys[i]) {
            deregister(buffer);
            return gpsh_last_error_code();
        }
    }
    int status = gpsh_buffers_add(&verbs->buffers, buffer);
    if (status)
        deregister(buffer);
    return status;
}

int gpsh_verbs_buffer_register(struct gpsh_transport *self, const struct gpsh_region *region)
{
    struct gpsh_buffer buffer = {.region = *region};
    return gpsh_verbs_buffer_add((struct gpsh_verbs *)self, &buffer, false);
}

int gpsh_verbs_buffer_unregister(struct gpsh_transport *self, const void *base)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    struct gpsh_buffer buffer;
    int status = gpsh_buffers_take(&verbs->buffers, base, &buffer);
    if (!status)
        deregister(&buffer);
    return status;
}

void gpsh_verbs_buffers_free(struct gpsh_verbs *verbs)
{
    for (size_t i = 0; i < verbs->buffers.n; i++)
        deregister(&verbs->buffers.list[i]);
    gpsh_buffers_clear(&verbs->buffers);
}
