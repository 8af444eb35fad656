// SPDX-License-Identifier: BSD-3-Clause
// Peers that die or stop, and the faults that settings ask for.
#define _GNU_SOURCE // usleep, kill
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint.h"

// The far process ends as given; then a write goes unanswered for the time the queue pair allows,
// and no longer.
static void gone(enum mode mode, int how)
{
    struct pair pair;
    struct ibv_sge sge;
    pair_open(&pair, mode, &impatient);
    struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 0, 8);
    CHECK_EQ(run_wr(&pair, &wr), IBV_WC_SUCCESS);
    kill(pair.child, how);
    waitpid(pair.child, NULL, 0);
    double start = seconds();
    CHECK_EQ(run_wr(&pair, &wr), IBV_WC_RETRY_EXC_ERR);
    double waited = seconds() - start, budget = 4 * 4.096e-6 * 1024; // 16.8 ms
    CHECK(waited >= budget * 0.99);
    CHECK_EQ(run_wr(&pair, &wr), IBV_WC_WR_FLUSH_ERR);
    end_close(&pair.near);
}

static void killed(enum mode mode)
{
    gone(mode, SIGKILL);
}

static void killed_in_midstream(enum mode mode)
{
    struct pair pair;
    struct ibv_sge sge;
    pair_open(&pair, mode, &impatient);
    int n = 0;
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    for (; status == IBV_WC_SUCCESS && n < 10000000; n++) {
        struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 0, 4096);
        status = (enum ibv_wc_status)run_wr(&pair, &wr);
        if (n == 100)
            kill(pair.child, SIGKILL);
    }
    CHECK_EQ(status, IBV_WC_RETRY_EXC_ERR);
    waitpid(pair.child, NULL, 0);
    end_close(&pair.near);
}

// With timeout 0 a NIC waits for ever; the queue pair can still be taken down.
static void waits_for_ever(enum mode mode)
{
    struct pair pair;
    struct ibv_sge sge;
    struct ibv_wc wc;
    struct options options = impatient;
    options.timeout = 0;
    pair_open(&pair, mode, &options);
    kill(pair.child, SIGKILL);
    waitpid(pair.child, NULL, 0);
    struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 0, 8);
    CHECK_EQ(post(&pair, &wr), 0);
    for (double until = seconds() + 0.2; seconds() < until;)
        CHECK_EQ(ibv_poll_cq(pair.near.cq, 1, &wc), 0);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    CHECK_EQ(ibv_modify_qp(pair.near.qp, &attr, IBV_QP_STATE), 0);
    CHECK_EQ(wait_wc(pair.near.cq).status, IBV_WC_WR_FLUSH_ERR);
    end_close(&pair.near);
}

// One-sided operations need nothing of the other processor.
static void stopped(struct pair *pair)
{
    kill(pair->child, SIGSTOP);
    waitpid(pair->child, NULL, WUNTRACED);
    *near_word(pair, 0) = 5;
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
    wr = write_wr(pair, &pair->sge, 64, 0, 8);
    wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.wr.atomic.remote_addr = pair->there.address;
    wr.wr.atomic.rkey = pair->there.rkey;
    wr.wr.atomic.compare_add = 2;
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
    CHECK_EQ(*near_word(pair, 64), 5);
    kill(pair->child, SIGCONT);
    CHECK_EQ(far_word(pair, 0), 7);
}

// A message to a stopped process is under way when the queue pair is taken down.
static void stopped_receiver(enum mode mode)
{
    struct pair pair;
    struct ibv_sge sge;
    pair_open(&pair, mode, &impatient);
    CHECK_EQ(far_do(&pair, FAR_RECEIVE, 0).value, 0);
    kill(pair.child, SIGSTOP);
    waitpid(pair.child, NULL, WUNTRACED);
    struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 0, 8);
    wr.opcode = IBV_WR_SEND;
    CHECK_EQ(post(&pair, &wr), 0);
    usleep(10000);
    kill(pair.child, SIGKILL);
    waitpid(pair.child, NULL, 0);
    CHECK_EQ(wait_wc(pair.near.cq).status, IBV_WC_RETRY_EXC_ERR);
    end_close(&pair.near);
}

