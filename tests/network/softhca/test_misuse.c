// SPDX-License-Identifier: BSD-3-Clause
// What a program may not do with its queues in memory: each is refused by its name, and as hardware
// would refuse it.
#define _DEFAULT_SOURCE // endian.h
#include <errno.h>

#include "mlx5.h"
#include "program.h"

enum {
    SIGNALLED = MLX5_WQE_CTRL_CQ_UPDATE,
    NOTHING = 0xff, // no CQE comes
};

struct misuse {
    enum shca_misuse kind;
    uint8_t syndrome;
    void (*make)(struct program *program); // WQEs in the ring, and the ring
};

// ---- WQEs ----

static void wrong_index(struct program *program)
{
    wqe_write(program, 0, 0, 8, SIGNALLED);
    struct mlx5_wqe_ctrl_seg *control = program->qp.sq.buf;
    control->opmod_idx_opcode = htobe32(7 << 8 | MLX5_OPCODE_RDMA_WRITE);
    ring(program);
}

static void never_written(struct program *program)
{
    program->blocks = 1;
    ring(program);
}

// A whole lap is written and done; then the record covers a block that is of the lap before.
static void not_written_again(struct program *program)
{
    for (uint32_t i = 0; i < program->qp.sq.wqe_cnt; i++)
        wqe_write(program, 0, 0, 8, i == program->qp.sq.wqe_cnt - 1 ? SIGNALLED : 0);
    ring(program);
    wait_cqe(program);
    program->blocks++;
    ring(program);
}

static void wrong_qpn(struct program *program)
{
    uint32_t own = program->qpn;
    program->qpn ^= 0x10000;
    wqe_write(program, 0, 0, 8, SIGNALLED);
    program->qpn = own;
    ring(program);
}

static void change_size(struct program *program, uint32_t size)
{
    wqe_write(program, 0, 0, 8, SIGNALLED);
    struct mlx5_wqe_ctrl_seg *control = program->qp.sq.buf;
    control->qpn_ds = htobe32(program->qpn << 8 | size);
    ring(program);
}

static void no_size(struct program *program)
{
    change_size(program, 0);
}

static void size_of_7_bits(struct program *program)
{
    change_size(program, 0x43);
}

static void no_remote(struct program *program)
{
    change_size(program, 1);
}

static void longer_than_posted(struct program *program)
{
    change_size(program, 5);
}

static void unknown_opcode(struct program *program)
{
    wqe_begin(program, MLX5_OPCODE_SEND_INVAL, SIGNALLED);
    wqe_end(program);
    ring(program);
}

static void modified_write(struct program *program)
{
    wqe_begin(program, MLX5_OPCODE_RDMA_WRITE, SIGNALLED);
    wqe_modify(program, 8);
    wqe_remote(program, 0);
    wqe_data(program, 0, 8);
    wqe_end(program);
    ring(program);
}

static void atomic(struct program *program, uint32_t opcode, uint32_t opmod, uint64_t at,
                   uint32_t bytes)
{
    wqe_begin(program, opcode, SIGNALLED);
    wqe_modify(program, opmod);
    wqe_remote(program, at);
    wqe_words(program, 1, 0);
    if (bytes)
        wqe_data(program, 64, bytes);
    wqe_end(program);
    ring(program);
}

static void unmodified_masked(struct program *program)
{
    atomic(program, MLX5_OPCODE_ATOMIC_MASKED_FA, 0, 0, 8);
}

static void modified_atomic(struct program *program)
{
    atomic(program, MLX5_OPCODE_ATOMIC_FA, 9, 0, 8);
}

// A compare and swap of 8 bytes by masks has two segments for them.
static void masks_forgotten(struct program *program)
{
    atomic(program, MLX5_OPCODE_ATOMIC_MASKED_CS, 9, 0, 8);
}

static void no_result(struct program *program)
{
    atomic(program, MLX5_OPCODE_ATOMIC_FA, 0, 0, 0);
}

static void short_result(struct program *program)
{
    atomic(program, MLX5_OPCODE_ATOMIC_FA, 0, 0, 4);
}

static void wide_result(struct program *program)
{
    atomic(program, MLX5_OPCODE_ATOMIC_MASKED_FA, 8, 0, 8);
}

static void odd_word(struct program *program)
{
    atomic(program, MLX5_OPCODE_ATOMIC_FA, 0, 4, 8);
}

static void odd_half(struct program *program)
{
    atomic(program, MLX5_OPCODE_ATOMIC_MASKED_FA, 8, 2, 4);
}

