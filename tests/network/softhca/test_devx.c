// SPDX-License-Identifier: BSD-3-Clause
// Objects by commands to the firmware: a queue pair in memory of the program's works, and each
// single bit of each mailbox that is wrong is refused.
#define _GNU_SOURCE // memfd_create, endian.h
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mlx5.h"
#include "program.h"

enum {
    CREATE_CQ = 0x400,
    CREATE_QP = 0x500,
    RST2INIT = 0x502,
    INIT2RTR = 0x503,
    RTR2RTS = 0x504,
    TO_ERR = 0x507,
    BYTES = 0x110,
    STATE_BYTES = 0x10,
    LOG_ENTRIES = 6,
    ENTRIES = 1 << LOG_ENTRIES,
    MEMORY = 4 * 4096, // send queue, completion queue, records
    CQ_AT = 4096,
    RECORDS_AT = 2 * 4096,
    CQ_RECORD_AT = RECORDS_AT + 64,
};

struct object {
    struct pair *pair;
    char *memory;
    struct mlx5dv_devx_umem *umem;
    struct mlx5dv_devx_uar *uar;
    struct mlx5dv_devx_obj *cq, *qp;
    uint32_t pdn, cqn, qpn;
};

static void set(unsigned char *box, uint32_t bit, uint32_t bits, uint64_t value)
{
    for (uint32_t i = 0; i < bits; i++)
        if (value >> (bits - 1 - i) & 1)
            box[(bit + i) / 8] |= (unsigned char)(0x80 >> (bit + i) % 8);
}

static uint32_t number_in(const unsigned char *out)
{
    uint32_t word;
    memcpy(&word, out + 8, sizeof word);
    return be32toh(word);
}

static void open_memory(struct object *object, struct pair *pair)
{
    struct mlx5dv_pd pd;
    struct mlx5dv_obj about = {.pd = {pair->near.pd, &pd}};
    int fd = memfd_create("queues", MFD_CLOEXEC);
    *object = (struct object){.pair = pair};
    CHECK_EQ(ftruncate(fd, MEMORY), 0);
    object->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (int i = 1; i <= ENTRIES; i++)
        object->memory[CQ_AT + 64 * i - 1] = (char)(MLX5_CQE_INVALID << 4);
    struct mlx5dv_devx_umem_in in = {.size = MEMORY,
                                     .access = IBV_ACCESS_LOCAL_WRITE,
                                     .comp_mask = MLX5DV_UMEM_MASK_DMABUF,
                                     .dmabuf_fd = fd};
    object->umem = mlx5dv_devx_umem_reg_ex(pair->near.context, &in);
    object->uar = mlx5dv_devx_alloc_uar(pair->near.context, MLX5DV_UAR_ALLOC_TYPE_BF);
    CHECK(object->umem && object->uar);
    CHECK_EQ(mlx5dv_init_obj(&about, MLX5DV_OBJ_PD), 0);
    object->pdn = pd.pdn;
    close(fd);
}

// ---- Good mailboxes ----

static void box_of_cq(const struct object *object, unsigned char *box)
{
    uint32_t eqn;
    CHECK_EQ(mlx5dv_devx_query_eqn(object->pair->near.context, 0, &eqn), 0);
    set(box, 0, 16, CREATE_CQ);
    set(box, 0x86, 1, 1);
    set(box, 0xa0, 32, object->umem->umem_id);
    set(box, 0xe3, 5, LOG_ENTRIES);
    set(box, 0xe8, 24, object->uar->page_id);
    set(box, 0x138, 8, eqn);
    set(box, 0x240, 64, CQ_RECORD_AT);
    set(box, 0x280, 64, CQ_AT);
    set(box, 0x2c0, 32, object->umem->umem_id);
    set(box, 0x2e0, 1, 1);
}

static void box_of_qp(const struct object *object, unsigned char *box)
{
    set(box, 0, 16, CREATE_QP);
    set(box, 0xc0 + 0x13, 2, 3);
    set(box, 0xc0 + 0x28, 24, object->pdn);
    set(box, 0xc0 + 0x51, 4, LOG_ENTRIES);
    set(box, 0xc0 + 0x68, 24, object->uar->page_id);
    set(box, 0xc0 + 0x88, 24, 0xffffff);
    set(box, 0xc0 + 0x3e8, 24, object->cqn);
    set(box, 0xc0 + 0x4e8, 24, object->cqn);
    set(box, 0xc0 + 0x500, 64, RECORDS_AT);
    set(box, 0xc0 + 0x565, 3, 3);
    set(box, 0xc0 + 0x683, 1, 1);
    set(box, 0xc0 + 0x720, 32, object->umem->umem_id);
    set(box, 0x840, 32, object->umem->umem_id);
    set(box, 0x860, 1, 1);
}

static void box_of_init(const struct object *object, unsigned char *box)
{
    set(box, 0, 16, RST2INIT);
    set(box, 0x48, 24, object->qpn);
    set(box, 0xc0 + 0x13, 2, 3);
    set(box, 0x180 + 0x128, 8, 1);
    set(box, 0xc0 + 0x48c, 4, 1);
    set(box, 0xc0 + 0x490, 3, 7);
}