// A peer that connects a little later is only late.
static void late_peer(enum mode mode)
{
    struct end near = {0}, far = {0};
    struct options options = impatient;
    options.timeout = 20; // 4.3 s a try
    end_open(&near, 0, false);
    end_queues(&near, &options, impatient.far_access, impatient.far_qp_access);
    end_open(&far, 0, false);
    end_queues(&far, &options, impatient.far_access, impatient.far_qp_access);
    CHECK_EQ(end_connect(&near, &options, &far.gid, far.qp->qp_num, true), 0);
    struct ibv_sge sge = {(uintptr_t)near.buffer, 8, near.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)far.buffer;
    wr.wr.rdma.rkey = far.mr->rkey;
    CHECK_EQ(ibv_post_send(near.qp, &wr, &bad), 0);
    usleep(50000);
    CHECK_EQ(end_connect(&far, &options, &near.gid, near.qp->qp_num, false), 0);
    CHECK_EQ(wait_wc(near.cq).status, IBV_WC_SUCCESS);
    end_close(&near);
    end_close(&far);
}

static void fails_on_demand(struct pair *pair)
{
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_REM_OP_ERR);
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_WR_FLUSH_ERR);
}

static void other_rank(enum mode mode)
{
    struct pair pair;
    struct ibv_sge sge;
    setenv("PMIX_RANK", "2", 1);
    pair_open(&pair, mode, &impatient);
    struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 0, 8);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(run_wr(&pair, &wr), IBV_WC_SUCCESS);
    pair_close(&pair);
}

static void full_on_demand(struct pair *pair)
{
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
    int refused = 0, posted = 0;
    for (int i = 0; i < 40; i++) {
        int error = post(pair, &wr);
        CHECK(!error || error == ENOMEM);
        refused += error == ENOMEM;
        posted += !error;
    }
    CHECK_EQ(refused, 13); // every third of those that found others under way
    while (posted--)
        CHECK_EQ(wait_wc(pair->near.cq).status, IBV_WC_SUCCESS);
    CHECK_EQ(post(pair, &wr), 0); // an empty queue is never full
    CHECK_EQ(wait_wc(pair->near.cq).status, IBV_WC_SUCCESS);
}

// It always claims to be full, where a completion is due.
static void full_when_one_is_due(struct pair *pair)
{
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
    wr.send_flags = 0;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(post(pair, &wr), 0);
    wr.send_flags = IBV_SEND_SIGNALED;
    CHECK_EQ(post(pair, &wr), 0);
    CHECK_EQ(post(pair, &wr), ENOMEM);
    CHECK_EQ(wait_wc(pair->near.cq).status, IBV_WC_SUCCESS);
    CHECK_EQ(post(pair, &wr), 0);
    CHECK_EQ(wait_wc(pair->near.cq).status, IBV_WC_SUCCESS);
}

static void no_memory_on_demand(enum mode mode)
{
    struct end end = {0};
    end_open(&end, 0, false);
    end_queues(&end, &impatient, IBV_ACCESS_LOCAL_WRITE, 0); // one registration
    CHECK(!ibv_reg_mr(end.pd, end.buffer, 64, 0) && errno == ENOMEM);
    end_close(&end);
}

static void event_on_demand(struct pair *pair)
{
    struct ibv_async_event event;
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
    CHECK_EQ(ibv_get_async_event(pair->near.context, &event), 0);
    CHECK_EQ(event.event_type, IBV_EVENT_PORT_ERR);
    CHECK_EQ(event.element.port_num, 1);
    ibv_ack_async_event(&event);
}

// The queue is as deep as ever: room comes back when completions are polled.
static void nothing_moves(struct pair *pair)
{
    struct ibv_wc wc;
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
    *near_word(pair, 0) = 7;
    for (int i = 0; i < 64; i++)
        CHECK_EQ(post(pair, &wr), 0);
    CHECK_EQ(post(pair, &wr), ENOMEM);
    for (int i = 0; i < 64; i++) {
        CHECK_EQ(ibv_poll_cq(pair->near.cq, 1, &wc), 1);
        CHECK_EQ(wc.status, IBV_WC_SUCCESS);
    }
    CHECK_EQ(ibv_poll_cq(pair->near.cq, 1, &wc), 0);
    CHECK_EQ(post(pair, &wr), 0);
    CHECK_EQ(far_word(pair, 0), 0);
}

