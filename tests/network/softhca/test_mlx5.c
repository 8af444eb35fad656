// SPDX-License-Identifier: BSD-3-Clause
// Queues in memory: every opcode, laps around both rings, random programs against a model, faults.
#define _DEFAULT_SOURCE // endian.h
#include <errno.h>

#include "program.h"

enum {
    SIGNALLED = MLX5_WQE_CTRL_CQ_UPDATE,
    FENCED = MLX5_WQE_CTRL_FENCE,
    EXTENDED_4 = 8, // opcode modifiers of masked atomics
    EXTENDED_8 = 9,
};

static void good_cqe(struct program *program, uint16_t index, uint32_t opcode)
{
    struct mlx5_cqe64 cqe = wait_cqe(program);
    CHECK_EQ(cqe_opcode(&cqe), MLX5_CQE_REQ);
    CHECK_EQ(be16toh(cqe.wqe_counter), index);
    CHECK_EQ(be32toh(cqe.sop_drop_qpn), opcode << 24 | program->qpn);
}

static void error_cqe(struct program *program, uint16_t index, uint8_t syndrome)
{
    struct mlx5_cqe64 cqe = wait_cqe(program);
    CHECK_EQ(cqe_opcode(&cqe), MLX5_CQE_REQ_ERR);
    CHECK_EQ(cqe_syndrome(&cqe), syndrome);
    CHECK_EQ(be16toh(cqe.wqe_counter), index);
}

static void writes(struct pair *pair)
{
    struct program program;
    program_open(&program, pair);
    *near_word(pair, 0) = 0x1122334455667788;
    uint16_t index = wqe_write(&program, 0, 64, 8, SIGNALLED);
    ring(&program);
    good_cqe(&program, index, MLX5_OPCODE_RDMA_WRITE);
    CHECK_EQ(far_word(pair, 64), 0x1122334455667788);
    CHECK(!has_cqe(&program));
}

// Several in one doorbell, of which the last has a CQE: that tells of all.
static void signals_follow_data(struct pair *pair)
{
    struct program program;
    program_open(&program, pair);
    for (uint64_t i = 0; i < 3; i++) {
        *near_word(pair, 8 * i) = i + 1;
        wqe_write(&program, 8 * i, 8 * i, 8, 0);
    }
    wqe_begin(&program, MLX5_OPCODE_ATOMIC_FA, SIGNALLED);
    wqe_remote(&program, 1024);
    wqe_words(&program, 1, 0);
    wqe_data(&program, 512, 8);
    uint16_t index = wqe_end(&program);
    ring(&program);
    good_cqe(&program, index, MLX5_OPCODE_ATOMIC_FA);
    for (uint64_t i = 0; i < 3; i++)
        CHECK_EQ(far_word(pair, 8 * i), i + 1);
    CHECK_EQ(far_word(pair, 1024), 1);
}

