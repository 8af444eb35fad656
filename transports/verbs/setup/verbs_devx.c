// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs whose queues and doorbell records are in memory that the runtime chooses, in that of
// the GPU whose kernels post. libibverbs makes none: commands to the NIC's firmware do (devx), in
// mailboxes whose layout is the PRM's, and which mlx5's library hands on. What connects them is
// said in verbs_qp.c, as for all others; here it is put into mailboxes.
//
// All queues are pieces of one memory, taken and registered before any kernel runs: a GPU's driver
// may have to wait for kernels that run, when they wait for a queue.
#define _GNU_SOURCE // RTLD_NOLOAD, endian.h
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/log.h"
#include "transports/verbs/setup/verbs_setup.h"

enum {
    BLOCK = 64,     // bytes of an entry, of both queues
    PAGE = 4096,    // what queues are aligned to
    CQ_RECORD = 64, // offset from the send queue's record: both are in a page of their own
    MOST_BYTES = 64 << 20,
    RC_MESSAGE_LOG2 = 30,
    ATOMIC_MODE_IB = 1,
    NO_RECEIVES = 3, // rq_type: a receive queue of size 0
    MIGRATED = 3,
    NO_INDEX = 0xffffff,
    ANSWERS = GPSH_KERNEL_ANSWERS + GPSH_KERNEL_SCRAP,
};

enum {
    CREATE_CQ = 0x400,
    CREATE_QP = 0x500,
    RST2INIT = 0x502,
    INIT2RTR = 0x503,
    RTR2RTS = 0x504,
    TO_ERR = 0x507,
};

static struct {
    int (*init_obj)(struct mlx5dv_obj *object, uint64_t type);
    struct mlx5dv_devx_umem *(*umem_reg_ex)(struct ibv_context *context,
                                            struct mlx5dv_devx_umem_in *in);
    int (*umem_dereg)(struct mlx5dv_devx_umem *umem);
    struct mlx5dv_devx_uar *(*alloc_uar)(struct ibv_context *context, uint32_t flags);
    void (*free_uar)(struct mlx5dv_devx_uar *uar);
    int (*query_eqn)(struct ibv_context *context, uint32_t vector, uint32_t *eqn);
    struct mlx5dv_devx_obj *(*obj_create)(struct ibv_context *context, const void *in, size_t inlen,
                                          void *out, size_t outlen);
    int (*obj_modify)(struct mlx5dv_devx_obj *object, const void *in, size_t inlen, void *out,
                      size_t outlen);
    int (*obj_destroy)(struct mlx5dv_devx_obj *object);
    bool all;
} mlx5;

static void look_up(void)
{
    void *library = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_NOLOAD);
    const struct {
        const char *name;
        void *to;
    } functions[] = {{"mlx5dv_init_obj", &mlx5.init_obj},
                     {"mlx5dv_devx_umem_reg_ex", &mlx5.umem_reg_ex},
                     {"mlx5dv_devx_umem_dereg", &mlx5.umem_dereg},
                     {"mlx5dv_devx_alloc_uar", &mlx5.alloc_uar},
                     {"mlx5dv_devx_free_uar", &mlx5.free_uar},
                     {"mlx5dv_devx_query_eqn", &mlx5.query_eqn},
                     {"mlx5dv_devx_obj_create", &mlx5.obj_create},
                     {"mlx5dv_devx_obj_modify", &mlx5.obj_modify},
                     {"mlx5dv_devx_obj_destroy", &mlx5.obj_destroy}};
    mlx5.all = library;
    for (size_t i = 0; mlx5.all && i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].name);
        memcpy(functions[i].to, &found, sizeof found);
        mlx5.all = found;
    }
}

// ---- Mailboxes ----

// A field: its first bit, counted from the upper bit of the mailbox's first byte, and how many.
struct field {
    uint16_t bit;
    uint8_t bits;
};

// Queue pairs' contexts begin at bit 0xc0 of their mailboxes, and hold the address vector at 0xc0.
#define QPC(bit, bits)  ((struct field){0xc0 + (bit), bits})
#define PATH(bit, bits) ((struct field){0xc0 + 0xc0 + (bit), bits})
#define CQC(bit, bits)  ((struct field){0x80 + (bit), bits})
#define BOX(bit, bits)  ((struct field){bit, bits})