static void open_far(struct pair *pair, enum mode mode, int timeout)
{
    struct options options = impatient;
    options.far_device = 1;
    options.timeout = timeout;
    pair_open(pair, mode, &options);
}

// The third request waits until the link is up again.
static void link_returns(enum mode mode)
{
    struct pair pair;
    struct ibv_sge sge;
    open_far(&pair, mode, 20);
    double start = seconds();
    for (int i = 0; i < 3; i++) {
        *near_word(&pair, 0) = 7 + (uint64_t)i;
        struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 0, 8);
        CHECK_EQ(run_wr(&pair, &wr), IBV_WC_SUCCESS);
    }
    CHECK(seconds() - start >= 0.1);
    CHECK_EQ(far_word(&pair, 0), 9);
    pair_close(&pair);
}

// One that is executed, and whose answer is lost.
static void answer_lost(enum mode mode)
{
    struct pair pair;
    struct ibv_sge sge;
    open_far(&pair, mode, 8);
    *near_word(&pair, 0) = 7;
    struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 0, 8);
    CHECK_EQ(run_wr(&pair, &wr), IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(far_word(&pair, 0), 7);
    pair_close(&pair);
}

// One write has come and was answered, three that follow came without an answer.
static void answers_lost(enum mode mode)
{
    struct pair pair;
    struct ibv_sge sges[5];
    struct ibv_send_wr wrs[5];
    open_far(&pair, mode, 8);
    *near_word(&pair, 0) = 7;
    for (int i = 0; i < 5; i++) {
        wrs[i] = write_wr(&pair, &sges[i], 0, 8 * (uint64_t)i, 8);
        CHECK_EQ(post(&pair, &wrs[i]), 0);
    }
    CHECK_EQ(wait_wc(pair.near.cq).status, IBV_WC_SUCCESS);
    CHECK_EQ(wait_wc(pair.near.cq).status, IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(far_word(&pair, 24), 7);
    CHECK_EQ(far_word(&pair, 32), 0);
    pair_close(&pair);
}

// A write of 7 to the first word, and an addition to the second, of which the first goes
// unanswered.
static void write_and_add(enum mode mode, uint64_t written, uint64_t sum)
{
    struct pair pair;
    struct ibv_sge sges[2];
    open_far(&pair, mode, 8);
    *near_word(&pair, 0) = 7;
    struct ibv_send_wr first = write_wr(&pair, &sges[0], 0, 0, 8),
                       second = write_wr(&pair, &sges[1], 8, 8, 8);
    second.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    second.wr.atomic.remote_addr = pair.there.address + 8;
    second.wr.atomic.rkey = pair.there.rkey;
    second.wr.atomic.compare_add = 1;
    CHECK_EQ(post(&pair, &first), 0);
    CHECK_EQ(post(&pair, &second), 0);
    CHECK_EQ(wait_wc(pair.near.cq).status, IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(wait_wc(pair.near.cq).status, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(far_word(&pair, 0), written);
    CHECK_EQ(far_word(&pair, 8), sum);
    pair_close(&pair);
}

// A NIC that flushes late carries out what it has posted: nothing behind a request that has not
// come, and nothing twice.
static void lingers_behind_a_gap(enum mode mode)
{
    write_and_add(mode, 0, 0);
}

static void lingers_once(enum mode mode)
{
    write_and_add(mode, 7, 1);
}

// Each end's address is legal, and known to the other: of two families, two versions of RoCE, the
// same.
static void addresses_differ(enum mode mode)
{
    const struct {
        int near_gid, far_gid, status;
    } rows[] = {{1, 3, IBV_WC_RETRY_EXC_ERR},
                {2, 3, IBV_WC_RETRY_EXC_ERR},
                {1, 1, IBV_WC_SUCCESS},
                {3, 3, IBV_WC_SUCCESS}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pair pair;
        struct ibv_sge sge;
        struct options options = impatient;
        options.near_gid = rows[i].near_gid;
        options.far_gid = rows[i].far_gid;
        pair_open(&pair, mode, &options);
        struct ibv_send_wr wr = write_wr(&pair, &sge, 0, 0, 8);
        CHECK_EQ(run_wr(&pair, &wr), rows[i].status);
        pair_close(&pair);
    }
}

static struct ibv_qp_attr query(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    CHECK_EQ(ibv_query_qp(qp, &attr, IBV_QP_RQ_PSN, &init), 0);
    return attr;
}

// A write and a read take a packet for each path MTU, an atomic one; in the error state none is
// taken any more, and the number stays.
static void packets_are_counted(struct pair *pair)
{
    uint32_t mtu = 128u << query(pair->far.qp).path_mtu, expected = query(pair->far.qp).rq_psn;
    const struct {
        enum ibv_wr_opcode opcode;
        uint32_t bytes, packets;
    } requests[] = {{IBV_WR_RDMA_WRITE, 8, 1},          {IBV_WR_RDMA_WRITE, 0, 1},
                    {IBV_WR_RDMA_WRITE, mtu, 1},        {IBV_WR_RDMA_WRITE, 2 * mtu + 1, 3},
                    {IBV_WR_RDMA_READ, 3 * mtu - 1, 3}, {IBV_WR_RDMA_READ, 1, 1},
                    {IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 1}};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, requests[i].bytes);
        wr.opcode = requests[i].opcode;
        if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
            wr.wr.atomic.remote_addr = pair->there.address;
            wr.wr.atomic.rkey = pair->there.rkey;
            wr.wr.atomic.compare_add = 0;
        }
        CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
        expected = (expected + requests[i].packets) & 0xffffff;
        CHECK_EQ(query(pair->far.qp).rq_psn, expected);
    }
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    CHECK_EQ(ibv_modify_qp(pair->far.qp, &attr, IBV_QP_STATE), 0);
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(query(pair->far.qp).rq_psn, expected);
}