static void inline_data(struct pair *pair)
{
    const char text[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.";
    struct program program;
    program_open(&program, pair);
    for (uint32_t bytes = 1; bytes <= sizeof text; bytes++) {
        wqe_begin(&program, MLX5_OPCODE_RDMA_WRITE, SIGNALLED);
        wqe_remote(&program, 128 * (uint64_t)bytes);
        wqe_inline(&program, text, bytes);
        wqe_end(&program);
        ring(&program);
        CHECK_EQ(wait_cqe(&program).byte_cnt, htobe32(bytes));
        if (pair->mode == SAME_PROCESS)
            CHECK(!memcmp(pair->far.buffer + 128 * (size_t)bytes, text, bytes));
    }
    uint64_t first;
    memcpy(&first, text, 8);
    CHECK_EQ(far_word(pair, 128 * sizeof text), first);
}

static void reads(struct pair *pair)
{
    struct program program;
    program_open(&program, pair);
    for (uint64_t i = 0; i < 4; i++)
        *near_word(pair, 8 * i) = 100 + i;
    wqe_write(&program, 0, 4096, 32, 0);
    wqe_begin(&program, MLX5_OPCODE_RDMA_READ, SIGNALLED);
    wqe_remote(&program, 4096);
    wqe_data(&program, 8192, 12); // to two places
    wqe_data(&program, 16384 + 4, 20);
    uint16_t index = wqe_end(&program);
    ring(&program);
    good_cqe(&program, index, MLX5_OPCODE_RDMA_READ);
    CHECK(!memcmp(pair->near.buffer + 8192, pair->near.buffer, 12));
    CHECK(!memcmp(pair->near.buffer + 16384 + 4, pair->near.buffer + 12, 20));
}

static uint64_t run_words(struct program *program, uint32_t opcode, uint32_t opmod,
                          const uint64_t *words, int pairs)
{
    wqe_begin(program, opcode, SIGNALLED);
    wqe_modify(program, opmod);
    wqe_remote(program, 256);
    for (int i = 0; i < pairs; i++)
        wqe_words(program, words[2 * i], words[2 * i + 1]);
    wqe_data(program, 64, 8);
    uint16_t index = wqe_end(program);
    ring(program);
    good_cqe(program, index, opcode);
    return *near_word(program->pair, 64);
}

static uint32_t run_halves(struct program *program, uint32_t opcode, uint64_t offset,
                           uint32_t operand, uint32_t second, uint32_t third, uint32_t fourth)
{
    const uint32_t words[] = {operand, second, third, fourth};
    uint32_t answer;
    wqe_begin(program, opcode, SIGNALLED);
    wqe_modify(program, EXTENDED_4);
    wqe_remote(program, offset);
    wqe_halves(program, words);
    wqe_data(program, 64, 4);
    uint16_t index = wqe_end(program);
    ring(program);
    good_cqe(program, index, opcode);
    memcpy(&answer, program->pair->near.buffer + 64, sizeof answer);
    return be32toh(answer);
}

static void atomics(struct pair *pair)
{
    struct program program;
    program_open(&program, pair);
    CHECK_EQ(run_words(&program, MLX5_OPCODE_ATOMIC_FA, 0, (uint64_t[]){5, 0}, 1), 0);
    CHECK_EQ(run_words(&program, MLX5_OPCODE_ATOMIC_FA, 0, (uint64_t[]){7, 99}, 1), 5);
    CHECK_EQ(run_words(&program, MLX5_OPCODE_ATOMIC_CS, 0, (uint64_t[]){40, 11}, 1), 12);
    CHECK_EQ(run_words(&program, MLX5_OPCODE_ATOMIC_CS, 0, (uint64_t[]){40, 12}, 1), 12);
    CHECK_EQ(far_word(pair, 256), 40);
}

static void masked_atomics(struct pair *pair)
{
    struct program program;
    program_open(&program, pair);
    const uint32_t add = MLX5_OPCODE_ATOMIC_MASKED_FA, swap = MLX5_OPCODE_ATOMIC_MASKED_CS;
    // two fields of 32 bits: no carry from the lower to the upper one
    CHECK_EQ(run_words(&program, add, EXTENDED_8, (uint64_t[]){0x1fffffffe, 0x80000000}, 1), 0);
    CHECK_EQ(run_words(&program, add, EXTENDED_8, (uint64_t[]){0x3, 0x80000000}, 1), 0x1fffffffe);
    CHECK_EQ(far_word(pair, 256), 0x100000001);
    // compares the lower half only, and exchanges the upper
    const uint64_t halves[] = {0xaaaaaaaabbbbbbbb, 0xcccccccc00000001, 0xffffffff00000000,
                               0x00000000ffffffff};
    CHECK_EQ(run_words(&program, swap, EXTENDED_8, halves, 2), 0x100000001);
    CHECK_EQ(far_word(pair, 256), 0xaaaaaaaa00000001);
    const uint64_t other[] = {0, 0x2, UINT64_MAX, 0xff};
    CHECK_EQ(run_words(&program, swap, EXTENDED_8, other, 2), 0xaaaaaaaa00000001);
    CHECK_EQ(far_word(pair, 256), 0xaaaaaaaa00000001);
    // 4 bytes: the upper half of a word stays
    CHECK_EQ(run_halves(&program, add, 256, UINT32_MAX, 0, 0, 0), 1);
    CHECK_EQ(far_word(pair, 256), 0xaaaaaaaa00000000);
    CHECK_EQ(run_halves(&program, add, 260, 0x66666666, 0x80000000, 0, 0), 0xaaaaaaaa);
    CHECK_EQ(far_word(pair, 256), 0x1111111000000000);
    CHECK_EQ(run_halves(&program, swap, 260, 0x12345678, 0x10, 0xffff, 0xff), 0x11111110);
    CHECK_EQ(far_word(pair, 256), 0x1111567800000000);
}

// Nothing is done; it completes in its turn.
static void nop(struct pair *pair)
{
    struct program program;
    program_open(&program, pair);
    wqe_begin(&program, MLX5_OPCODE_NOP, SIGNALLED);
    uint16_t index = wqe_end(&program);
    ring(&program);
    good_cqe(&program, index, MLX5_OPCODE_NOP);
}

// Many times around both rings, with WQEs of several sizes, so that some lie across the end of it.
static void laps(struct pair *pair)
{
    struct program program;
    program_open(&program, pair);
    uint64_t value = 0;
    const uint32_t rounds = 3 * 65536 / 15;
    for (uint32_t i = 0; i < rounds; i++) {
        uint64_t words[8];
        for (int k = 0; k < 8; k++)
            words[k] = ++value;
        wqe_begin(&program, MLX5_OPCODE_RDMA_WRITE, 0);
        wqe_remote(&program, 0);
        wqe_inline(&program, words, 64); // two blocks
        wqe_end(&program);
        for (uint64_t k = 0; k < 13; k++) {
            *near_word(pair, 128 + 8 * k) = value + k;
            wqe_write(&program, 128 + 8 * k, 64 + 8 * k, 8, k == 12 ? SIGNALLED : 0);
        }
        ring(&program);
        CHECK_EQ(be16toh(wait_cqe(&program).wqe_counter), (uint16_t)(program.blocks - 1));
        if (failures)
            return;
    }
    CHECK_EQ(program.blocks, rounds * UINT64_C(15));
    CHECK(program.consumed > 20 * (uint64_t)program.cq.cqe_cnt);
    CHECK_EQ(far_word(pair, 56), value);
    CHECK_EQ(far_word(pair, 64 + 8 * 12), value + 12);
}

// The ring is filled to its last block, again and again.
static void full_ring(struct pair *pair)
{
    struct program program;
    program_open(&program, pair);
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < program.qp.sq.wqe_cnt; i++) {
            *near_word(pair, 8 * (uint64_t)i) = round << 16 | i;
            bool last = i == program.qp.sq.wqe_cnt - 1;
            wqe_write(&program, 8 * (uint64_t)i, 8 * (uint64_t)i, 8, last ? SIGNALLED : 0);
        }
        ring(&program);
        CHECK_EQ(cqe_opcode(&(struct mlx5_cqe64){.op_own = wait_cqe(&program).op_own}),
                 MLX5_CQE_REQ);
        CHECK_EQ(far_word(pair, 8 * (program.qp.sq.wqe_cnt - 1)),
                 round << 16 | (program.qp.sq.wqe_cnt - 1));
    }
}

