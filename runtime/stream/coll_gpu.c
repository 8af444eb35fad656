// SPDX-License-Identifier: BSD-3-Clause
#include "stream/coll_gpu.h"

#include <pthread.h>
#include <stdatomic.h>

#include "gpu/gpu.h"
#include "gpushmem/device_host.h"
#include "proxy/device_side.h"
#include "stream/coll_choice.h"
#include "stream/stream_gpu.h"
#include "stream/stream_image.h"

enum kernel { SYNC, PACKETS, LARGE, ENTER, LEAVE, KERNELS };
static const char *const names[KERNELS] = {"gpsh_coll_sync", "gpsh_coll_packets", "gpsh_coll_large",
                                           "gpsh_coll_enter", "gpsh_coll_leave"};

static struct {
    pthread_mutex_t lock;
    _Atomic bool ready; // everything below is there, and stays until finalize
    gpsh_cu_module module;
    gpsh_cu_function kernels[KERNELS];
    struct gpushmem_dev handle;
    bool early; // as for single operations: docs/adr/0009
} colls = {.lock = PTHREAD_MUTEX_INITIALIZER};

// ---- Loading ----

// Only kernels of one block that wait for the one ahead by themselves are launched early.
static gpsh_cu_result launch(enum kernel kernel, const struct gpushmem_coll_op *op,
                             const struct gpushmem_dev_team *team, struct gpsh_coll_choice choice,
                             gpushmem_stream_t stream)
{
    void *parameters[] = {&colls.handle, (void *)(uintptr_t)team, (void *)(uintptr_t)op};
    if (!colls.early || choice.blocks > 1 || kernel > PACKETS)
        return gpsh_cu.launch(colls.kernels[kernel], choice.blocks, 1, 1, choice.threads, 1, 1, 0,
                              stream, parameters, NULL);
    struct gpsh_cu_launch_attribute early = {.id = GPSH_CU_LAUNCH_EARLY, .value.on = 1};
    const struct gpsh_cu_launch_config config = {choice.blocks, 1,      1, choice.threads, 1, 1, 0,
                                                 stream,        &early, 1};
    return gpsh_cu.launch_with(&config, colls.kernels[kernel], parameters, NULL);
}

// The driver may load a kernel as late as at its first launch, and wait for running kernels then,
// which may wait for this one: so each is launched once with nothing to do.
static gpsh_cu_result warm_up(void)
{
    const struct gpushmem_coll_op nothing = {.kind = 0};
    const struct gpushmem_dev_team nobody = {.team = GPUSHMEM_TEAM_INVALID};
    gpsh_cu_stream stream = NULL;
    gpsh_cu_result code = gpsh_cu.stream_create(&stream, GPSH_CU_STREAM_NON_BLOCKING);
    for (int k = 0; k < KERNELS && !code; k++)
        code =
            launch((enum kernel)k, &nothing, &nobody, (struct gpsh_coll_choice){0, 1, 32}, stream);
    if (!code)
        code = gpsh_cu.stream_sync(stream);
    if (stream)
        gpsh_cu.stream_destroy(stream);
    return code;
}

static void unload(void)
{
    atomic_store(&colls.ready, false);
    if (colls.module)
        gpsh_cu.module_unload(colls.module);
    colls.module = NULL;
}

static int load(void)
{
    gpsh_gpu_on_close(unload);
    if (!gpsh_coll_image)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "this gpushmem was built without CUDA's compiler and has no kernels for "
                         "collectives of streams; build it with -DGPUSHMEM_CUDA=ON");
    gpsh_cu_result code = gpsh_cu.module_load(&colls.module, gpsh_coll_image);
    for (int k = 0; k < KERNELS && !code; k++)
        code = gpsh_cu.module_function(&colls.kernels[k], colls.module, names[k]);
    colls.early = !code && gpsh_stream_gpu_may_be_early(colls.kernels[SYNC]);
    if (!code)
        code = warm_up();
    if (!code)
        return 0;
    int status = gpsh_gpu_fail(code, "loading the kernels of collectives on %s", gpsh_gpu.name);
    unload();
    return status;
}

static int load_once(void)
{
    pthread_mutex_lock(&colls.lock);
    bool entered = gpsh_gpu_enter();
    int mode = gpsh_gpu_relax();
    int status = colls.module ? 0 : load();
    gpsh_gpu_restore(mode);
    gpsh_gpu_leave(entered);
    pthread_mutex_unlock(&colls.lock);
    return status;
}

