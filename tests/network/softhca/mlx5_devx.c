// SPDX-License-Identifier: BSD-3-Clause
// Objects by commands to the firmware (devx): queues in memory that the program has registered, and
// the states of its queue pairs.
#define _GNU_SOURCE // endian.h
#include <errno.h>

#include "mlx5_mailbox.h"
#include "mlx5_umem.h"

enum { PAGE = 4096, CQE_BYTES = 64 };

SHCA_EXPORT int gpushmem_softhca_query_eqn(struct ibv_context *context, uint32_t vector,
                                           uint32_t *eqn);
SHCA_EXPORT struct mlx5dv_devx_obj *gpushmem_softhca_obj_create(struct ibv_context *context,
                                                                const void *in, size_t in_bytes,
                                                                void *out, size_t out_bytes);
SHCA_EXPORT int gpushmem_softhca_obj_modify(struct mlx5dv_devx_obj *object, const void *in,
                                            size_t in_bytes, void *out, size_t out_bytes);
SHCA_EXPORT int gpushmem_softhca_obj_destroy(struct mlx5dv_devx_obj *object);

int gpushmem_softhca_query_eqn(struct ibv_context *context, uint32_t vector, uint32_t *eqn)
{
    (void)context;
    if (!shca_settings.devx || vector)
        return EOPNOTSUPP;
    *eqn = SHCA_DEVX_EQN;
    return 0;
}

