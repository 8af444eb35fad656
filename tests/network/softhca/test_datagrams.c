// SPDX-License-Identifier: BSD-3-Clause
// Unreliable datagrams between two devices, both of this process.
#include <errno.h>
#include <time.h>

#include "endpoint.h"

enum { GRH = 40, BYTES = 100, KEY = 0x1234, SLOT = 256 };

struct side {
    struct end end;
    struct ibv_qp *qp;
    struct ibv_ah *to; // the other side
};

static void side_open(struct side *side, int device)
{
    end_open(&side->end, device, false);
    side->end.pd = ibv_alloc_pd(side->end.context);
    side->end.mr = ibv_reg_mr(side->end.pd, side->end.buffer, BUFFER_BYTES, IBV_ACCESS_LOCAL_WRITE);
    side->end.cq = ibv_create_cq(side->end.context, 64, NULL, NULL, 0);
    side->end.recv_cq = ibv_create_cq(side->end.context, 64, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {.send_cq = side->end.cq,
                                    .recv_cq = side->end.recv_cq,
                                    .qp_type = IBV_QPT_UD,
                                    .cap = {16, 16, 1, 1, 0}};
    side->qp = ibv_create_qp(side->end.pd, &init);
    CHECK(side->qp);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = KEY};
    CHECK_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT),
             EINVAL);
    CHECK_EQ(ibv_modify_qp(side->qp, &attr,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
             0);
    attr.qp_state = IBV_QPS_RTR;
    CHECK_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    CHECK_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void side_close(struct side *side)
{
    CHECK_EQ(ibv_dealloc_pd(side->end.pd), EBUSY);
    CHECK_EQ(ibv_destroy_ah(side->to), 0);
    CHECK_EQ(ibv_destroy_qp(side->qp), 0);
    CHECK_EQ(ibv_destroy_cq(side->end.cq), 0);
    CHECK_EQ(ibv_destroy_cq(side->end.recv_cq), 0);
    CHECK_EQ(ibv_dereg_mr(side->end.mr), 0);
    CHECK_EQ(ibv_dealloc_pd(side->end.pd), 0);
    CHECK_EQ(ibv_close_device(side->end.context), 0);
}

static void address(struct side *from, const struct side *to)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = to->end.gid}};
    from->to = ibv_create_ah(from->end.pd, &attr);
    CHECK(from->to);
}

static void both_open(struct side sides[2])
{
    memset(sides, 0, 2 * sizeof sides[0]);
    side_open(&sides[0], 0);
    side_open(&sides[1], 1);
    address(&sides[0], &sides[1]);
    address(&sides[1], &sides[0]);
}

static void receive(struct side *side, uint64_t slot)
{
    struct ibv_sge sge = {(uintptr_t)side->end.buffer + slot * SLOT, SLOT, side->end.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    CHECK_EQ(ibv_post_recv(side->qp, &wr, &bad), 0);
}

// Returns when it has left.
static void send(struct side *side, const struct side *to, uint32_t key)
{
    struct ibv_sge sge = {(uintptr_t)side->end.buffer, BYTES, side->end.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {side->to, to->qp->qp_num, key}},
                       *bad;
    CHECK_EQ(ibv_post_send(side->qp, &wr, &bad), 0);
    CHECK_EQ(wait_wc(side->end.cq).status, IBV_WC_SUCCESS);
}

static int arrived(struct side *side)
{
    struct ibv_wc wc;
    double start = seconds();
    int n = 0;
    while (seconds() - start < 0.2)
        n += ibv_poll_cq(side->end.recv_cq, 1, &wc);
    return n;
}

static void comes_behind_a_header(enum mode mode)
{
    struct side sides[2];
    both_open(sides);
    for (int i = 0; i < BYTES; i++)
        sides[0].end.buffer[i] = (char)i;
    receive(&sides[1], 3);
    send(&sides[0], &sides[1], KEY);
    struct ibv_wc wc = wait_wc(sides[1].end.recv_cq);
    CHECK_EQ(wc.status, IBV_WC_SUCCESS);
    CHECK_EQ(wc.wr_id, 3);
    CHECK_EQ(wc.byte_len, GRH + BYTES);
    CHECK_EQ(wc.src_qp, sides[0].qp->qp_num);
    CHECK(!memcmp(sides[1].end.buffer + 3 * SLOT + GRH, sides[0].end.buffer, BYTES));
    side_close(&sides[0]);
    side_close(&sides[1]);
}

// With another key, without a receive, to a number that nobody has.
static void is_dropped_in_silence(enum mode mode)
{
    struct side sides[2];
    both_open(sides);
    send(&sides[0], &sides[1], KEY);
    CHECK_EQ(arrived(&sides[1]), 0);
    receive(&sides[1], 0);
    send(&sides[0], &sides[1], KEY + 1);
    CHECK_EQ(arrived(&sides[1]), 0);
    struct side nobody = sides[1];
    struct ibv_qp qp = {.qp_num = sides[1].qp->qp_num ^ 1};
    nobody.qp = &qp;
    send(&sides[0], &nobody, KEY);
    CHECK_EQ(arrived(&sides[1]), 0);
    send(&sides[0], &sides[1], KEY);
    CHECK_EQ(arrived(&sides[1]), 1);
    side_close(&sides[0]);
    side_close(&sides[1]);
}

static void is_lost_on_demand(enum mode mode)
{
    struct side sides[2];
    both_open(sides);
    for (int i = 0; i < 16; i++) {
        receive(&sides[1], 0);
        send(&sides[0], &sides[1], KEY);
    }
    int n = arrived(&sides[1]);
    CHECK(n > 0 && n < 16);
    side_close(&sides[0]);
    side_close(&sides[1]);
}

static void comes_twice_on_demand(enum mode mode)
{
    struct side sides[2];
    both_open(sides);
    receive(&sides[1], 0);
    receive(&sides[1], 1);
    send(&sides[0], &sides[1], KEY);
    CHECK_EQ(arrived(&sides[1]), 2);
    side_close(&sides[0]);
    side_close(&sides[1]);
}

const struct test_case datagram_cases[] = {
    {"comes_behind_a_header", SAME_PROCESS, "DEVICES=2", .run = comes_behind_a_header},
    {"is_dropped_in_silence", SAME_PROCESS, "DEVICES=2", .run = is_dropped_in_silence},
    {"is_lost_on_demand", SAME_PROCESS, "DEVICES=2 DATAGRAM_LOSS=50", .run = is_lost_on_demand},
    {"comes_twice_on_demand", SAME_PROCESS, "DEVICES=2 DATAGRAM_TWICE=100",
     .run = comes_twice_on_demand},
    {0},
};