// ---- Random programs ----

enum { WORDS = 32, RESULTS = 4096, SOURCES = 8192 }; // RESULTS, SOURCES: in the near buffer

struct model {
    uint64_t words[WORDS], results[64];
    uint32_t state;
};

static uint32_t draw(struct model *model, uint32_t n)
{
    model->state = model->state * 1664525 + 1013904223;
    return (model->state >> 8) % n;
}

// Of up to four words, that are in the WQE or in the near buffer.
static void model_write(struct program *program, struct model *model, uint32_t at, uint32_t flags,
                        uint32_t slot)
{
    uint64_t values[4];
    uint32_t n = 1 + draw(model, 4);
    n = n > WORDS - at ? WORDS - at : n;
    for (uint32_t i = 0; i < n; i++)
        model->words[at + i] = values[i] =
            (uint64_t)draw(model, 1 << 24) << 32 | draw(model, 1 << 24);
    wqe_begin(program, MLX5_OPCODE_RDMA_WRITE, flags | FENCED);
    wqe_remote(program, 8 * (uint64_t)at);
    if (draw(model, 2)) {
        wqe_inline(program, values, 8 * n);
    } else {
        near_store(program->pair, SOURCES + 32 * (uint64_t)slot, values, 8 * n);
        wqe_data(program, SOURCES + 32 * (uint64_t)slot, 8 * n);
    }
}