struct mlx5dv_devx_obj {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct shca_umem *umem, *records;
    struct shca_uar *uar;
    uint32_t number;
    struct mlx5dv_devx_obj *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of the list
static struct mlx5dv_devx_obj *objects;

// The part of a registered memory that the mailbox names, or NULL.
static char *place_of(const struct shca_mailbox *box, const char *id, const char *offset,
                      size_t bytes, size_t alignment, struct shca_umem **found)
{
    uint64_t number = shca_mailbox_value(box, id), at = shca_mailbox_value(box, offset);
    struct shca_umem *umem = *found = shca_umem_numbered(number);
    if (umem && !(at % alignment) && at <= umem->bytes && bytes <= umem->bytes - at)
        return umem->base + at;
    if (!umem)
        shca_misuse(SHCA_MISUSE_DEVX_UMEM, box->number,
                    "%s: %s is %llu, which is no registered memory", box->command->name, id,
                    (unsigned long long)number);
    else
        shca_misuse(SHCA_MISUSE_DEVX_UMEM, box->number,
                    "%s: %s is 0x%llx: %zu bytes from there on, aligned to %zu, are not in the "
                    "memory of %zu",
                    box->command->name, offset, (unsigned long long)at, bytes, alignment,
                    umem->bytes);
    return NULL;
}

static bool find_uar(const struct shca_mailbox *box, struct mlx5dv_devx_obj *object)
{
    uint64_t page = shca_mailbox_value(box, "uar_page");
    object->uar = shca_uar_numbered(page);
    return object->uar ||
           SHCA_MAILBOX_REFUSE(box, DEVX_FIELD, "%s: uar_page is %llu, which is no UAR",
                               box->command->name, (unsigned long long)page);
}

static struct ibv_cq *cq_numbered(const struct shca_mailbox *box, const char *name)
{
    uint64_t number = shca_mailbox_value(box, name);
    pthread_mutex_lock(&lock);
    struct mlx5dv_devx_obj *object = objects;
    while (object && !(object->cq && object->number == number))
        object = object->next;
    struct ibv_cq *cq = object ? object->cq : NULL;
    pthread_mutex_unlock(&lock);
    if (!cq)
        shca_misuse(SHCA_MISUSE_DEVX_FIELD, 0, "%s: %s is %llu, which is no completion queue",
                    box->command->name, name, (unsigned long long)number);
    return cq;
}

// Ring and record of a queue, by the names of the fields that say where they are.
static bool memory_find(const struct shca_mailbox *box, struct mlx5dv_devx_obj *object,
                        const char *const fields[4], size_t ring_bytes,
                        struct shca_mlx5_memory *memory)
{
    memory->ring = place_of(box, fields[0], fields[1], ring_bytes, PAGE, &object->umem);
    memory->record = place_of(box, fields[2], fields[3], 8, 8, &object->records);
    if (!memory->ring || !memory->record)
        return false;
    memory->gpu = object->umem->kind == SHCA_UMEM_OF_GPU;
    if (memory->gpu != (object->records->kind == SHCA_UMEM_OF_GPU))
        return SHCA_MAILBOX_REFUSE(
            box, DEVX_UMEM,
            "%s: its ring and its record are one in GPU memory and one not, which this "
            "NIC does not do",
            box->command->name);
    return true;
}

static bool cqes_check(struct ibv_context *context, const struct shca_mailbox *box,
                       const struct shca_mlx5_memory *memory, uint32_t entries)
{
    size_t bytes = (size_t)entries * CQE_BYTES;
    char *copy = memory->gpu ? malloc(bytes) : NULL;
    const char *ring = memory->gpu ? copy : memory->ring;
    uint32_t valid = 0;
    if (copy && shca_gpu_look(shca_device_of(context), copy, memory->ring, bytes) != IBV_WC_SUCCESS)
        ring = NULL;
    while (ring && valid < entries &&
           (unsigned char)ring[(size_t)(valid + 1) * CQE_BYTES - 1] >> 4 == MLX5_CQE_INVALID)
        valid++;
    free(copy);
    return valid == entries ||
           SHCA_MAILBOX_REFUSE(box, DEVX_CQE, "CREATE_CQ: entry %u is not marked as invalid",
                               valid);
}

static bool cq_make(struct ibv_context *context, const struct shca_mailbox *box,
                    struct mlx5dv_devx_obj *object)
{
    static const char *const fields[] = {"cq_umem_id", "cq_umem_offset", "dbr_umem_id", "dbr_addr"};
    static _Atomic uint32_t last;
    struct shca_mlx5_memory memory;
    uint32_t entries = 1u << shca_mailbox_value(box, "log_cq_size");
    if (!memory_find(box, object, fields, (size_t)entries * CQE_BYTES, &memory) ||
        !find_uar(box, object) || !cqes_check(context, box, &memory, entries))
        return false;
    object->cq = ibv_create_cq(context, (int)entries, NULL, NULL, 0);
    if (!object->cq)
        return false;
    int error = shca_mlx5_cq_place(object->cq, &memory, entries);
    object->number = ++last;
    if (error) {
        ibv_destroy_cq(object->cq);
        errno = error;
    }
    return !error;
}

static struct ibv_qp *qp_make_plain(struct ibv_context *context, const struct shca_mailbox *box,
                                    struct ibv_cq *send, struct ibv_cq *receive)
{
    struct ibv_pd *pd = shca_pd_numbered(context, (uint32_t)shca_mailbox_value(box, "pd"));
    struct ibv_qp_init_attr init = {
        .send_cq = send,
        .recv_cq = receive,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 1u << shca_mailbox_value(box, "log_sq_size"),
                .max_send_sge = (uint32_t)shca_settings.max_sge,
                .max_inline_data = (uint32_t)shca_settings.max_inline},
    };
    if (!pd)
        shca_misuse(SHCA_MISUSE_DEVX_FIELD, 0, "CREATE_QP: pd is %u, which is no protection domain",
                    (uint32_t)shca_mailbox_value(box, "pd"));
    return pd ? ibv_create_qp(pd, &init) : NULL;
}

