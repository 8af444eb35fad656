// SPDX-License-Identifier: BSD-3-Clause
// A field that this NIC does not know has to be 0, and one that it knows has to be right. The
// tables are written apart from those of transports/verbs, so that each is a test of the other.
#define _GNU_SOURCE // endian.h
#include "mlx5_mailbox.h"

#include <errno.h>

enum {
    CREATE_BYTES = 0x110, // of the mailboxes of queue pairs and completion queues
    STATE_BYTES = 0x10,   // of those that say nothing but a state
    ANSWER_BYTES = 0x10,
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
    {"c_eqn", CQC(0xb8), 8, IS, SHCA_DEVX_EQN},
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

static const struct shca_devx_command commands[] = {
    {SHCA_DEVX_CREATE_CQ, "CREATE_CQ", cq_fields, CREATE_BYTES, true, IBV_QPS_SQE},
    {SHCA_DEVX_CREATE_QP, "CREATE_QP", qp_fields, CREATE_BYTES, true, IBV_QPS_SQE},
    {SHCA_DEVX_RST2INIT, "RST2INIT_QP", init_fields, CREATE_BYTES, false, IBV_QPS_RESET},
    {SHCA_DEVX_INIT2RTR, "INIT2RTR_QP", ready_fields, CREATE_BYTES, false, IBV_QPS_INIT},
    {SHCA_DEVX_RTR2RTS, "RTR2RTS_QP", send_fields, CREATE_BYTES, false, IBV_QPS_RTR},
    {SHCA_DEVX_TO_ERR, "2ERR_QP", state_fields, STATE_BYTES, false, IBV_QPS_SQE},
    {SHCA_DEVX_TO_RESET, "2RST_QP", state_fields, STATE_BYTES, false, IBV_QPS_SQE},
};

static uint64_t bits_at(const unsigned char *in, uint32_t bit, uint32_t bits)
{
    uint64_t value = 0;
    for (uint32_t i = bit; i < bit + bits; i++)
        value = value << 1 | (in[i / 8] >> (7 - i % 8) & 1);
    return value;
}

static const struct field *field_named(const struct shca_devx_command *command, const char *name)
{
    const struct field *field = command->fields;
    while (strcmp(field->name, name) != 0)
        field++;
    return field;
}

uint64_t shca_mailbox_value(const struct shca_mailbox *box, const char *name)
{
    const struct field *field = field_named(box->command, name);
    return bits_at(box->in, field->bit, field->bits);
}

const unsigned char *shca_mailbox_bytes(const struct shca_mailbox *box, const char *name)
{
    return box->in + field_named(box->command, name)->bit / 8;
}

static bool field_check(const struct shca_mailbox *box, const struct field *field)
{
    if (field->bits > 64 || field->rule == ANY)
        return true;
    uint64_t value = bits_at(box->in, field->bit, field->bits);
    if (field->rule == IS && value != field->value)
        return SHCA_MAILBOX_REFUSE(box, DEVX_FIELD, "%s: %s is %llu, and has to be %u",
                                   box->command->name, field->name, (unsigned long long)value,
                                   field->value);
    if (field->rule == LIMIT && value > field->value)
        return SHCA_MAILBOX_REFUSE(box, DEVX_FIELD, "%s: %s is %llu, more than %u",
                                   box->command->name, field->name, (unsigned long long)value,
                                   field->value);
    return true;
}

// What belongs to no field that this NIC knows.
static bool rest_check(const struct shca_mailbox *box)
{
    unsigned char rest[CREATE_BYTES];
    memcpy(rest, box->in, box->command->bytes);
    for (const struct field *field = box->command->fields; field->name; field++)
        for (uint32_t i = field->bit; i < (uint32_t)field->bit + field->bits; i++)
            rest[i / 8] &= (unsigned char)~(0x80 >> i % 8);
    for (uint32_t at = 0; at < box->command->bytes; at++)
        if (rest[at])
            return SHCA_MAILBOX_REFUSE(box, DEVX_RESERVED,
                                       "%s: byte 0x%x has bits 0x%02x of no known field",
                                       box->command->name, at, rest[at]);
    return true;
}

bool shca_mailbox_open(struct shca_mailbox *box, const void *in, size_t bytes, uint32_t number,
                       bool creates)
{
    uint32_t opcode = bytes >= 2 ? (uint32_t)bits_at(in, 0, 16) : 0;
    *box = (struct shca_mailbox){.in = in, .number = number};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].opcode == opcode && commands[i].creates == creates)
            box->command = &commands[i];
    if (!box->command)
        return SHCA_MAILBOX_REFUSE(box, DEVX_OPCODE, "a command with opcode 0x%x", opcode);
    if (bytes != box->command->bytes)
        return SHCA_MAILBOX_REFUSE(box, DEVX_LENGTH, "%s: a mailbox of %zu bytes, and it has %u",
                                   box->command->name, bytes, box->command->bytes);
    for (const struct field *field = box->command->fields; field->name; field++)
        if (!field_check(box, field))
            return false;
    return rest_check(box);
}

int shca_mailbox_answer(void *out, size_t bytes, bool good, uint32_t number)
{
    unsigned char words[ANSWER_BYTES] = {(unsigned char)(good ? 0 : BAD_PARAMETER)};
    uint32_t big = htobe32(number);
    memcpy(words + 8, &big, sizeof big);
    memcpy(out, words, bytes < sizeof words ? bytes : sizeof words);
    return good ? 0 : EREMOTEIO;
}
