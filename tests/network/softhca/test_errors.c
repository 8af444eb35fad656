// SPDX-License-Identifier: BSD-3-Clause
// What must be refused, with which status, and what becomes of the queue pairs.
#include <errno.h>

#include "endpoint.h"

static struct ibv_send_wr atomic_wr(struct pair *pair, struct ibv_sge *sge, uint64_t to)
{
    struct ibv_send_wr wr = write_wr(pair, sge, 64, 0, 8);
    wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.wr.atomic.remote_addr = pair->there.address + to;
    wr.wr.atomic.rkey = pair->there.rkey;
    wr.wr.atomic.compare_add = 1;
    return wr;
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    CHECK_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}

// One write that must fail at the target, which is told by an event.
static void refused(enum mode mode, const struct options *options, uint64_t to, uint32_t bytes,
                    uint32_t key_change, enum ibv_wr_opcode opcode, enum ibv_wc_status status)
{
    struct pair pair;
    struct ibv_sge sge;
    pair_open(&pair, mode, options);
    struct ibv_send_wr wr = write_wr(&pair, &sge, 0, to, bytes);
    wr.opcode = opcode;
    wr.wr.rdma.rkey ^= key_change;
    CHECK_EQ(run_wr(&pair, &wr), status);
    CHECK_EQ(state_of(pair.near.qp), IBV_QPS_ERR);
    CHECK_EQ(far_do(&pair, FAR_EVENT, 0).value, IBV_EVENT_QP_ACCESS_ERR);
    pair_close(&pair);
}

static void wrong_key(enum mode mode)
{
    refused(mode, &usual, 0, 8, 2, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR);
    refused(mode, &usual, 0, 8, 1u << 31, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR);
}

static void out_of_bounds(enum mode mode)
{
    refused(mode, &usual, BUFFER_BYTES - 7, 8, 0, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR);
    refused(mode, &usual, (uint64_t)-8, 8, 0, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR);
    refused(mode, &usual, BUFFER_BYTES, 1, 0, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR);
}

static void region_access(enum mode mode)
{
    struct options options = usual;
    options.far_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    refused(mode, &options, 0, 8, 0, IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR);
    options.far_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    refused(mode, &options, 0, 8, 0, IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR);
}

static void queue_access(enum mode mode)
{
    struct options options = usual;
    options.far_qp_access = IBV_ACCESS_REMOTE_READ;
    refused(mode, &options, 0, 8, 0, IBV_WR_RDMA_WRITE, IBV_WC_REM_INV_REQ_ERR);
}

static void stale_key(struct pair *pair)
{
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
    CHECK_EQ(far_do(pair, FAR_DEREGISTER, 0).value, 0);
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_REM_ACCESS_ERR);
}

static void local_key(struct pair *pair)
{
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, BUFFER_BYTES - 4, 0, 8); // 4 bytes too far
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_LOC_PROT_ERR);
    CHECK_EQ(far_word(pair, 0), 0);
}

// The key of the far end means nothing here, and the other way round.
static void foreign_domain(struct pair *pair)
{
    struct ibv_pd *pd = ibv_alloc_pd(pair->near.context);
    struct ibv_mr *mr = ibv_reg_mr(pd, pair->near.buffer, 64, IBV_ACCESS_LOCAL_WRITE);
    CHECK(mr);
    CHECK_EQ(ibv_dealloc_pd(pd), EBUSY);
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
    pair->sge.lkey = mr->lkey;
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_LOC_PROT_ERR);
    CHECK_EQ(ibv_dereg_mr(mr), 0);
    CHECK_EQ(ibv_dealloc_pd(pd), 0);
}

static void misaligned_atomic(struct pair *pair)
{
    struct ibv_send_wr wr = atomic_wr(pair, &pair->sge, 4);
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_REM_INV_REQ_ERR);
    CHECK_EQ(far_word(pair, 4), 0);
}

static void atomic_result_size(struct pair *pair)
{
    struct ibv_send_wr wr = atomic_wr(pair, &pair->sge, 0);
    pair->sge.length = 4;
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_LOC_LEN_ERR);
    CHECK_EQ(far_word(pair, 0), 0); // it did not happen
}

static void no_atomics(struct pair *pair)
{
    struct ibv_device_attr attr;
    CHECK_EQ(ibv_query_device(pair->near.context, &attr), 0);
    CHECK_EQ(attr.atomic_cap, IBV_ATOMIC_NONE);
    struct ibv_send_wr wr = atomic_wr(pair, &pair->sge, 0);
    CHECK_EQ(post(pair, &wr), EINVAL);
}

static void too_many_reads(enum mode mode)
{
    struct pair pair;
    struct ibv_sge sge;
    struct options options = usual;
    options.far_max_rd = 4; // fewer than the 8 this end may send
    pair_open(&pair, mode, &options);
    struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 0, 8);
    wr.opcode = IBV_WR_RDMA_READ;
    CHECK_EQ(run_wr(&pair, &wr), IBV_WC_REM_INV_REQ_ERR);
    pair_close(&pair);
}