struct mailbox {
    uint32_t words[0x110 / 4];
};

static void put(struct mailbox *box, struct field field, uint64_t value)
{
    uint32_t *word = &box->words[field.bit / 32];
    if (field.bits == 64) {
        word[0] = htobe32((uint32_t)(value >> 32));
        word[1] = htobe32((uint32_t)value);
    } else {
        *word |= htobe32((uint32_t)value << (32 - field.bits - field.bit % 32));
    }
}

static struct mailbox mailbox_for(uint32_t opcode, uint32_t qpn)
{
    struct mailbox box = {0};
    put(&box, BOX(0, 16), opcode);
    put(&box, BOX(0x48, 24), qpn);
    return box;
}

static struct mlx5dv_devx_obj *make(struct ibv_context *context, const struct mailbox *box,
                                    uint32_t *number)
{
    uint32_t out[4] = {0};
    struct mlx5dv_devx_obj *object = mlx5.obj_create(context, box, sizeof *box, out, sizeof out);
    *number = be32toh(out[2]) & 0xffffff;
    return object;
}

// ---- The memory of all queues ----

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static uint32_t cqes_of(const struct gpsh_verbs *verbs)
{
    return 2 * verbs->kernel_depth; // records of completions are written rarely then
}

static size_t cq_offset(const struct gpsh_verbs *verbs)
{
    return whole_pages((size_t)verbs->kernel_depth * BLOCK);
}

static size_t records_offset(const struct gpsh_verbs *verbs)
{
    return cq_offset(verbs) + whole_pages((size_t)cqes_of(verbs) * BLOCK);
}

static void note(struct verbs_near *near, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void note(struct verbs_near *near, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(near->why, sizeof near->why, format, arguments);
    va_end(arguments);
}

// Behind the queues.
static size_t answers_offset(const struct verbs_near *near)
{
    return near->n_slots * near->slot_bytes;
}

static bool take_memory(struct gpsh_verbs *verbs)
{
    struct verbs_near *near = &verbs->near;
    size_t wanted = (size_t)verbs->env.kernel_channels * (size_t)verbs->env.n_pes;
    near->slot_bytes = records_offset(verbs) + PAGE;
    near->n_slots = MOST_BYTES / near->slot_bytes < wanted ? MOST_BYTES / near->slot_bytes : wanted;
    near->taken = calloc(near->n_slots, sizeof *near->taken);
    size_t bytes = answers_offset(near) + ANSWERS * sizeof(uint64_t);
    if (near->taken && !verbs->env.kernel_memory(verbs->env.arg, bytes, &near->memory))
        return true;
    note(near, "%s", near->taken ? gpsh_last_error() : "no memory");
    gpsh_clear_error();
    return false;
}

static bool register_memory(struct gpsh_verbs *verbs, struct verbs_rail *rail)
{
    const struct gpsh_region *memory = &verbs->near.memory;
    struct mlx5dv_devx_umem_in in = {
        .addr = memory->base,
        .size = memory->bytes,
        .access = IBV_ACCESS_LOCAL_WRITE,
        .pgsz_bitmap = UINT64_MAX & ~(uint64_t)(PAGE - 1),
        .dmabuf_fd = memory->dmabuf_fd,
    };
    if (memory->dmabuf_fd >= 0) {
        in.addr = (void *)(uintptr_t)gpsh_verbs_dmabuf_offset(memory);
        in.comp_mask = MLX5DV_UMEM_MASK_DMABUF;
    }
    rail->umem = mlx5.umem_reg_ex(rail->context, &in);
    if (!rail->umem)
        note(&verbs->near, "%s does not take %s as the memory of queues (%s)", rail->name,
             memory->dmabuf_fd >= 0 ? "a dma-buf" : "this memory", strerror(errno));
    return rail->umem;
}

// A completion in GPU memory says nothing of words that the NIC has written to host memory, which
// go another way: they land beside it.
static bool register_answers(struct gpsh_verbs *verbs, struct verbs_rail *rail)
{
    rail->answers =
        gpsh_verbs_register(verbs, rail, &verbs->near.memory, IBV_ACCESS_LOCAL_WRITE, NULL);
    if (rail->answers)
        return true;
    note(&verbs->near, "%s", gpsh_last_error());
    gpsh_clear_error();
    return false;
}

static bool prepare(struct gpsh_verbs *verbs, struct verbs_rail *rail)
{
    struct mlx5dv_pd pd = {0};
    struct mlx5dv_obj object = {.pd = {.in = rail->pd, .out = &pd}};
    int error = mlx5.query_eqn(rail->context, 0, &rail->eqn);
    if (!error)
        error = mlx5.init_obj(&object, MLX5DV_OBJ_PD);
    rail->pdn = pd.pdn;
    if (error)
        note(&verbs->near, "%s has no devx for this process (%s)", rail->name, strerror(error));
    return !error && register_answers(verbs, rail) && register_memory(verbs, rail);
}

static bool is_wanted(struct gpsh_verbs *verbs)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int where = verbs->env.settings->device_queues;
    bool on_gpu = verbs->env.regions[GPSH_HEAP].kind == GPSH_MEMORY_DEVICE;
    pthread_once(&once, look_up);
    if (where == GPSH_DEVICE_QUEUES_HOST)
        note(&verbs->near, "GPUSHMEM_TEST_DEVICE_QUEUES=host");
    else if (!on_gpu && where == GPSH_DEVICE_QUEUES_AUTO)
        note(&verbs->near, "heaps are in host memory");
    else if (!verbs->env.kernel_memory)
        note(&verbs->near, "there is no memory for them near the GPU");
    else if (!mlx5.all) // umem_reg_ex is of 35, and takes dma-bufs since 43
        note(&verbs->near, "this libmlx5.so.1 is older than that of rdma-core 43");
    else
        return true;
    return false;
}