static void fence_of_no_mode(struct program *program)
{
    wqe_write(program, 0, 0, 8, SIGNALLED | 5 << 5);
    ring(program);
}

static void cqe_on_error(struct program *program)
{
    wqe_write(program, 0, 0, 8, 1 << 2);
    ring(program);
}

static void reserved_flag(struct program *program)
{
    wqe_write(program, 0, 0, 8, SIGNALLED | 1 << 4);
    ring(program);
}

static void reserved_behind_key(struct program *program)
{
    wqe_write(program, 0, 0, 8, SIGNALLED);
    struct mlx5_wqe_raddr_seg *remote = (void *)((char *)program->qp.sq.buf + 16);
    remote->reserved = htobe32(1);
    ring(program);
}

static void two_gibibytes(struct program *program)
{
    wqe_write(program, 0, 0, 0, SIGNALLED);
    ring(program);
}

static void many_segments(struct program *program)
{
    wqe_begin(program, MLX5_OPCODE_RDMA_WRITE, SIGNALLED);
    wqe_remote(program, 0);
    for (int i = 0; i < 5; i++)
        wqe_data(program, 0, 8);
    wqe_end(program);
    ring(program);
}

static void inline_read(struct program *program)
{
    wqe_begin(program, MLX5_OPCODE_RDMA_READ, SIGNALLED);
    wqe_remote(program, 0);
    wqe_inline(program, "12345678", 8);
    wqe_end(program);
    ring(program);
}

static void inline_and_pointer(struct program *program)
{
    wqe_begin(program, MLX5_OPCODE_RDMA_WRITE, SIGNALLED);
    wqe_remote(program, 0);
    wqe_inline(program, "12345678", 8);
    wqe_data(program, 0, 8);
    wqe_end(program);
    ring(program);
}

static void inline_past_the_end(struct program *program)
{
    wqe_begin(program, MLX5_OPCODE_RDMA_WRITE, SIGNALLED);
    wqe_remote(program, 0);
    wqe_inline(program, "12345678", 8);
    wqe_end(program);
    uint32_t *count = (void *)((char *)program->qp.sq.buf + 32);
    *count = htobe32(MLX5_INLINE_SEG | 13); // 12 fit in its segment
    ring(program);
}

static void inline_too_long(struct program *program)
{
    const char text[65] = {0}; // the queue pair was made for 64
    wqe_begin(program, MLX5_OPCODE_RDMA_WRITE, SIGNALLED);
    wqe_remote(program, 0);
    wqe_inline(program, text, sizeof text);
    wqe_end(program);
    ring(program);
}

static void change_key(struct program *program, size_t offset)
{
    wqe_write(program, 0, 0, 8, SIGNALLED);
    uint32_t *key = (void *)((char *)program->qp.sq.buf + offset);
    *key ^= htobe32(0x100);
    ring(program);
}

static void unknown_local_key(struct program *program)
{
    change_key(program, 36);
}

static void unknown_remote_key(struct program *program)
{
    change_key(program, 24);
}

static void beyond_local_memory(struct program *program)
{
    wqe_write(program, BUFFER_BYTES - 4, 0, 8, SIGNALLED);
    ring(program);
}

static void beyond_remote_memory(struct program *program)
{
    wqe_write(program, 0, BUFFER_BYTES - 4, 8, SIGNALLED);
    ring(program);
}

// ---- Records and doorbells ----

static void more_than_the_ring(struct program *program)
{
    for (uint32_t i = 0; i <= program->qp.sq.wqe_cnt; i++)
        wqe_write(program, 0, 0, 8, 0);
    ring(program);
}

static void wide_record(struct program *program)
{
    wqe_write(program, 0, 0, 8, SIGNALLED);
    record(program, 0x10001);
    doorbell(program, program->qpn, 1);
}

static void record_goes_back(struct program *program)
{
    wqe_write(program, 0, 0, 8, 0);
    wqe_write(program, 0, 0, 8, SIGNALLED);
    ring(program);
    wait_cqe(program);
    record(program, 1);
    doorbell(program, program->qpn, 1);
}

static void doorbell_first(struct program *program)
{
    wqe_write(program, 0, 0, 8, SIGNALLED);
    doorbell(program, program->qpn, 1);
}

// The same, with the WQE's own index and its size.
static void control_segment_first(struct program *program)
{
    uint64_t word;
    wqe_write(program, 0, 0, 8, SIGNALLED);
    memcpy(&word, program->qp.sq.buf, sizeof word);
    atomic_store((_Atomic uint64_t *)program->qp.bf.reg, word);
}

