// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // RTLD_NOLOAD
// Queue pairs that kernels post to by themselves. They are the flows of channels of their own
// (env.kernel_channels), connected by the same handshake as all others, without books: the host
// never posts to them. mlx5's library tells where their queues lie; it is looked up where
// libibverbs has loaded it for a NIC. docs/design/nic_posts.md says what kernels do there.
#include <dlfcn.h>
#include <infiniband/mlx5dv.h>
#include <stdio.h>

#include "transports/verbs/setup/verbs_setup.h"

enum {
    BLOCK = 64,             // bytes of an entry of a send queue
    MESSAGE_MOST = 1 << 30, // bytes of one request, whatever the port takes
};

static struct {
    bool (*is_supported)(struct ibv_device *device);
    int (*init_obj)(struct mlx5dv_obj *object, uint64_t type);
    char missing[200]; // why there are no functions
} mlx5;

// libibverbs does without a provider that it cannot load, and tells no program why.
static void say_what_is_missing(void)
{
    void *library = dlopen("libmlx5.so.1", RTLD_NOW), *used = NULL;
    const char *error = library ? NULL : dlerror();
    if (library) {
        dlclose(library);
        used = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_NOLOAD);
    }
    if (error)
        snprintf(mlx5.missing, sizeof mlx5.missing, "libmlx5.so.1 cannot be loaded (%s)", error);
    else
        snprintf(mlx5.missing, sizeof mlx5.missing, "%s",
                 used ? "this libmlx5.so.1 does not tell where queues are"
                      : "the NIC is none of mlx5's: libibverbs has loaded no libmlx5.so.1 for it");
    if (used)
        dlclose(used);
}

static void look_up(void)
{
    void *library = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *is_supported = library ? dlsym(library, "mlx5dv_is_supported") : NULL;
    void *init_obj = library ? dlsym(library, "mlx5dv_init_obj") : NULL;
    memcpy(&mlx5.is_supported, &is_supported, sizeof is_supported);
    memcpy(&mlx5.init_obj, &init_obj, sizeof init_obj);
    if (!is_supported || !init_obj)
        say_what_is_missing();
}

const char *gpsh_verbs_no_mlx5(const struct verbs_rail *rail)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_up);
    if (!mlx5.is_supported || !mlx5.init_obj)
        return mlx5.missing;
    return mlx5.is_supported(rail->context->device) ? NULL : "the NIC is none of mlx5's";
}

// Where the queues lie. False: the library does not tell.
static bool find_queues(const struct verbs_lane *lane, struct gpsh_kernel_queue *out)
{
    struct mlx5dv_qp qp = {0};
    struct mlx5dv_cq cq = {0};
    struct mlx5dv_obj object = {.qp = {.in = lane->qp, .out = &qp},
                                .cq = {.in = lane->own_cq, .out = &cq}};
    if (mlx5.init_obj(&object, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ) || qp.sq.stride != BLOCK ||
        qp.sq.wqe_cnt < VERBS_KERNEL_DEPTH_LEAST || qp.sq.wqe_cnt & (qp.sq.wqe_cnt - 1) ||
        !qp.bf.reg || cq.cqe_cnt & (cq.cqe_cnt - 1))
        return false;
    uint32_t room = qp.sq.wqe_cnt < cq.cqe_cnt ? qp.sq.wqe_cnt : cq.cqe_cnt;
    out->sq = qp.sq.buf;
    out->sq_record = (uint32_t *)qp.dbrec + MLX5_SND_DBR;
    out->doorbell = qp.bf.reg;
    out->cq = cq.buf;
    out->cq_record = (uint32_t *)cq.dbrec;
    out->entries = qp.sq.wqe_cnt;
    out->cqes = cq.cqe_cnt;
    out->cqe_bytes = cq.cqe_size;
    out->depth = lane->depth < room ? lane->depth : room;
    return out->depth >= VERBS_KERNEL_DEPTH_LEAST;
}

static const char *fill(const struct verbs_flow *flow, struct gpsh_kernel_queue *out)
{
    struct gpsh_verbs *verbs = flow->channel->verbs;
    const struct verbs_lane *lane = &flow->lanes[0];
    const struct gpsh_verbs_blob *blob = &flow->peer->blob;
    const char *answers = atomic_load(&flow->channel->answers), *why;
    uint64_t message = verbs->rails[lane->rail].max_message;
    bool first = !lane->rail || flow->global >> lane->rail & 1;
    *out = (struct gpsh_kernel_queue){
        .qpn = lane->qpn,
        .lkey = lane->lkeys[GPSH_HEAP],
        .rkey = lane->rkeys[GPSH_HEAP],
        .remote_base = blob->bases[GPSH_HEAP],
        .heap_bytes = verbs->env.regions[GPSH_HEAP].bytes,
        .most = message && message < MESSAGE_MOST ? (uint32_t)message : MESSAGE_MOST,
        .rail = lane->rail,
        .apart = lane->apart,
        .rails = verbs->n_rails > 1 && blob->n_rails > 1,
        .atomics = first && !flow->no_atomics && !verbs->stage.atomics &&
                   !(blob->serves & GPSH_VERBS_SERVES_ATOMICS),
    };
    why = gpsh_verbs_kernel_refused(verbs, blob, lane->rail);
    if (!why && lane->devx)
        gpsh_verbs_devx_show(lane, out);
    else if (!why && !find_queues(lane, out))
        why = "mlx5's library shows no queues that kernels could use";
    if (!why && !out->answers &&
        !gpsh_verbs_buffer_lkey(verbs, answers, flow->channel->answers_bytes, lane->rail,
                                &out->answers_lkey))
        why = "the memory for answers is not registered";
    return why;
}

static int index_of(const struct verbs_channel *channel)
{
    const struct gpsh_verbs *verbs = channel->verbs;
    return (int)(channel - verbs->channels) - (verbs->env.channels - verbs->env.kernel_channels);
}

static void tell(const struct verbs_flow *flow, const struct gpsh_kernel_queue *queue,
                 const char *why)
{
    const struct gpsh_transport_env *env = &flow->channel->verbs->env;
    if (env->kernel_queue)
        env->kernel_queue(env->arg, index_of(flow->channel), flow->pe, queue, why);
}

// The peer may have begun, before anybody here has asked. Both sides of this race write, and then
// look at what the other one writes.
void gpsh_verbs_kernel_up(struct verbs_flow *flow)
{
    struct gpsh_kernel_queue queue;
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load(&flow->channel->answers))
        return;
    const char *why = fill(flow, &queue);
    tell(flow, why ? NULL : &queue, why);
}

void gpsh_verbs_kernel_out(const struct verbs_flow *flow, const char *why)
{
    tell(flow, NULL, why);
}

void gpsh_verbs_kernel_lost(struct gpsh_verbs *verbs, int pe)
{
    for (int c = verbs->env.channels - verbs->env.kernel_channels; c < verbs->env.channels; c++) {
        struct verbs_flow *flow = verbs_flow_at(&verbs->channels[c], pe);
        pthread_mutex_lock(&verbs->queue_pairs);
        if (flow)
            gpsh_verbs_kernel_kill(&flow->lanes[0]);
        pthread_mutex_unlock(&verbs->queue_pairs);
    }
}