static void begin_at(struct program *program, uint32_t opcode, uint32_t opmod, uint32_t flags,
                     uint64_t offset)
{
    wqe_begin(program, opcode, flags);
    wqe_modify(program, opmod);
    wqe_remote(program, offset);
}

// A compare and swap of some bits, where some bits are as expected, or not; of 8 bytes.
static void model_masked_swap(struct program *program, struct model *model, uint32_t at,
                              uint32_t flags)
{
    uint64_t *word = &model->words[at], swap = draw(model, 1 << 24) * UINT64_C(0x10001);
    uint64_t compare = *word ^ draw(model, 2);
    uint64_t swap_mask = (uint64_t)draw(model, 1 << 24) << 16, compare_mask = draw(model, 4);
    begin_at(program, MLX5_OPCODE_ATOMIC_MASKED_CS, EXTENDED_8, flags, 8 * (uint64_t)at);
    wqe_words(program, swap, compare);
    wqe_words(program, swap_mask, compare_mask);
    if (!((*word ^ compare) & compare_mask))
        *word = (*word & ~swap_mask) | (swap & swap_mask);
}

// To one half of a word, of 4 bytes. The answer comes in the network's order.
static uint64_t model_half(struct program *program, struct model *model, uint32_t at,
                           uint32_t flags)
{
    uint32_t halves[2], half = draw(model, 2), operand = draw(model, 1 << 24) << 8;
    memcpy(halves, &model->words[at], sizeof halves);
    uint64_t answer = htobe32(halves[half]);
    halves[half] += operand;
    memcpy(&model->words[at], halves, sizeof halves);
    begin_at(program, MLX5_OPCODE_ATOMIC_MASKED_FA, EXTENDED_4, flags,
             8 * (uint64_t)at + 4 * (uint64_t)half);
    wqe_halves(program, (uint32_t[]){operand, 0, 0, 0});
    return answer;
}

static void model_plain(struct program *program, struct model *model, uint32_t at, uint32_t flags,
                        bool add)
{
    uint64_t *word = &model->words[at], operand = draw(model, 1000);
    uint64_t compare = draw(model, 2) ? *word : 1;
    begin_at(program, add ? MLX5_OPCODE_ATOMIC_FA : MLX5_OPCODE_ATOMIC_CS, 0, flags,
             8 * (uint64_t)at);
    wqe_words(program, operand, compare);
    *word = add ? *word + operand : *word == compare ? operand : *word;
}

static void model_fetch(struct program *program, struct model *model, uint32_t at, uint32_t flags,
                        uint32_t slot)
{
    uint32_t kind = draw(model, 5);
    model->results[slot] = model->words[at];
    if (kind == 0)
        begin_at(program, MLX5_OPCODE_RDMA_READ, 0, flags, 8 * (uint64_t)at);
    else if (kind == 1)
        model_masked_swap(program, model, at, flags);
    else if (kind == 2)
        model->results[slot] = model_half(program, model, at, flags);
    else
        model_plain(program, model, at, flags, kind == 3);
    wqe_data(program, RESULTS + 8 * (uint64_t)slot, kind == 2 ? 4 : 8);
}

