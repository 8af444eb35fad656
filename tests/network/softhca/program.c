// SPDX-License-Identifier: BSD-3-Clause
#define _DEFAULT_SOURCE // endian.h
#include "program.h"

#include <sched.h>
#include <stdatomic.h>

#include "mlx5.h"

enum { BLOCK = 64, SEGMENT = 16 };
enum {
    ENTRIES = 256,
    CQ_AT = ENTRIES * BLOCK,
    RECORD_AT = 2 * CQ_AT,
    CQ_RECORD_AT = RECORD_AT + 64
};

bool queues_on_gpu;

// What the program writes, and what it reads, of queues in GPU memory.
static void push(const struct program *program, size_t offset, size_t bytes)
{
    gpu_copy(program->gpu + offset, (char *)program->qp.sq.buf + offset, bytes);
}

static void pull(const struct program *program, size_t offset, size_t bytes)
{
    gpu_copy((char *)program->qp.sq.buf + offset, program->gpu + offset, bytes);
}

void program_push(struct program *program)
{
    if (!program->gpu)
        return;
    push(program, 0, CQ_AT);
    push(program, CQ_RECORD_AT, 8);
    push(program, RECORD_AT, 8);
}

// As devx would (test_devx.c), but with a queue pair that is connected already.
static void open_on_gpu(struct program *program)
{
    static char images[2][CQ_RECORD_AT + 64];
    static int n;
    struct shca_qp *qp = (struct shca_qp *)program->pair->near.qp;
    void *doorbell = shca_mlx5_slot_take(SHCA_MLX5_REGISTERS);
    char *image = memset(images[n++ % 2], 0, sizeof images[0]);
    program->gpu = gpu_allocate(false, sizeof images[0], NULL);
    CHECK(doorbell && shca_gpu_owns(program->gpu, 1) &&
          !shca_gpu_use(qp->device, (uintptr_t)program->gpu));
    program->qp.sq.buf = image;
    program->qp.sq.wqe_cnt = program->cq.cqe_cnt = ENTRIES;
    program->qp.dbrec = (__be32 *)(void *)(image + RECORD_AT);
    program->qp.bf.reg = doorbell;
    program->cq.buf = image + CQ_AT;
    program->cq.dbrec = (__be32 *)(void *)(image + CQ_RECORD_AT);
    for (uint32_t i = 1; i <= ENTRIES; i++)
        image[CQ_AT + i * BLOCK - 1] = (char)(MLX5_CQE_INVALID << 4);
    push(program, 0, sizeof images[0]);
    struct shca_mlx5_memory sends = {program->gpu, program->gpu + RECORD_AT, true},
                            completions = {program->gpu + CQ_AT, program->gpu + CQ_RECORD_AT, true};
    CHECK_EQ(shca_mlx5_cq_place(qp->ibv.send_cq, &completions, ENTRIES), 0);
    CHECK_EQ(shca_mlx5_queue_place(&qp->ibv, &sends, ENTRIES, doorbell), 0);
}

void program_open(struct program *program, struct pair *pair)
{
    *program = (struct program){.pair = pair, .qpn = pair->near.qp->qp_num};
    if (queues_on_gpu) {
        open_on_gpu(program);
        return;
    }
    struct mlx5dv_obj object = {.qp = {pair->near.qp, &program->qp},
                                .cq = {pair->near.cq, &program->cq}};
    CHECK_EQ(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ), 0);
    CHECK_EQ(program->qp.sq.stride, BLOCK);
    CHECK_EQ(program->cq.cqe_size, 64);
}

static void *segment_add(struct program *program, uint32_t bytes)
{
    void *at = program->wqe + program->bytes;
    memset(at, 0, (bytes + SEGMENT - 1) / SEGMENT * SEGMENT);
    program->bytes += (bytes + SEGMENT - 1) / SEGMENT * SEGMENT;
    return at;
}

void wqe_begin(struct program *program, uint32_t opcode, uint32_t flags)
{
    program->bytes = 0;
    program->control = segment_add(program, sizeof *program->control);
    program->control->opmod_idx_opcode = htobe32((uint32_t)(uint16_t)program->blocks << 8 | opcode);
    program->control->fm_ce_se = (uint8_t)flags;
}

void wqe_modify(struct program *program, uint32_t opmod)
{
    program->control->opmod_idx_opcode |= htobe32(opmod << 24);
}

void wqe_remote(struct program *program, uint64_t offset)
{
    struct mlx5_wqe_raddr_seg *remote = segment_add(program, sizeof *remote);
    remote->raddr = htobe64(program->pair->there.address + offset);
    remote->rkey = htobe32(program->pair->there.rkey);
}

void wqe_data(struct program *program, uint64_t offset, uint32_t bytes)
{
    struct mlx5_wqe_data_seg *data = segment_add(program, sizeof *data);
    data->byte_count = htobe32(bytes);
    data->lkey = htobe32(program->pair->near.mr->lkey);
    data->addr = htobe64((uintptr_t)program->pair->near.buffer + offset);
}

