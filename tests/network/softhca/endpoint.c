// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // memfd_create
#include "endpoint.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// 4.096 us * 2^TIMEOUT a try, of four.
#define OPTIONS(TIMEOUT)                                                                           \
    {                                                                                              \
        .sq_depth = 64, .cq_depth = 128, .recv_depth = 16, .max_inline = 64,                       \
        .far_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |  \
                      IBV_ACCESS_REMOTE_ATOMIC,                                                    \
        .far_qp_access =                                                                           \
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,           \
        .timeout = TIMEOUT, .retry = 3, .rnr_retry = 3, .max_rd = 8, .far_max_rd = 8,              \
    }
const struct options usual = OPTIONS(15), impatient = OPTIONS(10);

double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void need(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "cannot go on: %s: %s\n", what, strerror(errno));
    _exit(3);
}

void end_open(struct end *end, int device, bool mappable)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    need(list && n > device, "device list");
    end->context = ibv_open_device(list[device]);
    need(end->context, "open device");
    ibv_free_device_list(list);
    end->fd = mappable ? memfd_create("buffer", 0) : -1;
    need(!mappable || !ftruncate(end->fd, BUFFER_BYTES), "memfd");
    int flags = mappable ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    end->buffer = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, flags, end->fd, 0);
    need(end->buffer != MAP_FAILED, "mmap");
    end_use_gid(end, 0);
}

void end_use_gid(struct end *end, int index)
{
    need(!ibv_query_gid(end->context, 1, index, &end->gid), "gid");
    end->gid_index = (uint8_t)index;
}

void end_use_gpu(struct end *end, enum gpu_memory kind, bool last)
{
    end->gpu = kind;
    if (kind == NO_GPU)
        return;
    munmap(end->buffer, BUFFER_BYTES);
    int *fd = kind == GPU_BY_DMABUF ? &end->fd : NULL;
    end->buffer = gpu_allocate(last, BUFFER_BYTES, fd);
    need(end->buffer && (!fd || *fd >= 0), "GPU memory");
}

static struct ibv_mr *buffer_register(struct end *end, int access)
{
    if (end->gpu == GPU_BY_DMABUF)
        return ibv_reg_dmabuf_mr(end->pd, 0, BUFFER_BYTES, (uintptr_t)end->buffer, end->fd, access);
    return ibv_reg_mr(end->pd, end->buffer, BUFFER_BYTES, access);
}

void end_queues(struct end *end, const struct options *options, int access, int qp_access)
{
    end->pd = ibv_alloc_pd(end->context);
    need(end->pd, "pd");
    end->mr = buffer_register(end, access);
    need(end->mr, "mr");
    end->channel = ibv_create_comp_channel(end->context);
    end->cq = ibv_create_cq(end->context, options->cq_depth, NULL, end->channel, 0);
    end->recv_cq = ibv_create_cq(end->context, 64, NULL, NULL, 0);
    need(end->cq && end->recv_cq, "cq");
    struct ibv_qp_init_attr init = {
        .send_cq = end->cq, .recv_cq = end->recv_cq, .qp_type = IBV_QPT_RC};
    init.sq_sig_all = options->sq_sig_all;
    init.cap.max_send_wr = (uint32_t)options->sq_depth;
    init.cap.max_recv_wr = (uint32_t)options->recv_depth;
    init.cap.max_send_sge = init.cap.max_recv_sge = 4;
    init.cap.max_inline_data = (uint32_t)options->max_inline;
    end->qp = ibv_create_qp(end->pd, &init);
    need(end->qp, "qp");
    need(!end_init(end, qp_access), "INIT");
}