// What is under way at a time is at most 60 WQEs, of which some have CQEs.
static void random_round(struct program *program, struct model *model)
{
    uint16_t expected[64];
    uint32_t n = 1 + draw(model, 60), signalled = 0;
    uint64_t results[64] = {0};
    memset(model->results, 0, sizeof model->results);
    near_store(program->pair, RESULTS, results, sizeof results);
    for (uint32_t i = 0; i < n; i++) {
        bool cqe = i == n - 1 || draw(model, 3) == 0;
        uint32_t at = draw(model, WORDS);
        if (draw(model, 2))
            model_write(program, model, at, cqe ? SIGNALLED : 0, i);
        else
            model_fetch(program, model, at, cqe ? SIGNALLED : 0, i);
        uint16_t index = wqe_end(program);
        if (cqe)
            expected[signalled++] = index;
        if (draw(model, 4) == 0)
            ring(program);
    }
    ring(program);
    for (uint32_t i = 0; i < signalled; i++)
        CHECK_EQ(be16toh(wait_cqe(program).wqe_counter), expected[i]);
    near_load(program->pair, RESULTS, results, sizeof results);
    CHECK(!memcmp(results, model->results, sizeof results));
    for (uint32_t i = 0; i < WORDS; i++)
        CHECK_EQ(far_word(program->pair, 8 * (uint64_t)i), model->words[i]);
}

void random_programs(struct pair *pair)
{
    struct program program;
    struct model model = {.state = 7};
    program_open(&program, pair);
    for (int round = 0; round < 200 && !failures; round++)
        random_round(&program, &model);
}

// ---- Faults ----

