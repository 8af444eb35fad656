// SPDX-License-Identifier: BSD-3-Clause
// Test support: a program that has taken its queues by mlx5dv_init_obj, or has put them into GPU
// memory. It builds WQEs by hand, rings the doorbell, and reads CQEs.
#ifndef SOFTHCA_PROGRAM_H
#define SOFTHCA_PROGRAM_H

#include <endian.h>
#include <infiniband/mlx5dv.h>

#include "endpoint.h"

struct program {
    struct pair *pair;
    struct mlx5dv_qp qp;
    struct mlx5dv_cq cq;
    uint32_t qpn;
    uint64_t blocks, consumed; // posted, and CQEs read, since the beginning
    char wqe[1024];            // being built
    uint32_t bytes;
    struct mlx5_wqe_ctrl_seg *control;
    bool keeps_silent; // about the CQEs that it has read
    char *gpu;         // where the queues are then; those above are an image of them
};

extern bool queues_on_gpu; // of programs that are opened from now on
void program_open(struct program *program, struct pair *pair);
// Hands on what was written to the queues: record() and doorbell() do it, too.
void program_push(struct program *program);

// A WQE: begin, its segments in their order, end. Offsets are those in the near and far buffer.
void wqe_begin(struct program *program, uint32_t opcode, uint32_t flags);
void wqe_modify(struct program *program, uint32_t opmod);
void wqe_remote(struct program *program, uint64_t offset);
void wqe_data(struct program *program, uint64_t offset, uint32_t bytes);
void wqe_inline(struct program *program, const void *data, uint32_t bytes);
void wqe_words(struct program *program, uint64_t first, uint64_t second);
void wqe_halves(struct program *program, const uint32_t words[4]);
uint16_t wqe_end(struct program *program); // its index; the ring has it, nobody has rung
void ring(struct program *program);        // the record, then the doorbell
void record(struct program *program, uint32_t value);
void doorbell(struct program *program, uint32_t qpn, uint32_t index);

// All of it: a write, with a CQE or without.
uint16_t wqe_write(struct program *program, uint64_t from, uint64_t to, uint32_t bytes,
                   uint32_t flags);
// The next CQE, for some seconds; consumed. Opcode 15 if none came.
struct mlx5_cqe64 wait_cqe(struct program *program);
bool has_cqe(struct program *program);
uint8_t cqe_opcode(const struct mlx5_cqe64 *cqe);
uint8_t cqe_syndrome(const struct mlx5_cqe64 *cqe);

#endif
