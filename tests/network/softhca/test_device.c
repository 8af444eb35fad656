// SPDX-License-Identifier: BSD-3-Clause
// Devices, ports, GIDs, state transitions, registration.
#define _GNU_SOURCE // memfd_create
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "endpoint.h"

static void list_and_query(enum mode mode)
{
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    CHECK_EQ(n, 3);
    CHECK(list && !list[3] && !strcmp(ibv_get_device_name(list[2]), "softhca2"));
    CHECK(ibv_get_device_guid(list[0]) != ibv_get_device_guid(list[1]));
    struct ibv_context *context = ibv_open_device(list[1]);
    ibv_free_device_list(list);
    CHECK(context);
    struct ibv_device_attr attr;
    struct ibv_device_attr_ex wide;
    CHECK_EQ(ibv_query_device(context, &attr), 0);
    CHECK_EQ(attr.max_qp_rd_atom, 5);
    CHECK_EQ(ibv_query_device_ex(context, NULL, &wide), 0);
    CHECK_EQ(wide.orig_attr.max_qp_rd_atom, 5);
    struct ibv_port_attr port;
    CHECK_EQ(ibv_query_port(context, 2, &port), EINVAL);
    CHECK_EQ(ibv_query_port(context, 1, &port), 0);
    CHECK_EQ(port.active_mtu, IBV_MTU_1024);
    CHECK_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
    struct ibv_gid_entry entries[8], one;
    CHECK_EQ(ibv_query_gid_table(context, entries, 8, 0), port.gid_tbl_len);
    CHECK_EQ(ibv_query_gid_ex(context, 1, 3, &one, 0), 0);
    CHECK(!memcmp(&one, &entries[3], sizeof one) && one.gid_type == IBV_GID_TYPE_ROCE_V2 &&
          one.gid.raw[12] == 10);
    CHECK(ibv_query_gid_ex(context, 1, 4, &one, 0));
    CHECK_EQ(ibv_close_device(context), 0);
}

static void wrong_setting(enum mode mode)
{
    int n = 7;
    errno = 0;
    CHECK(!ibv_get_device_list(&n));
    CHECK_EQ(errno, EINVAL);
    CHECK_EQ(n, 0);
}

static int modify(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
    struct ibv_qp_attr attr = {
        .qp_state = state, .port_num = 1, .path_mtu = IBV_MTU_1024, .max_rd_atomic = 1};
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask);
}

static void transitions(enum mode mode)
{
    struct end end = {0};
    end_open(&end, 0, false);
    end_queues(&end, &usual, IBV_ACCESS_LOCAL_WRITE, 0);
    CHECK_EQ(modify(end.qp, IBV_QPS_RTS, 0), EINVAL);            // from INIT
    CHECK_EQ(modify(end.qp, IBV_QPS_RTR, 0), EINVAL);            // attributes are missing
    CHECK_EQ(modify(end.qp, IBV_QPS_INIT, IBV_QP_QKEY), EINVAL); // not for RC
    // nobody has that address
    CHECK_EQ(end_connect(&end, &usual, &(union ibv_gid){.raw = {10}}, 2, true), ETIMEDOUT);
    struct options options = usual;
    options.max_rd = 17; // the device has 16
    CHECK_EQ(end_connect(&end, &options, &end.gid, 2, true), EINVAL);
    CHECK_EQ(end_connect(&end, &usual, &end.gid, end.qp->qp_num, true), 0); // to itself
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    CHECK_EQ(ibv_query_qp(end.qp, &attr, 0, &init), 0);
    CHECK(attr.qp_state == IBV_QPS_RTS && attr.dest_qp_num == end.qp->qp_num &&
          attr.timeout == usual.timeout);
    CHECK(init.cap.max_inline_data == 64 && attr.max_rd_atomic == 8);
    CHECK_EQ(modify(end.qp, IBV_QPS_ERR, 0), 0);
    CHECK_EQ(modify(end.qp, IBV_QPS_RTS, 0), EINVAL);
    CHECK_EQ(modify(end.qp, IBV_QPS_RESET, 0), 0);
    CHECK_EQ(end_init(&end, 0), 0);
    CHECK_EQ(end_connect(&end, &usual, &end.gid, end.qp->qp_num, true), 0);
    end_close(&end);
}

static void queue_limits(enum mode mode)
{
    struct end end = {0};
    end_open(&end, 0, false);
    end_queues(&end, &usual, IBV_ACCESS_LOCAL_WRITE, 0);
    struct ibv_qp_init_attr init = {.send_cq = end.cq, .recv_cq = end.cq, .qp_type = IBV_QPT_RC};
    init.cap.max_send_wr = 101;
    CHECK(!ibv_create_qp(end.pd, &init) && errno == EINVAL);
    init.cap.max_send_wr = 100;
    init.cap.max_inline_data = 65;
    CHECK(!ibv_create_qp(end.pd, &init) && errno == EINVAL);
    init.cap.max_inline_data = 64;
    struct ibv_qp *qp = ibv_create_qp(end.pd, &init);
    CHECK(qp);
    CHECK_EQ(ibv_destroy_cq(end.cq), EBUSY);
    CHECK_EQ(ibv_dealloc_pd(end.pd), EBUSY);
    CHECK_EQ(ibv_destroy_qp(qp), 0);
    init.qp_type = IBV_QPT_UC;
    CHECK(!ibv_create_qp(end.pd, &init) && errno == EOPNOTSUPP);
    CHECK(!ibv_create_cq(end.context, 1001, NULL, NULL, 0));
    end_close(&end);
}

