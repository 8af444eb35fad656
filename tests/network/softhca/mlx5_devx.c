// SPDX-License-Identifier: BSD-3-Clause
// Objects by commands to the firmware (devx): queues in memory that the program has registered.
// The mailboxes are those of the PRM, by their bits, as libraries of mlx5 write them. A field that
// this NIC does not know has to be 0, and one that it knows has to be right: the complaint names
// it. This table is written apart from that of transports/verbs, so that each is a test of the
// other.
#define _GNU_SOURCE // endian.h, pread
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mlx5.h"

enum {
    CREATE_CQ = 0x400,
    CREATE_QP = 0x500,
    RST2INIT = 0x502,
    INIT2RTR = 0x503,
    RTR2RTS = 0x504,
    TO_ERR = 0x507,
    TO_RESET = 0x50a,
    CREATE_BYTES = 0x110, // of the mailboxes of queue pairs and completion queues
    STATE_BYTES = 0x10,   // of those that say nothing but a state
    ANSWER_BYTES = 0x10,
    PAGE = 4096,
    FIRST_UMEM = 0x40,
    EQN = 7,
    CQE_BYTES = 64,
    BAD_PARAMETER = 3, // status of the firmware
};

enum rule {
    ANY,   // looked at elsewhere
    IS,    // one value only
    LIMIT, // at most
};

struct field {
    const char *name;
    uint16_t bit;
    uint8_t bits;
    uint8_t rule;
    uint32_t value;
};

#define QPC(bit)  (0xc0 + (bit))
#define PATH(bit) QPC(0xc0 + (bit))
#define CQC(bit)  (0x80 + (bit))

#define OPCODE                                                                                     \
    {                                                                                              \
        "opcode", 0, 16, ANY, 0                                                                    \
    }
#define NUMBER                                                                                     \
    {                                                                                              \
        "qpn", 0x48, 24, ANY, 0                                                                    \
    }
#define MIGRATED                                                                                   \
    {                                                                                              \
        "pm_state", QPC(0x13), 2, IS, 3                                                            \
    }

static const struct field cq_fields[] = {
    OPCODE,
    {"dbr_umem_valid", CQC(0x6), 1, IS, 1},
    {"log_cq_size", CQC(0x63), 5, LIMIT, 22},
    {"uar_page", CQC(0x68), 24, ANY, 0},
    {"c_eqn", CQC(0xb8), 8, IS, EQN},
    {"dbr_umem_id", CQC(0x20), 32, ANY, 0},
    {"dbr_addr", CQC(0x1c0), 64, ANY, 0},
    {"cq_umem_offset", 0x280, 64, ANY, 0},
    {"cq_umem_id", 0x2c0, 32, ANY, 0},
    {"cq_umem_valid", 0x2e0, 1, IS, 1},
    {0},
};

static const struct field qp_fields[] = {
    OPCODE,
    MIGRATED,
    {"st", QPC(0x8), 8, IS, 0},
    {"pd", QPC(0x28), 24, ANY, 0},
    {"no_sq", QPC(0x50), 1, IS, 0},
    {"log_sq_size", QPC(0x51), 4, LIMIT, 15},
    {"uar_page", QPC(0x68), 24, ANY, 0},
    {"user_index", QPC(0x88), 24, IS, 0xffffff},
    {"cqn_snd", QPC(0x3e8), 24, ANY, 0},
    {"cqn_rcv", QPC(0x4e8), 24, ANY, 0},
    {"dbr_addr", QPC(0x500), 64, ANY, 0},
    {"rq_type", QPC(0x565), 3, IS, 3}, // of size 0
    {"dbr_umem_valid", QPC(0x683), 1, IS, 1},
    {"dbr_umem_id", QPC(0x720), 32, ANY, 0},
    {"wq_umem_offset", 0x800, 64, ANY, 0},
    {"wq_umem_id", 0x840, 32, ANY, 0},
    {"wq_umem_valid", 0x860, 1, IS, 1},
    {0},
};