void gpsh_verbs_near_open(struct gpsh_verbs *verbs)
{
    if (!verbs->env.kernel_channels || verbs->rails[0].no_mlx5)
        return;
    bool good = is_wanted(verbs) && take_memory(verbs);
    for (int i = 0; good && i < verbs->n_rails; i++)
        good = prepare(verbs, &verbs->rails[i]);
    verbs->near.open = good;
    if (good)
        GPSH_LOG(INFO, "verbs",
                 "room for %zu queues of kernels in %s memory, %u requests each, made by devx",
                 verbs->near.n_slots,
                 verbs->near.memory.kind == GPSH_MEMORY_DEVICE ? "GPU" : "host",
                 verbs->kernel_depth);
    else
        GPSH_LOG(INFO, "verbs", "queues of kernels are in host memory, made by libibverbs: %s",
                 verbs->near.why);
}

void gpsh_verbs_near_close(struct gpsh_verbs *verbs)
{
    for (int i = 0; i < verbs->n_rails; i++) {
        if (verbs->rails[i].answers)
            ibv_dereg_mr(verbs->rails[i].answers);
        if (verbs->rails[i].umem)
            mlx5.umem_dereg(verbs->rails[i].umem);
        verbs->rails[i].answers = NULL;
        verbs->rails[i].umem = NULL;
    }
    if (verbs->near.memory.base)
        verbs->env.kernel_memory_free(verbs->env.arg, &verbs->near.memory);
    free(verbs->near.taken);
    verbs->near = (struct verbs_near){0};
}

// ---- A queue pair ----

struct verbs_devx {
    struct mlx5dv_devx_obj *cq, *qp;
    struct mlx5dv_devx_uar *uar;
    size_t slot; // of verbs_near
    uint32_t cqn, qpn;
};

static char *slot_at(const struct gpsh_verbs *verbs, size_t slot)
{
    return verbs->near.memory.base + slot * verbs->near.slot_bytes;
}

// Zeroes, and completions that are not there.
static int slot_clear(struct gpsh_verbs *verbs, size_t slot)
{
    size_t bytes = verbs->near.slot_bytes;
    char *image = calloc(1, bytes);
    if (!image)
        return ENOMEM;
    for (uint32_t i = 0; i < cqes_of(verbs); i++)
        image[cq_offset(verbs) + (size_t)(i + 1) * BLOCK - 1] = (char)(MLX5_CQE_INVALID << 4);
    int status = verbs->near.memory.kind == GPSH_MEMORY_DEVICE
                     ? verbs->env.copy(slot_at(verbs, slot), image, bytes)
                     : (memcpy(slot_at(verbs, slot), image, bytes), 0);
    free(image);
    return status ? EIO : 0;
}