void gpsh_coll_gpu_preload(void)
{
    if (!gpsh.device_heap || !gpsh_coll_image || !load_once())
        return;
    GPSH_LOG(DEBUG, "stream", "%s", gpsh_last_error());
    gpsh_clear_error();
}

static int prepare(void)
{
    struct gpushmem_dev handle;
    int status = gpushmem_device_handle(&handle);
    if (!status)
        status = load_once();
    if (status)
        return status;
    pthread_mutex_lock(&colls.lock);
    if (!atomic_load(&colls.ready))
        colls.handle = handle;
    atomic_store_explicit(&colls.ready, true, memory_order_release);
    pthread_mutex_unlock(&colls.lock);
    return 0;
}

// ---- Copies ----

// A block of this PE's to one member, itself included. Nothing to do if it is there already.
static gpsh_cu_result copy_to(const struct gpushmem_coll_op *op,
                              const struct gpushmem_dev_team *team, int rank, int pe,
                              gpushmem_stream_t stream)
{
    uint64_t bytes = op->n * op->width;
    const char *from = (const char *)op->source;
    char *to = (char *)op->dest;
    if (op->kind == GPUSHMEM_COLL_ALLTOALL)
        from += (uint64_t)rank * bytes;
    if (op->kind != GPUSHMEM_COLL_BROADCAST)
        to += (uint64_t)team->my_rank * bytes;
    if (rank == team->my_rank && to == from)
        return 0;
    char *there = gpsh_device_side_direct(pe) + gpsh_offset(to);
    return gpsh_cu.copy_any((gpsh_cu_ptr)(uintptr_t)there, (gpsh_cu_ptr)(uintptr_t)from, bytes,
                            stream);
}

// Flags, copies, flags: what the copy engine wrote is at the other GPU when the last kernel begins.
static gpsh_cu_result by_copies(const struct gpushmem_coll_op *op,
                                const struct gpushmem_dev_team *team, const int32_t *pes,
                                struct gpsh_coll_choice choice, gpushmem_stream_t stream)
{
    bool sends = op->kind != GPUSHMEM_COLL_BROADCAST || op->root == team->my_rank;
    gpsh_cu_result code = launch(ENTER, op, team, choice, stream);
    for (int k = 1; k <= team->n && sends && !code; k++) {
        int rank = (team->my_rank + k) % team->n;
        code = copy_to(op, team, rank, pes[rank], stream);
    }
    return code ? code : launch(LEAVE, op, team, choice, stream);
}

// ---- Enqueueing ----

static gpsh_cu_result enqueue(const struct gpushmem_coll_op *op,
                              const struct gpushmem_dev_team *team, const int32_t *pes,
                              gpushmem_stream_t stream)
{
    struct gpsh_coll_choice choice =
        gpsh_coll_choose(op, team, op->dest != op->source, &gpsh_coll_limits);
    struct gpushmem_coll_op chosen = *op;
    chosen.way = (uint8_t)choice.way;
    if (op->kind <= GPUSHMEM_COLL_BARRIER)
        return launch(SYNC, &chosen, team, choice, stream);
    if (choice.way == GPUSHMEM_COLL_LL)
        return launch(PACKETS, &chosen, team, choice, stream);
    if (choice.way == GPUSHMEM_COLL_COPY)
        return by_copies(&chosen, team, pes, choice, stream);
    return launch(LARGE, &chosen, team, choice, stream);
}

int gpsh_coll_gpu_submit(const struct gpushmem_coll_op *op, const struct gpushmem_dev_team *team,
                         const int32_t *pes, gpushmem_stream_t stream)
{
    if (GPSH_UNLIKELY(!atomic_load_explicit(&colls.ready, memory_order_acquire))) {
        int status = prepare();
        if (status)
            return status;
    }
    gpsh_device_side_launching();
    bool entered = gpsh_gpu_enter();
    gpsh_cu_result code = enqueue(op, team, pes, stream);
    gpsh_gpu_leave(entered);
    if (GPSH_LIKELY(!code))
        return 0;
    return gpsh_gpu_fail(code, "%s of team %d on stream %p", gpsh_coll_kind_name(op->kind),
                         op->team, (void *)stream);
}