// To itself.
static void box_of_ready(const struct object *object, unsigned char *box)
{
    const unsigned char *gid = object->pair->near.gid.raw;
    unsigned char mac[6];
    set(box, 0, 16, INIT2RTR);
    set(box, 0x48, 24, object->qpn);
    set(box, 0xc0 + 0x40, 3, IBV_MTU_1024);
    set(box, 0xc0 + 0x43, 5, 30);
    set(box, 0xc0 + 0xa8, 24, object->qpn);
    set(box, 0xc0 + 0x488, 3, 2);
    set(box, 0xc0 + 0x4a3, 5, 12);
    set(box, 0xc0 + 0x4a8, 24, 77);
    set(box, 0x180 + 0x48, 8, object->pair->near.gid_index);
    set(box, 0x180 + 0x58, 8, 64);
    set(box, 0x180 + 0x110, 16, 0xc000);
    set(box, 0x180 + 0x128, 8, 1);
    memcpy(box + (0x180 + 0x80) / 8, gid, 16);
    shca_mlx5_mac_of(gid, mac);
    memcpy(box + (0x180 + 0x130) / 8, mac, sizeof mac);
}

static void box_of_send(const struct object *object, unsigned char *box)
{
    set(box, 0, 16, RTR2RTS);
    set(box, 0x48, 24, object->qpn);
    set(box, 0x180 + 0x40, 5, 14);
    set(box, 0xc0 + 0x388, 3, 2);
    set(box, 0xc0 + 0x38d, 3, 7);
    set(box, 0xc0 + 0x390, 3, 7);
    set(box, 0xc0 + 0x3c8, 24, 77);
}

static void box_of_error(const struct object *object, unsigned char *box)
{
    set(box, 0, 16, TO_ERR);
    set(box, 0x48, 24, object->qpn);
}

// Bits that may have either value: each is a field's whose values this NIC takes, [first, +n).
struct range {
    uint16_t first, n;
};

static const struct step {
    void (*fill)(const struct object *object, unsigned char *box);
    size_t bytes;
    struct range free[16];
} steps[] = {
    {box_of_cq, BYTES, {{0xe3, 5}, {0x240, 64}, {0x280, 64}}},
    {box_of_qp, BYTES, {{0xc0 + 0x51, 4}, {0xc0 + 0x500, 64}, {0x800, 64}}},
    {box_of_init, BYTES, {{0xc0 + 0x490, 3}}},
    {box_of_ready,
     BYTES,
     {{0xc0 + 0x40, 3},
      {0xc0 + 0xa8, 24},
      {0xc0 + 0x488, 3},
      {0xc0 + 0x4a3, 5},
      {0xc0 + 0x4a8, 24},
      {0x180 + 0x48, 8},
      {0x180 + 0x58, 8},
      {0x180 + 0x64, 8},
      {0x180 + 0x6c, 20},
      {0x180 + 0x112, 14},
      {0x180 + 0x121, 3}}},
    {box_of_send,
     BYTES,
     {{0x180 + 0x40, 5},
      {0xc0 + 0x380, 4},
      {0xc0 + 0x388, 3},
      {0xc0 + 0x38d, 6},
      {0xc0 + 0x3c8, 24}}},
    {box_of_error, STATE_BYTES, {{0}}},
};
enum { STEPS = sizeof steps / sizeof *steps, LAST_OF_START = STEPS - 1 };

static bool is_free(const struct step *step, uint32_t bit)
{
    bool any = false;
    for (int i = 0; i < 16; i++)
        any |= bit - step->free[i].first < step->free[i].n;
    return any;
}

// Returns 0 or an errno.
static int send(struct object *object, int number, const unsigned char *box)
{
    unsigned char out[16] = {0xff};
    struct mlx5dv_devx_obj *made;
    if (number > 1)
        return mlx5dv_devx_obj_modify(object->qp, box, steps[number].bytes, out, sizeof out);
    made = mlx5dv_devx_obj_create(object->pair->near.context, box, steps[number].bytes, out,
                                  sizeof out);
    CHECK_EQ(out[0] != 0, !made);
    if (!made)
        return errno;
    *(number ? &object->qp : &object->cq) = made;
    *(number ? &object->qpn : &object->cqn) = number_in(out);
    return 0;
}

static void take(struct object *object, int number)
{
    unsigned char box[BYTES] = {0};
    steps[number].fill(object, box);
    CHECK_EQ(send(object, number, box), 0);
}

static void close_all(struct object *object)
{
    CHECK_EQ(mlx5dv_devx_umem_dereg(object->umem), EBUSY); // its queues are there
    CHECK_EQ(mlx5dv_devx_obj_destroy(object->cq), EBUSY);
    CHECK_EQ(mlx5dv_devx_obj_destroy(object->qp), 0);
    CHECK_EQ(mlx5dv_devx_obj_destroy(object->cq), 0);
    CHECK_EQ(mlx5dv_devx_umem_dereg(object->umem), 0);
    mlx5dv_devx_free_uar(object->uar);
    munmap(object->memory, MEMORY);
}