// The first request that fails, then what is behind it, with or without CQE wanted.
static void nak_and_flush(struct pair *pair)
{
    struct program program;
    program_open(&program, pair);
    for (int i = 0; i < 8; i++)
        wqe_write(&program, 0, 0, 8, 0);
    ring(&program);
    error_cqe(&program, 5, MLX5_CQE_SYNDROME_REMOTE_OP_ERR);
    error_cqe(&program, 6, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
    error_cqe(&program, 7, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
    uint16_t index = wqe_write(&program, 0, 0, 8, 0);
    ring(&program);
    error_cqe(&program, index, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
}

static void link_down(enum mode mode)
{
    struct pair pair;
    struct program program;
    struct options options = impatient;
    options.far_device = 1;
    pair_open(&pair, mode, &options);
    program_open(&program, &pair);
    uint16_t index = wqe_write(&program, 0, 0, 8, 0);
    ring(&program);
    error_cqe(&program, index, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    pair_close(&pair);
}

// Completions come in bursts of eight, or when a burst has waited long enough.
static void bursts(struct pair *pair)
{
    struct program program;
    program_open(&program, pair);
    for (int i = 0; i < 21; i++)
        wqe_write(&program, 0, 0, 8, SIGNALLED);
    ring(&program);
    for (uint16_t i = 0; i < 21; i++)
        good_cqe(&program, i, MLX5_OPCODE_RDMA_WRITE);
}

// A queue pair that is reset begins anew; its completion queue does not.
static void reset(struct pair *pair)
{
    struct program program;
    program_open(&program, pair);
    for (int i = 0; i < 5; i++)
        wqe_write(&program, 0, 0, 8, i == 4 ? SIGNALLED : 0);
    ring(&program);
    good_cqe(&program, 4, MLX5_OPCODE_RDMA_WRITE);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    CHECK_EQ(ibv_modify_qp(pair->near.qp, &attr, IBV_QP_STATE), 0);
    if (program.gpu)
        record(&program, 0); // who has placed it sets it back
    CHECK_EQ(program.qp.dbrec[MLX5_SND_DBR], 0);
    CHECK_EQ(end_init(&pair->near, usual.far_qp_access), 0);
    CHECK_EQ(end_connect(&pair->near, &usual, &pair->there.gid, pair->there.qpn, true), 0);
    program.blocks = 0;
    *near_word(pair, 0) = 77;
    wqe_write(&program, 0, 0, 8, SIGNALLED);
    ring(&program);
    good_cqe(&program, 0, MLX5_OPCODE_RDMA_WRITE);
    CHECK_EQ(far_word(pair, 0), 77);
}

static void nothing_moves(struct pair *pair)
{
    struct program program;
    program_open(&program, pair);
    *near_word(pair, 0) = 7;
    for (uint32_t round = 0; round < 1000; round++) {
        for (int i = 0; i < 100; i++)
            wqe_write(&program, 0, 0, 8, SIGNALLED);
        ring(&program);
        CHECK_EQ(be16toh(wait_cqe(&program).wqe_counter), (uint16_t)(program.blocks - 1));
    }
    CHECK_EQ(far_word(pair, 0), 0);
}

// The device does not say that it is of that kind.
static void not_of_that_kind(struct pair *pair)
{
    struct mlx5dv_qp qp;
    struct mlx5dv_obj object = {.qp = {pair->near.qp, &qp}};
    struct ibv_device_attr attr;
    CHECK(!mlx5dv_is_supported(pair->near.context->device));
    CHECK_EQ(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), EOPNOTSUPP);
    CHECK_EQ(ibv_query_device(pair->near.context, &attr), 0);
    CHECK_EQ(attr.vendor_id, 0);
}

static void of_that_kind(struct pair *pair)
{
    struct ibv_device_attr attr;
    CHECK(mlx5dv_is_supported(pair->near.context->device));
    CHECK_EQ(ibv_query_device(pair->near.context, &attr), 0);
    CHECK_EQ(attr.vendor_id, 0x02c9);
}

const struct test_case mlx5_cases[] = {
    {"writes", ALL_MODES, "MLX5=1", .on_pair = writes},
    {"signals_follow_data", ALL_MODES, "MLX5=1", .on_pair = signals_follow_data},
    {"inline_data", ALL_MODES, "MLX5=1", .on_pair = inline_data},
    {"reads", ALL_MODES, "MLX5=1", .on_pair = reads},
    {"atomics", ALL_MODES, "MLX5=1", .on_pair = atomics},
    {"atomics_glob", ALL_MODES, "MLX5=1 ATOMIC_CAP=glob", .on_pair = atomics},
    {"masked_atomics", ALL_MODES, "MLX5=1", .on_pair = masked_atomics},
    {"masked_atomics_glob", ALL_MODES, "MLX5=1 ATOMIC_CAP=glob", .on_pair = masked_atomics},
    {"nop", SAME_PROCESS, "MLX5=1", .on_pair = nop},
    {"laps", SAME_PROCESS, "MLX5=1", .on_pair = laps},
    {"full_ring", SAME_PROCESS, "MLX5=1", .on_pair = full_ring},
    {"random_programs", ALL_MODES, "MLX5=1", .on_pair = random_programs},
    {"random_programs_apart", SAME_PROCESS, "MLX5=1 REORDER=1 DELAY_US=20 CQE_BURST=5 SEED=3",
     .on_pair = random_programs},
    {"nak_and_flush", ALL_MODES, "MLX5=1 FAIL_AFTER=5 FAIL_STATUS=operation",
     .on_pair = nak_and_flush},
    {"link_down", TWO_PROCESSES, "MLX5=1 DEVICES=2 DOWN_AFTER=0", .run = link_down},
    {"bursts", SAME_PROCESS, "MLX5=1 CQE_BURST=8", .on_pair = bursts},
    {"reset", SAME_PROCESS, "MLX5=1", .on_pair = reset},
    {"nothing_moves", SAME_PROCESS, "MLX5=1 NULL=1", .on_pair = nothing_moves},
    {"not_of_that_kind", SAME_PROCESS, .on_pair = not_of_that_kind},
    {"of_that_kind", SAME_PROCESS, "MLX5=1", .on_pair = of_that_kind},
    {0},
};