static void doorbell_of_another(struct program *program)
{
    wqe_write(program, 0, 0, 8, SIGNALLED);
    record(program, 1);
    doorbell(program, program->qpn + 1, 1);
}

#define REFUSED MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR
#define ROW(kind, syndrome, make)                                                                  \
    {                                                                                              \
        SHCA_MISUSE_##kind, syndrome, make                                                         \
    }
static const struct misuse misuses[] = {
    ROW(WQE_INDEX, REFUSED, wrong_index),
    ROW(RECORD_AHEAD, REFUSED, never_written),
    ROW(RECORD_AHEAD, REFUSED, not_written_again),
    ROW(WQE_QPN, REFUSED, wrong_qpn),
    ROW(WQE_SIZE, REFUSED, no_size),
    ROW(WQE_SIZE, REFUSED, size_of_7_bits),
    ROW(WQE_SIZE, REFUSED, no_remote),
    ROW(WQE_CUT, REFUSED, longer_than_posted),
    ROW(WQE_OPCODE, REFUSED, unknown_opcode),
    ROW(WQE_OPMOD, REFUSED, modified_write),
    ROW(WQE_OPMOD, REFUSED, unmodified_masked),
    ROW(WQE_OPMOD, REFUSED, modified_atomic),
    ROW(WQE_SIZE, REFUSED, masks_forgotten),
    ROW(WQE_SIZE, REFUSED, no_result),
    ROW(ATOMIC_LENGTH, REFUSED, short_result),
    ROW(ATOMIC_LENGTH, REFUSED, wide_result),
    ROW(ATOMIC_ALIGNMENT, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, odd_word),
    ROW(ATOMIC_ALIGNMENT, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, odd_half),
    ROW(WQE_FLAGS, REFUSED, fence_of_no_mode),
    ROW(WQE_FLAGS, REFUSED, cqe_on_error),
    ROW(WQE_FLAGS, REFUSED, reserved_flag),
    ROW(WQE_RESERVED, REFUSED, reserved_behind_key),
    ROW(DATA_EMPTY, REFUSED, two_gibibytes),
    ROW(DATA_SEGMENTS, REFUSED, many_segments),
    ROW(DATA_INLINE, REFUSED, inline_read),
    ROW(DATA_MIXED, REFUSED, inline_and_pointer),
    ROW(INLINE_LENGTH, REFUSED, inline_past_the_end),
    ROW(INLINE_LENGTH, REFUSED, inline_too_long),
    ROW(LOCAL_KEY, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, unknown_local_key),
    ROW(LOCAL_KEY, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, beyond_local_memory),
    ROW(REMOTE_KEY, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, unknown_remote_key),
    ROW(REMOTE_KEY, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, beyond_remote_memory),
    ROW(SQ_OVERRUN, REFUSED, more_than_the_ring),
    ROW(RECORD_RESERVED, REFUSED, wide_record),
    ROW(RECORD_BACK, REFUSED, record_goes_back),
    ROW(DOORBELL_AHEAD, NOTHING, doorbell_first),
    ROW(DOORBELL_AHEAD, NOTHING, control_segment_first),
    ROW(DOORBELL_QPN, NOTHING, doorbell_of_another),
};

static void wait_for_complaint(enum shca_misuse kind)
{
    for (double until = seconds() + 10; !atomic_load(&shca_misuses[kind]) && seconds() < until;)
        ;
}

static uint32_t complaints(void)
{
    uint32_t all = 0;
    for (int i = 0; i < SHCA_MISUSE_KINDS; i++)
        all += atomic_load(&shca_misuses[i]);
    return all;
}

static void check_misuse(const struct misuse *misuse, enum mode mode)
{
    struct pair pair;
    struct program program;
    pair_open(&pair, mode, &usual);
    program_open(&program, &pair);
    memset(shca_misuses, 0, sizeof shca_misuses);
    misuse->make(&program);
    if (misuse->syndrome != NOTHING) {
        struct mlx5_cqe64 cqe = wait_cqe(&program);
        CHECK_EQ(cqe_opcode(&cqe), MLX5_CQE_REQ_ERR);
        CHECK_EQ(cqe_syndrome(&cqe), misuse->syndrome);
    }
    wait_for_complaint(misuse->kind);
    CHECK_EQ(atomic_load(&shca_misuses[misuse->kind]), 1);
    CHECK_EQ(complaints(), 1);
    if (failures)
        fprintf(stderr, "in the row of %s\n", shca_misuse_name(misuse->kind));
    pair_close(&pair);
}