int end_init(struct end *end, int qp_access)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = (unsigned)qp_access};
    return ibv_modify_qp(end->qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_ready(struct end *end, const struct options *options, bool near)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .timeout = (uint8_t)options->timeout};
    attr.retry_cnt = (uint8_t)options->retry;
    attr.rnr_retry = (uint8_t)options->rnr_retry;
    attr.max_rd_atomic = (uint8_t)(near ? options->max_rd : options->far_max_rd);
    return ibv_modify_qp(end->qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int end_connect(struct end *end, const struct options *options, const union ibv_gid *gid,
                uint32_t qpn, bool near)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qpn};
    attr.max_dest_rd_atomic = (uint8_t)(near ? options->max_rd : options->far_max_rd);
    attr.min_rnr_timer = 1;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = *gid;
    attr.ah_attr.grh.sgid_index = end->gid_index;
    attr.ah_attr.grh.hop_limit = 64;
    int error = ibv_modify_qp(end->qp, &attr,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    return error ? error : to_ready(end, options, near);
}

void end_close(struct end *end)
{
    CHECK_EQ(ibv_destroy_qp(end->qp), 0);
    CHECK_EQ(ibv_destroy_cq(end->cq), 0);
    CHECK_EQ(ibv_destroy_cq(end->recv_cq), 0);
    CHECK_EQ(ibv_destroy_comp_channel(end->channel), 0);
    if (end->mr)
        CHECK_EQ(ibv_dereg_mr(end->mr), 0);
    CHECK_EQ(ibv_dealloc_pd(end->pd), 0);
    CHECK_EQ(ibv_close_device(end->context), 0);
    if (!end->gpu)
        munmap(end->buffer, BUFFER_BYTES);
    if (end->fd >= 0)
        close(end->fd);
}

struct far_order {
    enum far_command command;
    uint64_t argument;
    union ibv_gid gid;
};

static void describe(const struct end *end, struct far_reply *reply)
{
    reply->qpn = end->qp->qp_num;
    reply->rkey = end->mr->rkey;
    reply->address = (uintptr_t)end->buffer;
    reply->gid = end->gid;
}

static int receive(struct end *end, uint64_t offset)
{
    struct ibv_sge sge = {(uintptr_t)end->buffer + offset, 64, end->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = offset, .sg_list = &sge, .num_sge = 1}, *bad;
    return ibv_post_recv(end->qp, &wr, &bad);
}

static struct far_reply obey(struct end *end, const struct options *options,
                             const struct far_order *order)
{
    struct far_reply reply = {0};
    struct ibv_async_event event;
    switch (order->command) {
    case FAR_DESCRIBE: describe(end, &reply); break;
    case FAR_CONNECT:
        reply.value = end_connect(end, options, &order->gid, (uint32_t)order->argument, false);
        break;
    case FAR_RECEIVE: reply.value = receive(end, order->argument); break;
    case FAR_POLL: reply.wc = wait_wc(end->recv_cq); break;
    case FAR_EVENT:
        reply.value = ibv_get_async_event(end->context, &event) ? -1 : (int)event.event_type;
        ibv_ack_async_event(&event);
        break;
    case FAR_DEREGISTER:
        reply.value = ibv_dereg_mr(end->mr);
        end->mr = NULL;
        break;
    case FAR_PEEK:
        if (end->gpu)
            gpu_copy(&reply.address, end->buffer + order->argument, 8);
        else
            memcpy(&reply.address, end->buffer + order->argument, 8);
        break;
    case FAR_QUIT:
        end_close(end);
        reply.value = failures;
        break;
    }
    return reply;
}

static void far_open(struct end *end, enum mode mode, const struct options *options)
{
    end_open(end, options->far_device, mode == MAPPED_MEMORY);
    end_use_gid(end, options->far_gid);
    end_use_gpu(end, options->far_gpu, true);
    end_queues(end, options, options->far_access, options->far_qp_access);
}

static void far_process(enum mode mode, const struct options *options, int in, int out)
{
    struct end end = {0};
    struct far_order order = {0};
    far_open(&end, mode, options);
    while (read(in, &order, sizeof order) == sizeof order) {
        struct far_reply reply = obey(&end, options, &order);
        if (write(out, &reply, sizeof reply) != sizeof reply || order.command == FAR_QUIT)
            break;
    }
    exit(failures != 0); // not _exit: what happens at exit is under test too
}