const struct test_case fault_cases[] = {
    {"killed", TWO_PROCESSES, .run = killed},
    {"killed_in_midstream", TWO_PROCESSES, .run = killed_in_midstream},
    {"waits_for_ever", TWO_PROCESSES, .run = waits_for_ever},
    {"stopped", TWO_PROCESSES, .on_pair = stopped},
    {"stopped_receiver", TWO_PROCESSES, .run = stopped_receiver},
    {"late_peer", SAME_PROCESS, .run = late_peer},
    {"fails_on_demand", ALL_MODES, "FAIL_AFTER=5 FAIL_STATUS=operation",
     .on_pair = fails_on_demand},
    {"other_rank", SAME_PROCESS, "FAIL_AFTER=5 RANK=1", .run = other_rank},
    {"full_on_demand", ALL_MODES, "POST_FULL_EVERY=3 DELAY_US=100000", .on_pair = full_on_demand},
    {"full_when_one_is_due", ALL_MODES, "POST_FULL_EVERY=1 DELAY_US=100000",
     .on_pair = full_when_one_is_due},
    {"no_memory_on_demand", SAME_PROCESS, "REG_FAIL_AFTER=1", .run = no_memory_on_demand},
    {"link_returns", TWO_PROCESSES, "DEVICES=2 DOWN_AFTER=2 DOWN_MS=100", .run = link_returns},
    {"answer_lost", TWO_PROCESSES, "DEVICES=2 DOWN_AFTER=0 DOWN_LOST=1", .run = answer_lost},
    {"answers_lost", TWO_PROCESSES, "DEVICES=2 DOWN_AFTER=1 DOWN_LOST=3 DELAY_US=100000",
     .run = answers_lost},
    {"lingers_behind_a_gap", TWO_PROCESSES, "DEVICES=2 DOWN_AFTER=0 DELAY_US=100000 FLUSH_US=10000",
     .run = lingers_behind_a_gap},
    {"lingers_once", TWO_PROCESSES,
     "DEVICES=2 DOWN_AFTER=0 DOWN_LOST=2 DELAY_US=100000 FLUSH_US=10000", .run = lingers_once},
    {"addresses_differ", ALL_MODES, .run = addresses_differ},
    {"packets_are_counted", SAME_PROCESS, .on_pair = packets_are_counted},
    {"nothing_moves", ALL_MODES, "NULL=1", .on_pair = nothing_moves},
    {"event_on_demand", ALL_MODES, "EVENT_AFTER=2", .on_pair = event_on_demand},
    {0},
};