static bool qp_make(struct ibv_context *context, const struct shca_mailbox *box,
                    struct mlx5dv_devx_obj *object)
{
    static const char *const fields[] = {"wq_umem_id", "wq_umem_offset", "dbr_umem_id", "dbr_addr"};
    struct shca_mlx5_memory memory;
    uint32_t blocks = 1u << shca_mailbox_value(box, "log_sq_size");
    bool found = memory_find(box, object, fields, (size_t)blocks * MLX5_SEND_WQE_BB, &memory);
    struct ibv_cq *send = cq_numbered(box, "cqn_snd"), *receive = cq_numbered(box, "cqn_rcv");
    if (!found || !send || !receive || !find_uar(box, object))
        return false;
    object->qp = qp_make_plain(context, box, send, receive);
    if (!object->qp)
        return false;
    object->number = object->qp->qp_num;
    ((struct shca_qp *)object->qp)->by_devx = true;
    int error = shca_mlx5_queue_place(object->qp, &memory, blocks, object->uar->ibv.reg_addr);
    if (error)
        ibv_destroy_qp(object->qp);
    return !error;
}

static void count_uses(const struct mlx5dv_devx_obj *object, int more)
{
    shca_umem_use(object->umem, more);
    shca_umem_use(object->records, more);
    shca_uar_use(object->uar, more);
}

struct mlx5dv_devx_obj *gpushmem_softhca_obj_create(struct ibv_context *context, const void *in,
                                                    size_t in_bytes, void *out, size_t out_bytes)
{
    struct mlx5dv_devx_obj *object = calloc(1, sizeof *object);
    struct shca_mailbox box;
    if (!shca_settings.devx || !object) {
        free(object);
        return shca_devx_refuse(EOPNOTSUPP);
    }
    bool good = shca_mailbox_open(&box, in, in_bytes, 0, true) &&
                (box.command->opcode == SHCA_DEVX_CREATE_CQ ? cq_make(context, &box, object)
                                                            : qp_make(context, &box, object));
    int error = shca_mailbox_answer(out, out_bytes, good, object->number);
    if (!good) {
        free(object);
        return shca_devx_refuse(error);
    }
    count_uses(object, 1);
    pthread_mutex_lock(&lock);
    object->next = objects;
    objects = object;
    pthread_mutex_unlock(&lock);
    return object;
}

int gpushmem_softhca_obj_destroy(struct mlx5dv_devx_obj *object)
{
    int error = object->qp ? ibv_destroy_qp(object->qp) : ibv_destroy_cq(object->cq);
    if (error)
        return error;
    count_uses(object, -1);
    pthread_mutex_lock(&lock);
    struct mlx5dv_devx_obj **at = &objects;
    while (*at != object)
        at = &(*at)->next;
    *at = object->next;
    pthread_mutex_unlock(&lock);
    free(object);
    return 0;
}

// ---- States ----

static int to_init(const struct shca_mailbox *box, struct ibv_qp *qp)
{
    unsigned access = (shca_mailbox_value(box, "rre") ? IBV_ACCESS_REMOTE_READ : 0u) |
                      (shca_mailbox_value(box, "rwe") ? IBV_ACCESS_REMOTE_WRITE : 0u) |
                      (shca_mailbox_value(box, "rae") ? IBV_ACCESS_REMOTE_ATOMIC : 0u);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access};
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

// What only Ethernet has, and what only InfiniBand has.
static bool link_check(const struct shca_mailbox *box)
{
    bool ethernet = shca_settings.link == IBV_LINK_LAYER_ETHERNET;
    static const char *const only[2][4] = {{"grh", "rlid", "sl", NULL},
                                           {"udp_sport", "eth_prio", "rmac", NULL}};
    for (int i = 0; only[!ethernet][i]; i++)
        if (shca_mailbox_value(box, only[!ethernet][i]))
            return SHCA_MAILBOX_REFUSE(box, DEVX_FIELD, "INIT2RTR_QP: %s is set on a port of %s",
                                       only[!ethernet][i], ethernet ? "Ethernet" : "InfiniBand");
    if (!ethernet)
        return true;
    unsigned char mac[6], right[6];
    uint64_t value = htobe64(shca_mailbox_value(box, "rmac") << 16);
    memcpy(mac, &value, sizeof mac);
    shca_mlx5_mac_of(shca_mailbox_bytes(box, "rgid_rip"), right);
    if (memcmp(mac, right, sizeof mac) != 0)
        return SHCA_MAILBOX_REFUSE(box, DEVX_FIELD,
                                   "INIT2RTR_QP: rmac is not that of its rgid_rip");
    return shca_mailbox_value(box, "udp_sport") >= 0xc000 ||
           SHCA_MAILBOX_REFUSE(box, DEVX_FIELD, "INIT2RTR_QP: udp_sport is %u, below 49152",
                               (unsigned)shca_mailbox_value(box, "udp_sport"));
}