static const struct field init_fields[] = {
    OPCODE,
    NUMBER,
    MIGRATED,
    {"pkey_index", PATH(0x10), 16, IS, 0},
    {"vhca_port_num", PATH(0x128), 8, IS, 1},
    {"atomic_mode", QPC(0x48c), 4, IS, 1}, // as InfiniBand has them
    {"rre", QPC(0x490), 1, ANY, 0},
    {"rwe", QPC(0x491), 1, ANY, 0},
    {"rae", QPC(0x492), 1, ANY, 0},
    {0},
};

static const struct field ready_fields[] = {
    OPCODE,
    NUMBER,
    {"mtu", QPC(0x40), 3, LIMIT, IBV_MTU_4096},
    {"log_msg_max", QPC(0x43), 5, IS, 30},
    {"remote_qpn", QPC(0xa8), 24, ANY, 0},
    {"log_rra_max", QPC(0x488), 3, LIMIT, 4},
    {"min_rnr_nak", QPC(0x4a3), 5, ANY, 0},
    {"next_rcv_psn", QPC(0x4a8), 24, ANY, 0},
    {"pkey_index", PATH(0x10), 16, IS, 0},
    {"grh", PATH(0x28), 1, ANY, 0},
    {"rlid", PATH(0x30), 16, ANY, 0},
    {"src_addr_index", PATH(0x48), 8, ANY, 0},
    {"hop_limit", PATH(0x58), 8, ANY, 0},
    {"tclass", PATH(0x64), 8, ANY, 0},
    {"flow_label", PATH(0x6c), 20, ANY, 0},
    {"rgid_rip", PATH(0x80), 128, ANY, 0},
    {"udp_sport", PATH(0x110), 16, ANY, 0},
    {"eth_prio", PATH(0x121), 3, ANY, 0},
    {"sl", PATH(0x124), 4, ANY, 0},
    {"vhca_port_num", PATH(0x128), 8, IS, 1},
    {"rmac", PATH(0x130), 48, ANY, 0},
    {0},
};

static const struct field send_fields[] = {
    OPCODE,
    NUMBER,
    {"ack_timeout", PATH(0x40), 5, ANY, 0},
    {"log_ack_req_freq", QPC(0x380), 4, LIMIT, 8},
    {"log_sra_max", QPC(0x388), 3, LIMIT, 4},
    {"retry_count", QPC(0x38d), 3, ANY, 0},
    {"rnr_retry", QPC(0x390), 3, ANY, 0},
    {"next_send_psn", QPC(0x3c8), 24, ANY, 0},
    {0},
};

static const struct field state_fields[] = {OPCODE, NUMBER, {0}};

struct command {
    uint32_t opcode;
    const char *name;
    const struct field *fields;
    uint32_t bytes;
    bool creates;
    enum ibv_qp_state from; // of those that do not create; SQE: of any
};

static const struct command commands[] = {
    {CREATE_CQ, "CREATE_CQ", cq_fields, CREATE_BYTES, true, IBV_QPS_SQE},
    {CREATE_QP, "CREATE_QP", qp_fields, CREATE_BYTES, true, IBV_QPS_SQE},
    {RST2INIT, "RST2INIT_QP", init_fields, CREATE_BYTES, false, IBV_QPS_RESET},
    {INIT2RTR, "INIT2RTR_QP", ready_fields, CREATE_BYTES, false, IBV_QPS_INIT},
    {RTR2RTS, "RTR2RTS_QP", send_fields, CREATE_BYTES, false, IBV_QPS_RTR},
    {TO_ERR, "2ERR_QP", state_fields, STATE_BYTES, false, IBV_QPS_SQE},
    {TO_RESET, "2RST_QP", state_fields, STATE_BYTES, false, IBV_QPS_SQE},
};

