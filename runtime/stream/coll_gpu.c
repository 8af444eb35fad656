// SPDX-License-Identifier: BSD-3-Clause
#include "stream/coll_gpu.h"

#include "core/cpu.h"
#include "core/team_name.h"
#include "gpu/gpu.h"
#include "gpushmem/impl/coll_few.h"
#include "job/job.h"
#include "memory/heap.h"
#include "proxy/device_side.h"
#include "stream/stream_image.h"
#include "stream/stream_module.h"

enum kernel { SYNC, PACKETS, PAIR, FOUR, FEW, DENSE, LARGE, NODES, ENTER, LEAVE, KERNELS };
static const char *const names[KERNELS] = {
    "gpsh_coll_sync",  "gpsh_coll_packets", "gpsh_coll_pair",  "gpsh_coll_four",
    "gpsh_coll_few",   "gpsh_coll_dense",   "gpsh_coll_large", "gpsh_coll_nodes",
    "gpsh_coll_enter", "gpsh_coll_leave"};

static void unload(void);
static struct gpsh_stream_module colls;
static const struct gpushmem_coll_op no_op = {.kind = 0};
static const struct gpushmem_dev_team nobody = {.team = GPUSHMEM_TEAM_INVALID};
static struct gpushmem_coll_few no_few;
static void *const nothing[] = {&colls.handle, (void *)(uintptr_t)&nobody,
                                (void *)(uintptr_t)&no_op, &no_few};

// Those that wait for the kernel ahead of them by themselves may be launched early.
static struct gpsh_stream_module colls = {
    .what = "collectives of streams",
    .image = &gpsh_coll_image,
    .names = names,
    .n = KERNELS,
    .asked = SYNC,
    .late = ENTER,
    .early_blocks = GPUSHMEM_COLL_STREAM_BLOCKS,
    .idle_threads = 32,
    .idle_nothing = nothing,
    .unload = unload,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

static void unload(void)
{
    gpsh_stream_module_unload(&colls);
}

void gpsh_coll_gpu_preload(void)
{
    gpsh_stream_module_preload(&colls);
}

static gpsh_cu_result launch(enum kernel kernel, const struct gpushmem_coll_op *op,
                             const struct gpushmem_dev_team *team, struct gpsh_coll_choice choice,
                             gpushmem_stream_t stream)
{
    void *parameters[] = {&colls.handle, (void *)(uintptr_t)team, (void *)(uintptr_t)op};
    const struct gpsh_stream_shape shape = {choice.blocks, choice.threads};
    return gpsh_stream_module_launch(&colls, (int)kernel, shape, parameters, stream);
}

// A thread for each packet, and the addresses worked out here: docs/design/collectives.md.
static gpsh_cu_result by_few(const struct gpushmem_coll_op *op,
                             const struct gpushmem_dev_team *team, const int32_t *pes,
                             struct gpsh_coll_choice choice, gpushmem_stream_t stream)
{
    struct gpushmem_coll_few few = gpushmem_coll_few_of(team, op);
    for (int j = 0; j < few.others; j++) {
        char **to = few.members[j].to,
             *base = gpsh_device_side_direct(pes[j + (j >= team->my_rank)]);
        to[0] = base + gpsh_offset(to[0]);
        to[1] = base + gpsh_offset(to[1]);
    }
    void *parameters[] = {&colls.handle, (void *)(uintptr_t)team, (void *)(uintptr_t)op, &few};
    const struct gpsh_stream_shape shape = {choice.blocks, choice.threads};
    enum kernel kernel = few.others == 1 ? PAIR : few.others <= 3 ? FOUR : FEW;
    return gpsh_stream_module_launch(&colls, (int)kernel, shape, parameters, stream);
}

// ---- Copies ----

// This PE's block of an fcollect to one member, itself included. Nothing to do if it is there
// already.
static gpsh_cu_result copy_to(const struct gpushmem_coll_op *op,
                              const struct gpushmem_dev_team *team, int rank, int pe,
                              gpushmem_stream_t stream)
{
    uint64_t bytes = op->n * op->width;
    char *to = (char *)op->dest + (uint64_t)team->my_rank * bytes;
    if (rank == team->my_rank && to == (const char *)op->source)
        return 0;
    char *there = gpsh_device_side_direct(pe) + gpsh_offset(to);
    return gpsh_cu.copy_any((gpsh_cu_ptr)(uintptr_t)there, (gpsh_cu_ptr)(uintptr_t)op->source,
                            bytes, stream);
}

// Flags, copies, flags: what the copy engine wrote is at the other GPU when the last kernel begins.
static gpsh_cu_result by_copies(const struct gpushmem_coll_op *op,
                                const struct gpushmem_dev_team *team, const int32_t *pes,
                                struct gpsh_coll_choice choice, gpushmem_stream_t stream)
{
    gpsh_cu_result code = launch(ENTER, op, team, choice, stream);
    for (int k = 1; k <= team->n && !code; k++) {
        int rank = (team->my_rank + k) % team->n;
        code = copy_to(op, team, rank, pes[rank], stream);
    }
    return code ? code : launch(LEAVE, op, team, choice, stream);
}

// ---- Enqueueing ----

static gpsh_cu_result enqueue(const struct gpushmem_coll_op *op,
                              const struct gpushmem_dev_team *team, const int32_t *pes,
                              struct gpsh_coll_choice choice, gpushmem_stream_t stream)
{
    if (op->kind <= GPUSHMEM_COLL_BARRIER)
        return launch(SYNC, op, team, choice, stream);
    if (choice.way == GPUSHMEM_COLL_LL &&
        gpushmem_coll_is_few(team, op, (uint64_t)choice.blocks * choice.threads))
        return by_few(op, team, pes, choice, stream);
    if (choice.way == GPUSHMEM_COLL_LL)
        return launch(PACKETS, op, team, choice, stream);
    if (choice.way == GPUSHMEM_COLL_DENSE)
        return launch(DENSE, op, team, choice, stream);
    if (choice.way == GPUSHMEM_COLL_NODES || choice.way == GPUSHMEM_COLL_KEEP)
        return launch(NODES, op, team, choice, stream);
    if (choice.way == GPUSHMEM_COLL_COPY)
        return by_copies(op, team, pes, choice, stream);
    return launch(LARGE, op, team, choice, stream);
}

int gpsh_coll_gpu_submit(const struct gpushmem_coll_op *op,
                         const struct gpsh_device_team_view *team, struct gpsh_coll_choice choice,
                         gpushmem_stream_t stream)
{
    int status = gpsh_stream_module_use(&colls);
    if (status)
        return status;
    gpsh_device_side_launching();
    GPSH_IN_GPU;
    gpsh_cu_result code = enqueue(op, &team->entry, team->pes, choice, stream);
    if (GPSH_LIKELY(!code))
        return 0;
    return gpsh_gpu_fail(code, "%s of %s on stream %p", gpsh_coll_kind_name(op->kind),
                         gpsh_team_name(op->team).text, (void *)stream);
}