static void no_reads(enum mode mode)
{
    struct pair pair;
    struct ibv_sge sge;
    struct options options = usual;
    options.max_rd = 0;
    pair_open(&pair, mode, &options);
    struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 0, 8);
    CHECK_EQ(run_wr(&pair, &wr), IBV_WC_SUCCESS);
    wr.opcode = IBV_WR_RDMA_READ;
    CHECK_EQ(run_wr(&pair, &wr), IBV_WC_LOC_QP_OP_ERR);
    pair_close(&pair);
}

static void too_long(struct pair *pair)
{
    struct ibv_port_attr port;
    CHECK_EQ(ibv_query_port(pair->near.context, 1, &port), 0);
    CHECK_EQ(port.max_msg_sz, 4096);
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 4096);
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
    wr = write_wr(pair, &pair->sge, 0, 0, 4097);
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_LOC_LEN_ERR);
}

// After an error everything is flushed, in order, unsignalled requests and later posts included.
static void flushed(struct pair *pair)
{
    struct ibv_send_wr chain[4];
    for (int i = 0; i < 4; i++) {
        chain[i] = write_wr(pair, &pair->sge, 0, 0, 8);
        chain[i].wr_id = (uint64_t)i;
        chain[i].send_flags = 0;
        chain[i].next = i < 3 ? &chain[i + 1] : NULL;
    }
    chain[1].wr.rdma.rkey ^= 2;
    CHECK_EQ(post(pair, chain), 0);
    for (uint64_t i = 1; i < 4; i++) {
        struct ibv_wc wc = wait_wc(pair->near.cq);
        CHECK_EQ(wc.wr_id, i);
        CHECK_EQ(wc.status, i == 1 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
    }
    chain[3].wr_id = 99;
    CHECK_EQ(post(pair, &chain[3]), 0);
    struct ibv_wc wc = wait_wc(pair->near.cq);
    CHECK(wc.wr_id == 99 && wc.status == IBV_WC_WR_FLUSH_ERR);
}

static void receiver_not_ready(struct pair *pair)
{
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
    wr.opcode = IBV_WR_SEND;
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_RNR_RETRY_EXC_ERR);
}

static void message_too_long(struct pair *pair)
{
    CHECK_EQ(far_do(pair, FAR_RECEIVE, 0).value, 0); // 64 bytes
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 65);
    wr.opcode = IBV_WR_SEND;
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_REM_INV_REQ_ERR);
    CHECK_EQ(far_do(pair, FAR_POLL, 0).wc.status, IBV_WC_LOC_LEN_ERR);
}

static void posting(struct pair *pair)
{
    struct ibv_sge sge, many[5];
    struct ibv_send_wr wr = write_wr(pair, &sge, 0, 0, 65);
    wr.send_flags |= IBV_SEND_INLINE; // 64 bytes fit
    CHECK_EQ(post(pair, &wr), EINVAL);
    wr = write_wr(pair, many, 0, 0, 0);
    wr.num_sge = 5; // 4 were asked for
    CHECK_EQ(post(pair, &wr), EINVAL);
    wr = write_wr(pair, &sge, 0, 0, 8);
    wr.opcode = IBV_WR_LOCAL_INV;
    CHECK_EQ(post(pair, &wr), EINVAL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    CHECK_EQ(ibv_modify_qp(pair->near.qp, &attr, IBV_QP_STATE), 0);
    wr.opcode = IBV_WR_RDMA_WRITE;
    CHECK_EQ(post(pair, &wr), EINVAL);
}

const struct test_case error_cases[] = {
    {"wrong_key", ALL_MODES, .run = wrong_key},
    {"out_of_bounds", ALL_MODES, .run = out_of_bounds},
    {"region_access", ALL_MODES, .run = region_access},
    {"queue_access", ALL_MODES, .run = queue_access},
    {"stale_key", ALL_MODES, .on_pair = stale_key},
    {"local_key", ALL_MODES, .on_pair = local_key},
    {"foreign_domain", ALL_MODES, .on_pair = foreign_domain},
    {"misaligned_atomic", ALL_MODES, .on_pair = misaligned_atomic},
    {"atomic_result_size", ALL_MODES, .on_pair = atomic_result_size},
    {"no_atomics", SAME_PROCESS, "ATOMIC_CAP=none", .on_pair = no_atomics},
    {"too_many_reads", ALL_MODES, .run = too_many_reads},
    {"no_reads", SAME_PROCESS, .run = no_reads},
    {"too_long", ALL_MODES, "MAX_MSG=4096", .on_pair = too_long},
    {"flushed", ALL_MODES, .on_pair = flushed},
    {"receiver_not_ready", ALL_MODES, .on_pair = receiver_not_ready},
    {"message_too_long", ALL_MODES, .on_pair = message_too_long},
    {"posting", SAME_PROCESS, .on_pair = posting},
    {0},
};