static void by_name(enum mode mode)
{
    for (size_t i = 0; i < sizeof misuses / sizeof *misuses && !failures; i++)
        check_misuse(&misuses[i], mode);
}

// ---- What needs more than a ring ----

static void not_ready_to_send(enum mode mode)
{
    struct pair pair;
    struct program program;
    pair_open(&pair, mode, &usual);
    program_open(&program, &pair);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    CHECK_EQ(ibv_modify_qp(pair.near.qp, &attr, IBV_QP_STATE), 0);
    wqe_write(&program, 0, 0, 8, SIGNALLED);
    ring(&program);
    wait_for_complaint(SHCA_MISUSE_DOORBELL_STATE);
    CHECK_EQ(complaints(), 1);
    CHECK(!has_cqe(&program));
    pair_close(&pair);
}

extern _Atomic uint64_t gpushmem_softhca_hold_bytes; // README.md

// The program writes to a WQE that the NIC has.
static void changed_in_flight(struct pair *pair)
{
    struct program program;
    program_open(&program, pair);
    wqe_write(&program, 0, 0, 8, 0);
    wqe_write(&program, 0, 0, 8, SIGNALLED);
    atomic_store(&gpushmem_softhca_hold_bytes, 1);
    ring(&program);
    while (atomic_load(&((struct shca_qp *)pair->near.qp)->head) != 2)
        ;
    ((char *)program.qp.sq.buf)[63] ^= 1; // behind its segments, and still its block
    program_push(&program);
    atomic_store(&gpushmem_softhca_hold_bytes, 0);
    wait_cqe(&program);
    CHECK_EQ(atomic_load(&shca_misuses[SHCA_MISUSE_WQE_CHANGED]), 1);
    CHECK_EQ(complaints(), 1);
}

static void is_overrun(struct pair *pair)
{
    struct ibv_async_event event;
    wait_for_complaint(SHCA_MISUSE_CQ_OVERRUN);
    CHECK(atomic_load(&shca_misuses[SHCA_MISUSE_CQ_OVERRUN]) > 0);
    CHECK_EQ(ibv_get_async_event(pair->near.context, &event), 0);
    CHECK_EQ(event.event_type, IBV_EVENT_CQ_ERR);
    ibv_ack_async_event(&event);
}

// It polls, and does not say so.
static void never_consumed(struct pair *pair)
{
    struct program program;
    program_open(&program, pair);
    program.keeps_silent = true;
    for (uint32_t i = 0; i <= program.cq.cqe_cnt; i++) {
        wqe_write(&program, 0, 0, 8, SIGNALLED);
        if (i % 64 != 63)
            continue;
        ring(&program);
        for (int k = 0; k < 64; k++)
            wait_cqe(&program);
    }
    ring(&program);
    is_overrun(pair);
}

static void record_of_cq(struct pair *pair)
{
    struct program program;
    program_open(&program, pair);
    program.cq.dbrec[0] = htobe32(5);
    wqe_write(&program, 0, 0, 8, SIGNALLED);
    ring(&program);
    wait_for_complaint(SHCA_MISUSE_CQ_RECORD);
    CHECK_EQ(complaints(), 1);
}

static void by_verbs_too(struct pair *pair)
{
    struct program program;
    struct ibv_wc wc;
    program_open(&program, pair);
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
    CHECK_EQ(post(pair, &wr), EINVAL);
    CHECK_EQ(ibv_poll_cq(pair->near.cq, 1, &wc), -1);
    CHECK_EQ(atomic_load(&shca_misuses[SHCA_MISUSE_VERBS]), 2);
}

// A queue pair that is in use is not handed out.
static void taken_too_late(struct pair *pair)
{
    struct mlx5dv_qp qp;
    struct mlx5dv_obj object = {.qp = {pair->near.qp, &qp}};
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
    CHECK_EQ(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), EINVAL);
}

const struct test_case misuse_cases[] = {
    {"by_name", SAME_PROCESS, "MLX5=1", .run = by_name},
    {"not_ready_to_send", SAME_PROCESS, "MLX5=1", .run = not_ready_to_send},
    {"changed_in_flight", SAME_PROCESS, "MLX5=1", .on_pair = changed_in_flight},
    {"never_consumed", SAME_PROCESS, "MLX5=1", .on_pair = never_consumed},
    {"record_of_cq", SAME_PROCESS, "MLX5=1", .on_pair = record_of_cq},
    {"by_verbs_too", SAME_PROCESS, "MLX5=1", .on_pair = by_verbs_too},
    {"taken_too_late", SAME_PROCESS, "MLX5=1", .on_pair = taken_too_late},
    {0},
};