// ---- Mailboxes ----

struct mail {
    const struct command *command;
    const unsigned char *in;
    uint32_t number; // of the queue pair it is about, or 0
};

static uint64_t bits_at(const unsigned char *in, uint32_t bit, uint32_t bits)
{
    uint64_t value = 0;
    for (uint32_t i = bit; i < bit + bits; i++)
        value = value << 1 | (in[i / 8] >> (7 - i % 8) & 1);
    return value;
}

static const struct field *field_named(const struct command *command, const char *name)
{
    const struct field *field = command->fields;
    while (strcmp(field->name, name) != 0)
        field++;
    return field;
}

static uint64_t value_of(const struct mail *mail, const char *name)
{
    const struct field *field = field_named(mail->command, name);
    return bits_at(mail->in, field->bit, field->bits);
}

#define REFUSE(mail, kind, ...)                                                                    \
    (shca_misuse(SHCA_MISUSE_##kind, (mail)->number, __VA_ARGS__), false)

static bool field_check(const struct mail *mail, const struct field *field)
{
    if (field->bits > 64 || field->rule == ANY)
        return true;
    uint64_t value = bits_at(mail->in, field->bit, field->bits);
    if (field->rule == IS && value != field->value)
        return REFUSE(mail, DEVX_FIELD, "%s: %s is %llu, and has to be %u", mail->command->name,
                      field->name, (unsigned long long)value, field->value);
    if (field->rule == LIMIT && value > field->value)
        return REFUSE(mail, DEVX_FIELD, "%s: %s is %llu, more than %u", mail->command->name,
                      field->name, (unsigned long long)value, field->value);
    return true;
}

// What belongs to no field that this NIC knows.
static bool rest_check(const struct mail *mail)
{
    unsigned char rest[CREATE_BYTES];
    memcpy(rest, mail->in, mail->command->bytes);
    for (const struct field *field = mail->command->fields; field->name; field++)
        for (uint32_t i = field->bit; i < (uint32_t)field->bit + field->bits; i++)
            rest[i / 8] &= (unsigned char)~(0x80 >> i % 8);
    for (uint32_t at = 0; at < mail->command->bytes; at++)
        if (rest[at])
            return REFUSE(mail, DEVX_RESERVED, "%s: byte 0x%x has bits 0x%02x of no known field",
                          mail->command->name, at, rest[at]);
    return true;
}

static bool mail_open(struct mail *mail, const void *in, size_t bytes, uint32_t number,
                      bool creates)
{
    uint32_t opcode = bytes >= 2 ? (uint32_t)bits_at(in, 0, 16) : 0;
    *mail = (struct mail){.in = in, .number = number};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].opcode == opcode && commands[i].creates == creates)
            mail->command = &commands[i];
    if (!mail->command)
        return REFUSE(mail, DEVX_OPCODE, "a command with opcode 0x%x", opcode);
    if (bytes != mail->command->bytes)
        return REFUSE(mail, DEVX_LENGTH, "%s: a mailbox of %zu bytes, and it has %u",
                      mail->command->name, bytes, mail->command->bytes);
    for (const struct field *field = mail->command->fields; field->name; field++)
        if (!field_check(mail, field))
            return false;
    return rest_check(mail);
}

// As the firmware and the kernel answer: a status, and an errno.
static int answer(void *out, size_t bytes, bool good, uint32_t number)
{
    unsigned char words[ANSWER_BYTES] = {(unsigned char)(good ? 0 : BAD_PARAMETER)};
    uint32_t big = htobe32(number);
    memcpy(words + 8, &big, sizeof big);
    memcpy(out, words, bytes < sizeof words ? bytes : sizeof words);
    return good ? 0 : EREMOTEIO;
}

// ---- Memory and registers ----

// Memory of the program's, a file that is mapped here, or GPU memory, which only copies reach.
enum umem_kind { OF_PROGRAM, OF_FILE, OF_GPU };