static int slot_take(struct gpsh_verbs *verbs, size_t *slot)
{
    pthread_mutex_lock(&verbs->queue_pairs);
    for (*slot = 0; *slot < verbs->near.n_slots && verbs->near.taken[*slot];)
        ++*slot;
    bool found = *slot < verbs->near.n_slots;
    if (found)
        verbs->near.taken[*slot] = true;
    pthread_mutex_unlock(&verbs->queue_pairs);
    return found ? slot_clear(verbs, *slot) : ENOSPC;
}

static int make_cq(const struct gpsh_verbs *verbs, struct verbs_rail *rail, struct verbs_devx *devx)
{
    uint64_t at = devx->slot * verbs->near.slot_bytes;
    struct mailbox box = mailbox_for(CREATE_CQ, 0);
    put(&box, CQC(0x6, 1), 1); // dbr_umem_valid
    put(&box, CQC(0x20, 32), rail->umem->umem_id);
    put(&box, CQC(0x1c0, 64), at + records_offset(verbs) + CQ_RECORD);
    put(&box, CQC(0x63, 5), (uint64_t)__builtin_ctz(cqes_of(verbs)));
    put(&box, CQC(0x68, 24), devx->uar->page_id);
    put(&box, CQC(0xb8, 8), rail->eqn);
    put(&box, BOX(0x280, 64), at + cq_offset(verbs));
    put(&box, BOX(0x2c0, 32), rail->umem->umem_id);
    put(&box, BOX(0x2e0, 1), 1); // cq_umem_valid
    devx->cq = make(rail->context, &box, &devx->cqn);
    return devx->cq ? 0 : errno;
}

static int make_qp(const struct gpsh_verbs *verbs, struct verbs_rail *rail, struct verbs_devx *devx)
{
    uint64_t at = devx->slot * verbs->near.slot_bytes;
    struct mailbox box = mailbox_for(CREATE_QP, 0);
    put(&box, QPC(0x13, 2), MIGRATED);
    put(&box, QPC(0x28, 24), rail->pdn);
    put(&box, QPC(0x51, 4), (uint64_t)__builtin_ctz(verbs->kernel_depth)); // log_sq_size
    put(&box, QPC(0x68, 24), devx->uar->page_id);
    put(&box, QPC(0x88, 24), NO_INDEX);
    put(&box, QPC(0x3e8, 24), devx->cqn); // of sends
    put(&box, QPC(0x4e8, 24), devx->cqn); // of receives
    put(&box, QPC(0x500, 64), at + records_offset(verbs));
    put(&box, QPC(0x565, 3), NO_RECEIVES);
    put(&box, QPC(0x683, 1), 1); // dbr_umem_valid
    put(&box, QPC(0x720, 32), rail->umem->umem_id);
    put(&box, BOX(0x800, 64), at); // wq_umem_offset
    put(&box, BOX(0x840, 32), rail->umem->umem_id);
    put(&box, BOX(0x860, 1), 1); // wq_umem_valid
    devx->qp = make(rail->context, &box, &devx->qpn);
    return devx->qp ? 0 : errno;
}

// A register of its own: what is written there for one queue is not lost to another's.
static int make_all(struct gpsh_verbs *verbs, struct verbs_rail *rail, struct verbs_devx *devx)
{
    devx->uar = mlx5.alloc_uar(rail->context, MLX5DV_UAR_ALLOC_TYPE_BF);
    if (!devx->uar)
        devx->uar = mlx5.alloc_uar(rail->context, MLX5DV_UAR_ALLOC_TYPE_NC);
    int error = devx->uar ? 0 : errno;
    if (!error)
        error = make_cq(verbs, rail, devx);
    return error ? error : make_qp(verbs, rail, devx);
}

