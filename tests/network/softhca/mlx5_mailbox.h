// SPDX-License-Identifier: BSD-3-Clause
// Commands to the firmware (devx): the mailboxes of the PRM, by their bits, as libraries of mlx5
// write them. What is wrong with one is a misuse, whose complaint names the field.
#ifndef SOFTHCA_MLX5_MAILBOX_H
#define SOFTHCA_MLX5_MAILBOX_H

#include "mlx5.h"

enum {
    SHCA_DEVX_CREATE_CQ = 0x400,
    SHCA_DEVX_CREATE_QP = 0x500,
    SHCA_DEVX_RST2INIT = 0x502,
    SHCA_DEVX_INIT2RTR = 0x503,
    SHCA_DEVX_RTR2RTS = 0x504,
    SHCA_DEVX_TO_ERR = 0x507,
    SHCA_DEVX_TO_RESET = 0x50a,
    SHCA_DEVX_EQN = 7, // the one event queue that completion queues may name
};

struct field;
struct shca_devx_command {
    uint32_t opcode;
    const char *name; // the PRM's
    const struct field *fields;
    uint32_t bytes; // of its mailbox
    bool creates;
    enum ibv_qp_state from; // of those that do not create; SQE: of any
};

struct shca_mailbox {
    const struct shca_devx_command *command;
    const unsigned char *in;
    uint32_t number; // of the queue pair it is about, or 0
};

// False, after the complaint.
#define SHCA_MAILBOX_REFUSE(box, kind, ...)                                                        \
    (shca_misuse(SHCA_MISUSE_##kind, (box)->number, __VA_ARGS__), false)

// Whether it is a command that this NIC has, `creates` or does not, with nothing wrong in it by
// itself. `in` is read as long as the mailbox is used.
bool shca_mailbox_open(struct shca_mailbox *box, const void *in, size_t bytes, uint32_t number,
                       bool creates);
// Of a field of that command, of 64 bits at most; and where a longer one begins, of whole bytes.
uint64_t shca_mailbox_value(const struct shca_mailbox *box, const char *name);
const unsigned char *shca_mailbox_bytes(const struct shca_mailbox *box, const char *name);
// Writes the answer as the firmware does, a status and a number; and an errno, as the kernel's.
int shca_mailbox_answer(void *out, size_t bytes, bool good, uint32_t number);

#endif