struct umem {
    struct mlx5dv_devx_umem ibv;
    struct umem *next;
    char *base;
    size_t bytes;
    enum umem_kind kind;
    uint32_t users;
};

struct uar {
    struct mlx5dv_devx_uar ibv;
    struct uar *next;
    uint32_t users;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct umem *umems;
static struct uar *uars;
static uint32_t last_umem = FIRST_UMEM, last_page;

static struct mlx5dv_devx_umem *umem_new(char *base, size_t bytes, enum umem_kind kind)
{
    struct umem *umem = calloc(1, sizeof *umem);
    if (!umem)
        return NULL;
    umem->base = base;
    umem->bytes = bytes;
    umem->kind = kind;
    pthread_mutex_lock(&lock);
    umem->ibv.umem_id = ++last_umem;
    umem->next = umems;
    umems = umem;
    pthread_mutex_unlock(&lock);
    return &umem->ibv;
}

SHCA_EXPORT struct mlx5dv_devx_umem *gpushmem_softhca_umem_reg(struct ibv_context *context,
                                                               struct mlx5dv_devx_umem_in *in);
SHCA_EXPORT int gpushmem_softhca_umem_dereg(struct mlx5dv_devx_umem *ibv);
SHCA_EXPORT struct mlx5dv_devx_uar *gpushmem_softhca_uar_alloc(struct ibv_context *context,
                                                               uint32_t flags);
SHCA_EXPORT void gpushmem_softhca_uar_free(struct mlx5dv_devx_uar *ibv);
SHCA_EXPORT int gpushmem_softhca_query_eqn(struct ibv_context *context, uint32_t vector,
                                           uint32_t *eqn);
SHCA_EXPORT struct mlx5dv_devx_obj *gpushmem_softhca_obj_create(struct ibv_context *context,
                                                                const void *in, size_t in_bytes,
                                                                void *out, size_t out_bytes);
SHCA_EXPORT int gpushmem_softhca_obj_modify(struct mlx5dv_devx_obj *object, const void *in,
                                            size_t in_bytes, void *out, size_t out_bytes);
SHCA_EXPORT int gpushmem_softhca_obj_destroy(struct mlx5dv_devx_obj *object);

static void *refuse(int error)
{
    errno = error;
    return NULL;
}

static struct mlx5dv_devx_umem *umem_on_gpu(struct ibv_context *context, char *base, size_t bytes)
{
    if (!shca_gpu_owns(base, 1) || !shca_gpu_owns(base + bytes - 1, 1))
        return refuse(EFAULT);
    if (shca_gpu_use(shca_device_of(context), (uintptr_t)base))
        return refuse(EIO);
    return umem_new(base, bytes, OF_GPU);
}

struct mlx5dv_devx_umem *gpushmem_softhca_umem_reg(struct ibv_context *context,
                                                   struct mlx5dv_devx_umem_in *in)
{
    if (!shca_settings.devx || (in->comp_mask & ~(uint64_t)MLX5DV_UMEM_MASK_DMABUF))
        return refuse(EOPNOTSUPP);
    if (!in->size || !(in->access & IBV_ACCESS_LOCAL_WRITE))
        return refuse(EINVAL);
    if (!(in->comp_mask & MLX5DV_UMEM_MASK_DMABUF))
        return shca_gpu_owns(in->addr, 1) ? umem_on_gpu(context, in->addr, in->size)
                                          : umem_new(in->addr, in->size, OF_PROGRAM);
    if (!shca_settings.dmabuf)
        return refuse(EOPNOTSUPP);
    // of a dma-buf the address is where in it the memory begins
    char *pointer = shca_dmabuf_pointer(in->dmabuf_fd, (uintptr_t)in->addr);
    if (pointer)
        return umem_on_gpu(context, pointer, in->size);
    void *at = mmap(NULL, in->size, PROT_READ | PROT_WRITE, MAP_SHARED, in->dmabuf_fd,
                    (off_t)(uintptr_t)in->addr);
    if (at == MAP_FAILED && !shca_settings.quiet)
        shca_say("a dma-buf is neither of registered GPU memory nor can it be mapped (%s)",
                 strerror(errno));
    return at == MAP_FAILED ? refuse(EINVAL) : umem_new(at, in->size, OF_FILE);
}

int gpushmem_softhca_umem_dereg(struct mlx5dv_devx_umem *ibv)
{
    struct umem *umem = (struct umem *)ibv;
    pthread_mutex_lock(&lock);
    bool used = umem->users;
    struct umem **at = &umems;
    while (!used && *at != umem)
        at = &(*at)->next;
    if (!used)
        *at = umem->next;
    pthread_mutex_unlock(&lock);
    if (used)
        return EBUSY;
    if (umem->kind == OF_FILE)
        munmap(umem->base, umem->bytes);
    free(umem);
    return 0;
}

struct mlx5dv_devx_uar *gpushmem_softhca_uar_alloc(struct ibv_context *context, uint32_t flags)
{
    (void)context;
    if (!shca_settings.devx || flags > MLX5DV_UAR_ALLOC_TYPE_NC)
        return refuse(EOPNOTSUPP);
    struct uar *uar = calloc(1, sizeof *uar);
    void *slot = uar ? shca_mlx5_slot_take(SHCA_MLX5_REGISTERS) : NULL;
    if (!slot) {
        free(uar);
        return refuse(ENOMEM);
    }
    uar->ibv.reg_addr = slot;
    uar->ibv.base_addr = (void *)((uintptr_t)slot & ~(uintptr_t)(PAGE - 1));
    pthread_mutex_lock(&lock);
    uar->ibv.page_id = ++last_page;
    uar->next = uars;
    uars = uar;
    pthread_mutex_unlock(&lock);
    return &uar->ibv;
}

void gpushmem_softhca_uar_free(struct mlx5dv_devx_uar *ibv)
{
    struct uar *uar = (struct uar *)ibv;
    pthread_mutex_lock(&lock);
    struct uar **at = &uars;
    while (*at != uar)
        at = &(*at)->next;
    *at = uar->next;
    pthread_mutex_unlock(&lock);
    if (uar->users)
        shca_misuse(SHCA_MISUSE_DEVX_FIELD, 0, "UAR %u is freed while %u queues use it",
                    uar->ibv.page_id, uar->users);
    shca_mlx5_slot_give(SHCA_MLX5_REGISTERS, uar->ibv.reg_addr);
    free(uar);
}

int gpushmem_softhca_query_eqn(struct ibv_context *context, uint32_t vector, uint32_t *eqn)
{
    (void)context;
    if (!shca_settings.devx || vector)
        return EOPNOTSUPP;
    *eqn = EQN;
    return 0;
}

// ---- Objects ----

struct mlx5dv_devx_obj {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct umem *umem, *records;
    struct uar *uar;
    uint32_t number;
    struct mlx5dv_devx_obj *next;
};

static struct mlx5dv_devx_obj *objects;

// The part of a registered memory that the mailbox names, or NULL.
static char *place_of(const struct mail *mail, const char *id, const char *offset, size_t bytes,
                      size_t alignment, struct umem **found)
{
    uint64_t number = value_of(mail, id), at = value_of(mail, offset);
    pthread_mutex_lock(&lock);
    struct umem *umem = umems;
    while (umem && umem->ibv.umem_id != number)
        umem = umem->next;
    *found = umem;
    pthread_mutex_unlock(&lock);
    if (umem && !(at % alignment) && at <= umem->bytes && bytes <= umem->bytes - at)
        return umem->base + at;
    if (!umem)
        shca_misuse(SHCA_MISUSE_DEVX_UMEM, mail->number,
                    "%s: %s is %llu, which is no registered memory", mail->command->name, id,
                    (unsigned long long)number);
    else
        shca_misuse(SHCA_MISUSE_DEVX_UMEM, mail->number,
                    "%s: %s is 0x%llx: %zu bytes from there on, aligned to %zu, are not in the "
                    "memory of %zu",
                    mail->command->name, offset, (unsigned long long)at, bytes, alignment,
                    umem->bytes);
    return NULL;
}

static bool find_uar(const struct mail *mail, struct mlx5dv_devx_obj *object)
{
    uint64_t page = value_of(mail, "uar_page");
    pthread_mutex_lock(&lock);
    struct uar *uar = uars;
    while (uar && uar->ibv.page_id != page)
        uar = uar->next;
    object->uar = uar;
    pthread_mutex_unlock(&lock);
    return uar || REFUSE(mail, DEVX_FIELD, "%s: uar_page is %llu, which is no UAR",
                         mail->command->name, (unsigned long long)page);
}

static struct ibv_cq *cq_numbered(const struct mail *mail, const char *name)
{
    uint64_t number = value_of(mail, name);
    pthread_mutex_lock(&lock);
    struct mlx5dv_devx_obj *object = objects;
    while (object && !(object->cq && object->number == number))
        object = object->next;
    struct ibv_cq *cq = object ? object->cq : NULL;
    pthread_mutex_unlock(&lock);
    if (!cq)
        shca_misuse(SHCA_MISUSE_DEVX_FIELD, 0, "%s: %s is %llu, which is no completion queue",
                    mail->command->name, name, (unsigned long long)number);
    return cq;
}

// Ring and record of a queue, by the names of the fields that say where they are.
static bool memory_find(const struct mail *mail, struct mlx5dv_devx_obj *object,
                        const char *const fields[4], size_t ring_bytes,
                        struct shca_mlx5_memory *memory)
{
    memory->ring = place_of(mail, fields[0], fields[1], ring_bytes, PAGE, &object->umem);
    memory->record = place_of(mail, fields[2], fields[3], 8, 8, &object->records);
    if (!memory->ring || !memory->record)
        return false;
    memory->gpu = object->umem->kind == OF_GPU;
    if (memory->gpu != (object->records->kind == OF_GPU))
        return REFUSE(mail, DEVX_UMEM,
                      "%s: its ring and its record are one in GPU memory and one not, which this "
                      "NIC does not do",
                      mail->command->name);
    return true;
}

static bool cqes_check(struct ibv_context *context, const struct mail *mail,
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
           REFUSE(mail, DEVX_CQE, "CREATE_CQ: entry %u is not marked as invalid", valid);
}

static bool cq_make(struct ibv_context *context, const struct mail *mail,
                    struct mlx5dv_devx_obj *object)
{
    static const char *const fields[] = {"cq_umem_id", "cq_umem_offset", "dbr_umem_id", "dbr_addr"};
    static _Atomic uint32_t last;
    struct shca_mlx5_memory memory;
    uint32_t entries = 1u << value_of(mail, "log_cq_size");
    if (!memory_find(mail, object, fields, (size_t)entries * CQE_BYTES, &memory) ||
        !find_uar(mail, object) || !cqes_check(context, mail, &memory, entries))
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

static struct ibv_qp *qp_make_plain(struct ibv_context *context, const struct mail *mail,
                                    struct ibv_cq *send, struct ibv_cq *receive)
{
    struct ibv_pd *pd = shca_pd_numbered(context, (uint32_t)value_of(mail, "pd"));
    struct ibv_qp_init_attr init = {
        .send_cq = send,
        .recv_cq = receive,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 1u << value_of(mail, "log_sq_size"),
                .max_send_sge = (uint32_t)shca_settings.max_sge,
                .max_inline_data = (uint32_t)shca_settings.max_inline},
    };
    if (!pd)
        shca_misuse(SHCA_MISUSE_DEVX_FIELD, 0, "CREATE_QP: pd is %u, which is no protection domain",
                    (uint32_t)value_of(mail, "pd"));
    return pd ? ibv_create_qp(pd, &init) : NULL;
}

static bool qp_make(struct ibv_context *context, const struct mail *mail,
                    struct mlx5dv_devx_obj *object)
{
    static const char *const fields[] = {"wq_umem_id", "wq_umem_offset", "dbr_umem_id", "dbr_addr"};
    struct shca_mlx5_memory memory;
    uint32_t blocks = 1u << value_of(mail, "log_sq_size");
    bool found = memory_find(mail, object, fields, (size_t)blocks * MLX5_SEND_WQE_BB, &memory);
    struct ibv_cq *send = cq_numbered(mail, "cqn_snd"), *receive = cq_numbered(mail, "cqn_rcv");
    if (!found || !send || !receive || !find_uar(mail, object))
        return false;
    object->qp = qp_make_plain(context, mail, send, receive);
    if (!object->qp)
        return false;
    object->number = object->qp->qp_num;
    ((struct shca_qp *)object->qp)->by_devx = true;
    int error = shca_mlx5_queue_place(object->qp, &memory, blocks, object->uar->ibv.reg_addr);
    if (error)
        ibv_destroy_qp(object->qp);
    return !error;
}

static void count_uses(const struct mlx5dv_devx_obj *object, uint32_t n)
{
    object->umem->users += n;
    object->records->users += n;
    object->uar->users += n;
}

struct mlx5dv_devx_obj *gpushmem_softhca_obj_create(struct ibv_context *context, const void *in,
                                                    size_t in_bytes, void *out, size_t out_bytes)
{
    struct mlx5dv_devx_obj *object = calloc(1, sizeof *object);
    struct mail mail;
    if (!shca_settings.devx || !object) {
        free(object);
        return refuse(EOPNOTSUPP);
    }
    bool good = mail_open(&mail, in, in_bytes, 0, true) &&
                (mail.command->opcode == CREATE_CQ ? cq_make(context, &mail, object)
                                                   : qp_make(context, &mail, object));
    int error = answer(out, out_bytes, good, object->number);
    if (!good) {
        free(object);
        return refuse(error);
    }
    pthread_mutex_lock(&lock);
    count_uses(object, 1);
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
    pthread_mutex_lock(&lock);
    count_uses(object, UINT32_MAX); // one less
    struct mlx5dv_devx_obj **at = &objects;
    while (*at != object)
        at = &(*at)->next;
    *at = object->next;
    pthread_mutex_unlock(&lock);
    free(object);
    return 0;
}

// ---- States ----

static int to_init(const struct mail *mail, struct ibv_qp *qp)
{
    unsigned access = (value_of(mail, "rre") ? IBV_ACCESS_REMOTE_READ : 0u) |
                      (value_of(mail, "rwe") ? IBV_ACCESS_REMOTE_WRITE : 0u) |
                      (value_of(mail, "rae") ? IBV_ACCESS_REMOTE_ATOMIC : 0u);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access};
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

// What only Ethernet has, and what only InfiniBand has.
static bool link_check(const struct mail *mail)
{
    bool ethernet = shca_settings.link == IBV_LINK_LAYER_ETHERNET;
    static const char *const only[2][4] = {{"grh", "rlid", "sl", NULL},
                                           {"udp_sport", "eth_prio", "rmac", NULL}};
    for (int i = 0; only[!ethernet][i]; i++)
        if (value_of(mail, only[!ethernet][i]))
            return REFUSE(mail, DEVX_FIELD, "INIT2RTR_QP: %s is set on a port of %s",
                          only[!ethernet][i], ethernet ? "Ethernet" : "InfiniBand");
    if (!ethernet)
        return true;
    unsigned char mac[6], right[6];
    uint64_t value = htobe64(value_of(mail, "rmac") << 16);
    memcpy(mac, &value, sizeof mac);
    shca_mlx5_mac_of(mail->in + PATH(0x80) / 8, right);
    if (memcmp(mac, right, sizeof mac) != 0)
        return REFUSE(mail, DEVX_FIELD, "INIT2RTR_QP: rmac is not that of its rgid_rip");
    return value_of(mail, "udp_sport") >= 0xc000 ||
           REFUSE(mail, DEVX_FIELD, "INIT2RTR_QP: udp_sport is %u, below 49152",
                  (unsigned)value_of(mail, "udp_sport"));
}

static int to_ready(const struct mail *mail, struct ibv_qp *qp)
{
    bool ethernet = shca_settings.link == IBV_LINK_LAYER_ETHERNET;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = (enum ibv_mtu)value_of(mail, "mtu"),
        .dest_qp_num = (uint32_t)value_of(mail, "remote_qpn"),
        .rq_psn = (uint32_t)value_of(mail, "next_rcv_psn"),
        .max_dest_rd_atomic = (uint8_t)(1u << value_of(mail, "log_rra_max")),
        .min_rnr_timer = (uint8_t)value_of(mail, "min_rnr_nak"),
        .ah_attr = {.port_num = 1,
                    .dlid = (uint16_t)value_of(mail, "rlid"),
                    .sl = (uint8_t)value_of(mail, ethernet ? "eth_prio" : "sl"),
                    .is_global = ethernet || value_of(mail, "grh")},
    };
    attr.ah_attr.grh.sgid_index = (uint8_t)value_of(mail, "src_addr_index");
    attr.ah_attr.grh.hop_limit = (uint8_t)value_of(mail, "hop_limit");
    attr.ah_attr.grh.traffic_class = (uint8_t)value_of(mail, "tclass");
    attr.ah_attr.grh.flow_label = (uint32_t)value_of(mail, "flow_label");
    memcpy(attr.ah_attr.grh.dgid.raw, mail->in + PATH(0x80) / 8, 16);
    if (!link_check(mail))
        return EINVAL;
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_send(const struct mail *mail, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = (uint32_t)value_of(mail, "next_send_psn"),
        .timeout = (uint8_t)value_of(mail, "ack_timeout"),
        .retry_cnt = (uint8_t)value_of(mail, "retry_count"),
        .rnr_retry = (uint8_t)value_of(mail, "rnr_retry"),
        .max_rd_atomic = (uint8_t)(1u << value_of(mail, "log_sra_max")),
    };
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static bool modify(const struct mail *mail, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state =
                                   mail->command->opcode == TO_ERR ? IBV_QPS_ERR : IBV_QPS_RESET};
    enum ibv_qp_state now = (enum ibv_qp_state)atomic_load(&((struct shca_qp *)qp)->entry->state);
    if (value_of(mail, "qpn") != qp->qp_num)
        return REFUSE(mail, DEVX_FIELD, "%s: qpn is 0x%06x", mail->command->name,
                      (unsigned)value_of(mail, "qpn"));
    if (mail->command->from != IBV_QPS_SQE && mail->command->from != now)
        return REFUSE(mail, DEVX_STATE, "%s in state %u", mail->command->name, now);
    switch (mail->command->opcode) {
    case RST2INIT: return !to_init(mail, qp);
    case INIT2RTR: return !to_ready(mail, qp);
    case RTR2RTS: return !to_send(mail, qp);
    default: return !ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    }
}

int gpushmem_softhca_obj_modify(struct mlx5dv_devx_obj *object, const void *in, size_t in_bytes,
                                void *out, size_t out_bytes)
{
    struct mail mail;
    bool good = object->qp && mail_open(&mail, in, in_bytes, object->number, false) &&
                modify(&mail, object->qp);
    return answer(out, out_bytes, good, 0);
}