static int to_ready(const struct shca_mailbox *box, struct ibv_qp *qp)
{
    bool ethernet = shca_settings.link == IBV_LINK_LAYER_ETHERNET;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = (enum ibv_mtu)shca_mailbox_value(box, "mtu"),
        .dest_qp_num = (uint32_t)shca_mailbox_value(box, "remote_qpn"),
        .rq_psn = (uint32_t)shca_mailbox_value(box, "next_rcv_psn"),
        .max_dest_rd_atomic = (uint8_t)(1u << shca_mailbox_value(box, "log_rra_max")),
        .min_rnr_timer = (uint8_t)shca_mailbox_value(box, "min_rnr_nak"),
        .ah_attr = {.port_num = 1,
                    .dlid = (uint16_t)shca_mailbox_value(box, "rlid"),
                    .sl = (uint8_t)shca_mailbox_value(box, ethernet ? "eth_prio" : "sl"),
                    .is_global = ethernet || shca_mailbox_value(box, "grh")},
    };
    attr.ah_attr.grh.sgid_index = (uint8_t)shca_mailbox_value(box, "src_addr_index");
    attr.ah_attr.grh.hop_limit = (uint8_t)shca_mailbox_value(box, "hop_limit");
    attr.ah_attr.grh.traffic_class = (uint8_t)shca_mailbox_value(box, "tclass");
    attr.ah_attr.grh.flow_label = (uint32_t)shca_mailbox_value(box, "flow_label");
    memcpy(attr.ah_attr.grh.dgid.raw, shca_mailbox_bytes(box, "rgid_rip"), 16);
    if (!link_check(box))
        return EINVAL;
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_send(const struct shca_mailbox *box, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = (uint32_t)shca_mailbox_value(box, "next_send_psn"),
        .timeout = (uint8_t)shca_mailbox_value(box, "ack_timeout"),
        .retry_cnt = (uint8_t)shca_mailbox_value(box, "retry_count"),
        .rnr_retry = (uint8_t)shca_mailbox_value(box, "rnr_retry"),
        .max_rd_atomic = (uint8_t)(1u << shca_mailbox_value(box, "log_sra_max")),
    };
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static bool modify(const struct shca_mailbox *box, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = box->command->opcode == SHCA_DEVX_TO_ERR ? IBV_QPS_ERR : IBV_QPS_RESET};
    enum ibv_qp_state now = (enum ibv_qp_state)atomic_load(&((struct shca_qp *)qp)->entry->state);
    if (shca_mailbox_value(box, "qpn") != qp->qp_num)
        return SHCA_MAILBOX_REFUSE(box, DEVX_FIELD, "%s: qpn is 0x%06x", box->command->name,
                                   (unsigned)shca_mailbox_value(box, "qpn"));
    if (box->command->from != IBV_QPS_SQE && box->command->from != now)
        return SHCA_MAILBOX_REFUSE(box, DEVX_STATE, "%s in state %u", box->command->name, now);
    switch (box->command->opcode) {
    case SHCA_DEVX_RST2INIT: return !to_init(box, qp);
    case SHCA_DEVX_INIT2RTR: return !to_ready(box, qp);
    case SHCA_DEVX_RTR2RTS: return !to_send(box, qp);
    default: return !ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    }
}

int gpushmem_softhca_obj_modify(struct mlx5dv_devx_obj *object, const void *in, size_t in_bytes,
                                void *out, size_t out_bytes)
{
    struct shca_mailbox box;
    bool good = object->qp && shca_mailbox_open(&box, in, in_bytes, object->number, false) &&
                modify(&box, object->qp);
    return shca_mailbox_answer(out, out_bytes, good, 0);
}