static void unmake(struct gpsh_verbs *verbs, struct verbs_devx *devx)
{
    if (devx->qp)
        mlx5.obj_destroy(devx->qp);
    if (devx->cq)
        mlx5.obj_destroy(devx->cq);
    if (devx->uar)
        mlx5.free_uar(devx->uar);
    if (devx->slot < verbs->near.n_slots)
        verbs->near.taken[devx->slot] = false;
    free(devx);
}

bool gpsh_verbs_devx_create(struct verbs_lane *lane)
{
    struct gpsh_verbs *verbs = lane->flow->channel->verbs;
    struct verbs_rail *rail = &verbs->rails[lane->rail];
    struct verbs_devx *devx = verbs->near.open ? calloc(1, sizeof *devx) : NULL;
    if (!devx)
        return false;
    int error = slot_take(verbs, &devx->slot);
    if (!error)
        error = make_all(verbs, rail, devx);
    pthread_mutex_lock(&verbs->queue_pairs);
    if (error)
        unmake(verbs, devx);
    else
        lane->devx = devx;
    pthread_mutex_unlock(&verbs->queue_pairs);
    if (error)
        GPSH_LOG(INFO, "verbs",
                 "%s makes no queue for kernels by devx (%s): the one to PE %d is in host memory",
                 rail->name, error == ENOSPC ? "their memory is used up" : strerror(error),
                 lane->flow->pe);
    else
        lane->qpn = devx->qpn;
    return !error;
}

void gpsh_verbs_devx_destroy(struct verbs_lane *lane)
{
    if (lane->devx)
        unmake(lane->flow->channel->verbs, lane->devx);
    lane->devx = NULL;
}

void gpsh_verbs_devx_show(const struct verbs_lane *lane, struct gpsh_kernel_queue *out)
{
    const struct gpsh_verbs *verbs = lane->flow->channel->verbs;
    char *at = slot_at(verbs, lane->devx->slot), *records = at + records_offset(verbs);
    out->sq = at;
    out->cq = at + cq_offset(verbs);
    out->sq_record = (uint32_t *)(void *)records + MLX5_SND_DBR;
    out->cq_record = (uint32_t *)(void *)(records + CQ_RECORD);
    out->doorbell = lane->devx->uar->reg_addr;
    out->entries = out->depth = verbs->kernel_depth;
    out->cqes = cqes_of(verbs);
    out->cqe_bytes = BLOCK;
    out->answers = (uint64_t *)(void *)(verbs->near.memory.base + answers_offset(&verbs->near));
    out->answers_lkey = verbs->rails[lane->rail].answers->lkey;
    out->near_gpu = verbs->near.memory.kind == GPSH_MEMORY_DEVICE;
}

// ---- States ----

static int modify(const struct verbs_lane *lane, const struct mailbox *box, size_t bytes)
{
    uint32_t out[4] = {0};
    return mlx5.obj_modify(lane->devx->qp, box, bytes, out, sizeof out);
}

static int to_init(const struct verbs_lane *lane, const struct ibv_qp_attr *attr)
{
    unsigned access = attr->qp_access_flags;
    struct mailbox box = mailbox_for(RST2INIT, lane->qpn);
    put(&box, QPC(0x13, 2), MIGRATED);
    put(&box, PATH(0x10, 16), attr->pkey_index);
    put(&box, PATH(0x128, 8), attr->port_num);
    put(&box, QPC(0x490, 1), !!(access & IBV_ACCESS_REMOTE_READ));
    put(&box, QPC(0x491, 1), !!(access & IBV_ACCESS_REMOTE_WRITE));
    put(&box, QPC(0x492, 1), !!(access & IBV_ACCESS_REMOTE_ATOMIC));
    put(&box, QPC(0x48c, 4), ATOMIC_MODE_IB);
    return modify(lane, &box, sizeof box);
}