// ---- Tests ----

static void describe(struct object *object, struct program *program)
{
    struct pair *pair = object->pair;
    *program = (struct program){.pair = pair, .qpn = object->qpn};
    program->qp.sq.buf = object->memory;
    program->qp.sq.wqe_cnt = ENTRIES;
    program->qp.dbrec = (__be32 *)(void *)(object->memory + RECORDS_AT);
    program->qp.bf.reg = object->uar->reg_addr;
    program->qp.bf.size = SHCA_MLX5_BLUEFLAME;
    program->cq.buf = object->memory + CQ_AT;
    program->cq.dbrec = (__be32 *)(void *)(object->memory + CQ_RECORD_AT);
    program->cq.cqe_cnt = ENTRIES;
    program->cq.cqe_size = 64;
    pair->there.address = (uintptr_t)pair->near.buffer; // of the same end
    pair->there.rkey = pair->near.mr->rkey;
}

// Some laps around both queues.
static void works(struct pair *pair)
{
    struct object object;
    struct program program;
    uint64_t word;
    open_memory(&object, pair);
    for (int i = 0; i < LAST_OF_START; i++)
        take(&object, i);
    describe(&object, &program);
    for (uint64_t i = 0; i < 5 * ENTRIES; i++) {
        memcpy(pair->near.buffer, &i, sizeof i);
        wqe_write(&program, 0, 4096, 8, MLX5_WQE_CTRL_CQ_UPDATE);
        ring(&program);
        struct mlx5_cqe64 cqe = wait_cqe(&program);
        CHECK_EQ(cqe_opcode(&cqe), MLX5_CQE_REQ);
        memcpy(&word, pair->near.buffer + 4096, sizeof word);
        CHECK_EQ(word, i);
    }
    take(&object, LAST_OF_START);
    wqe_write(&program, 0, 4096, 8, 0);
    ring(&program);
    struct mlx5_cqe64 cqe = wait_cqe(&program);
    CHECK_EQ(cqe_syndrome(&cqe), MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
    close_all(&object);
}

// One bit after the other of a mailbox that is good otherwise.
static void each_bit(struct object *object, int number)
{
    unsigned char box[BYTES] = {0};
    steps[number].fill(object, box);
    for (uint32_t bit = 0; bit < 8 * steps[number].bytes; bit++) {
        if (is_free(&steps[number], bit))
            continue;
        box[bit / 8] ^= (unsigned char)(0x80 >> bit % 8);
        int error = send(object, number, box);
        if (error != EREMOTEIO)
            fprintf(stderr, "step %d: bit 0x%x is taken either way\n", number, bit);
        CHECK_EQ(error, EREMOTEIO);
        box[bit / 8] ^= (unsigned char)(0x80 >> bit % 8);
    }
}

static void refuses_each_bit(struct pair *pair)
{
    struct object object;
    open_memory(&object, pair);
    for (int i = 0; i < STEPS && !failures; i++) {
        each_bit(&object, i);
        take(&object, i);
    }
    close_all(&object);
}

static void expect(struct object *object, int number, const unsigned char *box,
                   enum shca_misuse kind)
{
    uint32_t before = atomic_load(&shca_misuses[kind]);
    CHECK_EQ(send(object, number, box), EREMOTEIO);
    CHECK_EQ(atomic_load(&shca_misuses[kind]), before + 1);
}

// Each kind of complaint, by its name.
static void by_kind(struct pair *pair)
{
    struct object object;
    unsigned char box[BYTES] = {0}, other[BYTES] = {0}, out[16];
    open_memory(&object, pair);
    set(box, 0, 16, 0x123);
    expect(&object, 0, box, SHCA_MISUSE_DEVX_OPCODE);
    memset(box, 0, sizeof box);
    box_of_cq(&object, box);
    CHECK(!mlx5dv_devx_obj_create(pair->near.context, box, BYTES - 4, out, sizeof out));
    CHECK_EQ(atomic_load(&shca_misuses[SHCA_MISUSE_DEVX_LENGTH]), 1);
    object.memory[CQ_AT + 63] = 0; // an entry that would be taken for a completion
    expect(&object, 0, box, SHCA_MISUSE_DEVX_CQE);
    object.memory[CQ_AT + 63] = (char)(MLX5_CQE_INVALID << 4);
    set(box, 0x240 + 63, 1, 1); // a record that is not aligned
    expect(&object, 0, box, SHCA_MISUSE_DEVX_UMEM);
    take(&object, 0);
    take(&object, 1);
    box_of_ready(&object, other);
    expect(&object, 3, other, SHCA_MISUSE_DEVX_STATE);
    set(other, 0x40, 1, 1);
    expect(&object, 3, other, SHCA_MISUSE_DEVX_RESERVED);
    close_all(&object);
}

const struct test_case devx_cases[] = {
    {"works", SAME_PROCESS, "MLX5=1", .on_pair = works},
    {"refuses_each_bit", SAME_PROCESS, "MLX5=1", .on_pair = refuses_each_bit},
    {"by_kind", SAME_PROCESS, "MLX5=1", .on_pair = by_kind},
    {0},
};