struct far_reply far_do(struct pair *pair, enum far_command command, uint64_t argument)
{
    struct far_order order = {command, argument, pair->near.gid};
    struct far_reply reply = {0};
    if (pair->mode == SAME_PROCESS)
        return obey(&pair->far, &pair->options, &order);
    need(write(pair->to_child, &order, sizeof order) == sizeof order, "order");
    need(read(pair->from_child, &reply, sizeof reply) == sizeof reply, "reply");
    return reply;
}

static void far_start(struct pair *pair)
{
    int down[2], up[2];
    need(!pipe(down) && !pipe(up), "pipe");
    pair->child = fork();
    need(pair->child >= 0, "fork");
    if (!pair->child)
        far_process(pair->mode, &pair->options, down[0], up[1]);
    close(down[0]);
    close(up[1]);
    pair->to_child = down[1];
    pair->from_child = up[0];
}

void pair_open(struct pair *pair, enum mode mode, const struct options *options)
{
    memset(pair, 0, sizeof *pair);
    pair->options = *options;
    pair->mode = mode;
    if (mode != SAME_PROCESS)
        far_start(pair);
    end_open(&pair->near, 0, false);
    end_use_gid(&pair->near, options->near_gid);
    end_use_gpu(&pair->near, options->near_gpu, false);
    end_queues(&pair->near, options, usual.far_access, usual.far_qp_access);
    if (mode == SAME_PROCESS)
        far_open(&pair->far, mode, options);
    pair->there = far_do(pair, FAR_DESCRIBE, 0);
    CHECK_EQ(end_connect(&pair->near, options, &pair->there.gid, pair->there.qpn, true), 0);
    CHECK_EQ(far_do(pair, FAR_CONNECT, pair->near.qp->qp_num).value, 0);
}

void pair_close(struct pair *pair)
{
    CHECK_EQ(far_do(pair, FAR_QUIT, 0).value, failures);
    end_close(&pair->near);
    int status = 0;
    if (pair->child)
        CHECK(waitpid(pair->child, &status, 0) == pair->child && WIFEXITED(status) &&
              !WEXITSTATUS(status));
}

struct ibv_send_wr write_wr(struct pair *pair, struct ibv_sge *sge, uint64_t from, uint64_t to,
                            uint32_t bytes)
{
    *sge = (struct ibv_sge){(uintptr_t)pair->near.buffer + from, bytes, pair->near.mr->lkey};
    struct ibv_send_wr wr = {
        .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.remote_addr = pair->there.address + to;
    wr.wr.rdma.rkey = pair->there.rkey;
    return wr;
}

int post(struct pair *pair, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    return ibv_post_send(pair->near.qp, wr, &bad);
}

struct ibv_wc wait_wc(struct ibv_cq *cq)
{
    struct ibv_wc wc = {0};
    double until = seconds() + 10;
    while (ibv_poll_cq(cq, 1, &wc) == 0)
        if (seconds() > until) {
            fprintf(stderr, "no completion came\n");
            failures++;
            wc.status = IBV_WC_GENERAL_ERR;
            return wc;
        }
    return wc;
}

int run_wr(struct pair *pair, struct ibv_send_wr *wr)
{
    int error = post(pair, wr);
    CHECK_EQ(error, 0);
    return error ? -error : (int)wait_wc(pair->near.cq).status;
}

uint64_t far_word(struct pair *pair, uint64_t offset)
{
    return far_do(pair, FAR_PEEK, offset).address;
}

uint64_t *near_word(struct pair *pair, uint64_t offset)
{
    return (uint64_t *)(void *)(pair->near.buffer + offset);
}

void near_store(struct pair *pair, uint64_t offset, const void *from, size_t bytes)
{
    if (pair->near.gpu)
        gpu_copy(pair->near.buffer + offset, from, bytes);
    else
        memcpy(pair->near.buffer + offset, from, bytes);
}

void near_load(struct pair *pair, uint64_t offset, void *to, size_t bytes)
{
    if (pair->near.gpu)
        gpu_copy(to, pair->near.buffer + offset, bytes);
    else
        memcpy(to, pair->near.buffer + offset, bytes);
}