// On Ethernet the kernel knows the MAC of a GID, and the port that packets are to come from. It
// tells both with the address of a datagram.
static int put_ethernet(struct mailbox *box, const struct verbs_rail *rail,
                        struct ibv_ah_attr *path)
{
    struct mlx5dv_ah address = {0};
    struct ibv_ah *ah = ibv_create_ah(rail->pd, path);
    struct mlx5dv_obj object = {.ah = {.in = ah, .out = &address}};
    uint64_t mac = 0;
    if (!ah)
        return errno;
    int error = mlx5.init_obj(&object, MLX5DV_OBJ_AH);
    for (int i = 0; !error && i < 6; i++)
        mac = mac << 8 | address.av->rmac[i];
    if (!error) {
        put(box, PATH(0x110, 16), be16toh(address.av->rlid)); // udp_sport
        put(box, PATH(0x121, 3), path->sl & 7);
        put(box, PATH(0x130, 16), mac >> 32);
        put(box, PATH(0x140, 32), (uint32_t)mac);
    }
    ibv_destroy_ah(ah);
    return error;
}

static void put_infiniband(struct mailbox *box, const struct ibv_ah_attr *path)
{
    put(box, PATH(0x28, 1), path->is_global);
    put(box, PATH(0x29, 7), path->src_path_bits);
    put(box, PATH(0x30, 16), path->dlid);
    put(box, PATH(0x124, 4), path->sl);
}

static int put_path(struct mailbox *box, const struct verbs_rail *rail, struct ibv_ah_attr *path)
{
    put(box, PATH(0x128, 8), path->port_num);
    if (path->is_global) {
        put(box, PATH(0x48, 8), path->grh.sgid_index);
        put(box, PATH(0x58, 8), path->grh.hop_limit);
        put(box, PATH(0x64, 8), path->grh.traffic_class);
        put(box, PATH(0x6c, 20), path->grh.flow_label);
        put(box, PATH(0x80, 64), be64toh(path->grh.dgid.global.subnet_prefix));
        put(box, PATH(0xc0, 64), be64toh(path->grh.dgid.global.interface_id));
    }
    if (rail->ethernet)
        return put_ethernet(box, rail, path);
    put_infiniband(box, path);
    return 0;
}

// Counts of reads and atomics under way, as powers of two.
static uint64_t log2_below(uint32_t count)
{
    return count ? 31 - (uint64_t)__builtin_clz(count) : 0;
}

static int to_rtr(const struct verbs_lane *lane, struct ibv_qp_attr *attr)
{
    const struct gpsh_verbs *verbs = lane->flow->channel->verbs;
    struct mailbox box = mailbox_for(INIT2RTR, lane->qpn);
    put(&box, QPC(0x40, 3), attr->path_mtu);
    put(&box, QPC(0x43, 5), RC_MESSAGE_LOG2);
    put(&box, QPC(0xa8, 24), attr->dest_qp_num);
    put(&box, QPC(0x488, 3), log2_below(attr->max_dest_rd_atomic));
    put(&box, QPC(0x4a3, 5), attr->min_rnr_timer);
    put(&box, QPC(0x4a8, 24), attr->rq_psn);
    put(&box, PATH(0x10, 16), (uint64_t)verbs->env.settings->verbs_pkey_index);
    int error = put_path(&box, &verbs->rails[lane->rail], &attr->ah_attr);
    return error ? error : modify(lane, &box, sizeof box);
}

static int to_rts(const struct verbs_lane *lane, const struct ibv_qp_attr *attr)
{
    struct mailbox box = mailbox_for(RTR2RTS, lane->qpn);
    put(&box, PATH(0x40, 5), attr->timeout);
    put(&box, QPC(0x388, 3), log2_below(attr->max_rd_atomic));
    put(&box, QPC(0x38d, 3), attr->retry_cnt);
    put(&box, QPC(0x390, 3), attr->rnr_retry);
    put(&box, QPC(0x3c8, 24), attr->sq_psn);
    return modify(lane, &box, sizeof box);
}

static int to_error(const struct verbs_lane *lane)
{
    enum { BYTES = 0x10 }; // of a mailbox that says nothing but the number
    struct mailbox box = mailbox_for(TO_ERR, lane->qpn);
    return modify(lane, &box, BYTES);
}

int gpsh_verbs_devx_modify(const struct verbs_lane *lane, struct ibv_qp_attr *attr)
{
    switch (attr->qp_state) {
    case IBV_QPS_INIT: return to_init(lane, attr);
    case IBV_QPS_RTR: return to_rtr(lane, attr);
    case IBV_QPS_RTS: return to_rts(lane, attr);
    default: return to_error(lane);
    }
}