void wqe_inline(struct program *program, const void *data, uint32_t bytes)
{
    char *at = segment_add(program, 4 + bytes);
    uint32_t count = htobe32(MLX5_INLINE_SEG | bytes);
    memcpy(at, &count, sizeof count);
    memcpy(at + sizeof count, data, bytes);
}

void wqe_words(struct program *program, uint64_t first, uint64_t second)
{
    struct mlx5_wqe_atomic_seg *words = segment_add(program, sizeof *words);
    words->swap_add = htobe64(first);
    words->compare = htobe64(second);
}

void wqe_halves(struct program *program, const uint32_t words[4])
{
    uint32_t *at = segment_add(program, 4 * sizeof *words);
    for (int i = 0; i < 4; i++)
        at[i] = htobe32(words[i]);
}

uint16_t wqe_end(struct program *program)
{
    uint16_t index = (uint16_t)program->blocks;
    program->control->qpn_ds = htobe32(program->qpn << 8 | program->bytes / SEGMENT);
    for (uint32_t at = 0; at < program->bytes; at += BLOCK, program->blocks++) {
        uint32_t left = program->bytes - at;
        memcpy((char *)program->qp.sq.buf + program->blocks % program->qp.sq.wqe_cnt * BLOCK,
               program->wqe + at, left < BLOCK ? left : BLOCK);
    }
    return index;
}

void record(struct program *program, uint32_t value)
{
    atomic_store_explicit((_Atomic uint32_t *)(void *)&program->qp.dbrec[MLX5_SND_DBR],
                          htobe32(value), memory_order_release);
    program_push(program);
}

void doorbell(struct program *program, uint32_t qpn, uint32_t index)
{
    program_push(program);
    uint32_t words[2] = {htobe32((index & 0xffff) << 8), htobe32(qpn << 8)};
    uint64_t both;
    memcpy(&both, words, sizeof both);
    atomic_store_explicit((_Atomic uint64_t *)program->qp.bf.reg, both, memory_order_release);
}

void ring(struct program *program)
{
    record(program, (uint32_t)program->blocks & 0xffff);
    doorbell(program, program->qpn, (uint32_t)program->blocks);
}

uint16_t wqe_write(struct program *program, uint64_t from, uint64_t to, uint32_t bytes,
                   uint32_t flags)
{
    wqe_begin(program, MLX5_OPCODE_RDMA_WRITE, flags);
    wqe_remote(program, to);
    wqe_data(program, from, bytes);
    return wqe_end(program);
}

static struct mlx5_cqe64 *next_cqe(const struct program *program)
{
    return (struct mlx5_cqe64 *)program->cq.buf + program->consumed % program->cq.cqe_cnt;
}

static void pull_cqe(const struct program *program)
{
    if (program->gpu)
        pull(program, (size_t)((char *)next_cqe(program) - (char *)program->qp.sq.buf), 64);
}

bool has_cqe(struct program *program)
{
    pull_cqe(program);
    // the last 8 bytes of an entry, in one load
    uint64_t last = atomic_load_explicit((_Atomic uint64_t *)(void *)next_cqe(program) + 7,
                                         memory_order_acquire);
    uint8_t op_own = (uint8_t)(last >> 56), lap = program->consumed / program->cq.cqe_cnt & 1;
    return op_own >> 4 != MLX5_CQE_INVALID && (op_own & MLX5_CQE_OWNER_MASK) == lap;
}

struct mlx5_cqe64 wait_cqe(struct program *program)
{
    double until = seconds() + 10;
    while (!has_cqe(program)) {
        if (seconds() > until) {
            fprintf(stderr, "no CQE came\n");
            failures++;
            return (struct mlx5_cqe64){.op_own = MLX5_CQE_INVALID << 4};
        }
        sched_yield();
    }
    pull_cqe(program); // what was written before its last word
    struct mlx5_cqe64 cqe = *next_cqe(program);
    program->consumed++;
    if (!program->keeps_silent)
        atomic_store_explicit((_Atomic uint32_t *)(void *)program->cq.dbrec,
                              htobe32((uint32_t)program->consumed & 0xffffff),
                              memory_order_release);
    if (program->gpu)
        push(program, CQ_RECORD_AT, 8);
    return cqe;
}

uint8_t cqe_opcode(const struct mlx5_cqe64 *cqe)
{
    return cqe->op_own >> 4;
}

uint8_t cqe_syndrome(const struct mlx5_cqe64 *cqe)
{
    struct mlx5_err_cqe error;
    memcpy(&error, cqe, sizeof error);
    return cqe_opcode(cqe) == MLX5_CQE_REQ_ERR ? error.syndrome : 0;
}