static void registration(enum mode mode)
{
    struct end end = {0};
    end_open(&end, 0, false);
    end_queues(&end, &usual, IBV_ACCESS_LOCAL_WRITE, 0);
    CHECK(!ibv_reg_mr(end.pd, end.buffer, 64, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
    CHECK(!ibv_reg_mr(end.pd, end.buffer, 64, IBV_ACCESS_ON_DEMAND) && errno == EOPNOTSUPP);
    char *hole = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(hole + 8192, 4096);
    CHECK(!ibv_reg_mr(end.pd, hole, 1 << 16, 0) && errno == EFAULT);
    munmap(hole, 1 << 16);
    uint32_t before = 0;
    // more than there are entries: they are used again, with other keys
    for (int i = 0; i < 20000; i++) {
        struct ibv_mr *mr = ibv_reg_mr(end.pd, end.buffer, 64, IBV_ACCESS_LOCAL_WRITE);
        CHECK(mr && mr->rkey != before);
        if (!mr)
            break;
        before = mr->rkey;
        CHECK_EQ(ibv_dereg_mr(mr), 0);
    }
    end_close(&end);
}

// A file in the place of a dma-buf, with an address of its own choice.
static void dmabuf(struct pair *pair)
{
    int fd = memfd_create("dmabuf", 0);
    CHECK(fd >= 0 && !ftruncate(fd, 65536));
    struct ibv_mr *mr =
        ibv_reg_dmabuf_mr(pair->near.pd, 4096 + 64, 1024, 0x1000000, fd, IBV_ACCESS_LOCAL_WRITE);
    CHECK(mr);
    CHECK(!ibv_reg_dmabuf_mr(pair->near.pd, 65536, 1024, 0x1000000, fd, IBV_ACCESS_LOCAL_WRITE));
    uint64_t value = 42, back = 0;
    CHECK_EQ(pwrite(fd, &value, 8, 4096 + 64 + 8), 8);
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, 0, 8);
    pair->sge = (struct ibv_sge){0x1000008, 8, mr->lkey};
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
    CHECK_EQ(far_word(pair, 0), 42);
    pair->sge.addr = 0x1000010;
    wr.opcode = IBV_WR_RDMA_READ;
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_SUCCESS);
    CHECK_EQ(pread(fd, &back, 8, 4096 + 64 + 16), 8);
    CHECK_EQ(back, 42);
    CHECK_EQ(ibv_dereg_mr(mr), 0);
    close(fd);
}

static void no_dmabuf(enum mode mode)
{
    struct end end = {0};
    end_open(&end, 0, false);
    end_queues(&end, &usual, IBV_ACCESS_LOCAL_WRITE, 0);
    CHECK(!ibv_reg_dmabuf_mr(end.pd, 0, 4096, 0, 0, 0) && errno == EOPNOTSUPP);
    end_close(&end);
}

// Events of objects that are destroyed are never delivered.
static void unread_events(struct pair *pair)
{
    struct ibv_async_event event;
    // so that it stays open
    struct ibv_context *context = ibv_open_device(pair->near.context->device);
    fcntl(pair->far.context->async_fd, F_SETFL, O_NONBLOCK);
    struct ibv_send_wr wr = write_wr(pair, &pair->sge, 0, BUFFER_BYTES, 8);
    CHECK_EQ(run_wr(pair, &wr), IBV_WC_REM_ACCESS_ERR);
    usleep(20000);
    CHECK_EQ(ibv_destroy_qp(pair->far.qp), 0);
    CHECK(ibv_get_async_event(pair->far.context, &event) && errno == EAGAIN);
    CHECK_EQ(ibv_close_device(context), 0);
    struct ibv_qp_init_attr init = {
        .send_cq = pair->far.cq, .recv_cq = pair->far.cq, .qp_type = IBV_QPT_RC};
    pair->far.qp = ibv_create_qp(pair->far.pd, &init);
}

static bool lingers;

// Runs after the device's own: what its threads do until the process is gone can be seen.
__attribute__((destructor(101))) static void linger(void)
{
    if (lingers)
        usleep(50000);
}

static void *poll_for_ever(void *cq)
{
    struct ibv_wc wc;
    for (;;)
        ibv_poll_cq(cq, 1, &wc);
    return NULL;
}

// A program that fails ends with its own status, whatever its threads are at.
static void exit_while_open(enum mode mode)
{
    static struct end end;
    pthread_t thread;
    end_open(&end, 0, false);
    end_queues(&end, &usual, IBV_ACCESS_LOCAL_WRITE, 0);
    CHECK_EQ(pthread_create(&thread, NULL, poll_for_ever, end.cq), 0);
    lingers = true;
}

const struct test_case device_cases[] = {
    {"list_and_query", SAME_PROCESS, "DEVICES=3 MTU=1024 MAX_RD_ATOMIC=5", .run = list_and_query},
    {"wrong_setting", SAME_PROCESS, "MTU=1000", .run = wrong_setting},
    {"wrong_choice", SAME_PROCESS, "ATOMIC_CAP=some", .run = wrong_setting},
    {"wrong_number", SAME_PROCESS, "DEVICES=9", .run = wrong_setting},
    {"transitions", SAME_PROCESS, .run = transitions},
    {"queue_limits", SAME_PROCESS, "MAX_QP_WR=100 MAX_INLINE=64 MAX_CQE=1000", .run = queue_limits},
    {"registration", SAME_PROCESS, .run = registration},
    {"dmabuf", ALL_MODES, .on_pair = dmabuf},
    {"no_dmabuf", SAME_PROCESS, "DMABUF=0", .run = no_dmabuf},
    {"unread_events", SAME_PROCESS, .on_pair = unread_events},
    {"exit_while_open", SAME_PROCESS, .run = exit_while_open},
    {0},
};
