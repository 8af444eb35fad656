// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "fake_verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"

enum { MOST_COMPLETIONS = 8192 };

struct fake_verbs fake;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct ibv_device devices[FAKE_DEVICES];
static struct completion {
    struct ibv_cq *cq;
    struct ibv_wc wc;
} completions[MOST_COMPLETIONS];
static int n_completions, first_completion, next_to_run, waiting;
static uint32_t next_number;

// Receives of queue pairs of datagrams.
enum { MOST_RECEIVES = 4096, GRH_BYTES = 40 };
static struct receive {
    struct ibv_qp *qp;
    uint64_t wr_id;
    struct ibv_sge sge;
} receives[MOST_RECEIVES];

static void count_objects(int change)
{
    pthread_mutex_lock(&lock);
    fake.live_objects += change;
    pthread_mutex_unlock(&lock);
}

static void *make(size_t bytes)
{
    count_objects(1);
    return calloc(1, bytes);
}

static int unmake(void *object)
{
    count_objects(-1);
    free(object);
    return 0;
}

void fake_gid(int index, int type, const char *address)
{
    struct ibv_gid_entry *entry = &fake.gids[index];
    unsigned char *raw = entry->gid.raw;
    memset(raw, 0, 16);
    entry->gid_type = (uint32_t)type;
    entry->gid_index = (uint32_t)index;
    if (strchr(address, ':')) {
        inet_pton(AF_INET6, address, raw);
        return;
    }
    raw[10] = raw[11] = 0xff;
    inet_pton(AF_INET, address, raw + 12);
}

void fake_reset(void)
{
    memset(&fake, 0, sizeof fake);
    memset(receives, 0, sizeof receives);
    n_completions = first_completion = next_to_run = waiting = 0;
    next_number = 16;
    fake.n_devices = 1;
    fake.max_qp_wr = 16384;
    fake.max_cqe = 32767;
    fake.max_rd_atomic = 128;
    fake.max_inline = FAKE_INLINE;
    fake.atomic_cap = IBV_ATOMIC_HCA;
    for (int i = 0; i < FAKE_GIDS; i++)
        fake.gids[i].gid_type = (uint32_t)-1;
    fake_gid(0, IBV_GID_TYPE_ROCE_V2, "fe80::1");
    fake_gid(1, IBV_GID_TYPE_ROCE_V2, "10.1.0.1");
    for (int i = 0; i < FAKE_DEVICES; i++) {
        snprintf(devices[i].name, sizeof devices[i].name, "fake%d", i);
        devices[i].transport_type = IBV_TRANSPORT_IB;
        fake.port[i] = (struct ibv_port_attr){.state = IBV_PORT_ACTIVE,
                                              .max_mtu = IBV_MTU_4096,
                                              .active_mtu = IBV_MTU_4096,
                                              .gid_tbl_len = FAKE_GIDS,
                                              .max_msg_sz = 1u << 30,
                                              .pkey_tbl_len = 4,
                                              .lid = 7,
                                              .link_layer = IBV_LINK_LAYER_ETHERNET};
    }
}

int fake_waiting(void)
{
    return waiting;
}

static void execute(struct fake_post *post)
{
    struct ibv_send_wr *wr = &post->wr;
    void *local =
        wr->send_flags & IBV_SEND_INLINE ? post->inlined : (void *)(uintptr_t)post->sge.addr;
    void *remote = (void *)(uintptr_t)wr->wr.rdma.remote_addr;
    uint64_t old;
    switch (wr->opcode) {
    case IBV_WR_RDMA_WRITE: memcpy(remote, local, post->sge.length); break;
    case IBV_WR_RDMA_READ: memcpy(local, remote, post->sge.length); break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        memcpy(&old, remote, 8);
        memcpy(local, &old, 8);
        if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP && old != wr->wr.atomic.compare_add)
            return;
        old = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? wr->wr.atomic.swap
                                                      : old + wr->wr.atomic.compare_add;
        memcpy(remote, &old, 8);
        break;
    default: break;
    }
}

static bool is_first_of_its_queue(const struct fake_post *post)
{
    for (const struct fake_post *p = &fake.journal[next_to_run]; p < post; p++)
        if (!p->done && p->qp == post->qp)
            return false;
    return true;
}

static struct fake_post *next_post(void)
{
    struct fake_post *next = &fake.journal[next_to_run];
    for (int i = next_to_run + 1; fake.shuffle && i < fake.n_posts; i++) {
        struct fake_post *post = &fake.journal[i];
        fake.shuffle = fake.shuffle * 6364136223846793005u + 1442695040888963407u;
        if (!post->done && fake.shuffle >> 62 == 0 && is_first_of_its_queue(post))
            return post;
    }
    return next;
}

static void pass_done(void)
{
    while (next_to_run < fake.n_posts && fake.journal[next_to_run].done)
        next_to_run++;
}

static void complete(const struct fake_post *post, enum ibv_wc_status status)
{
    struct ibv_cq *cq = post->qp->send_cq;
    int queued = 1;
    for (int i = first_completion; i < n_completions; i++)
        queued += completions[i].cq == cq;
    fake.overruns += queued > cq->cqe;
    completions[n_completions++] = (struct completion){
        cq, {.wr_id = post->wr.wr_id, .status = status, .qp_num = post->qp->qp_num}};
}

static int run(int n, enum ibv_wc_status status)
{
    int done = 0;
    for (; done < n && fake_waiting(); done++) {
        bool last = done == n - 1 || fake_waiting() == 1;
        struct fake_post *post = next_post();
        post->done = true;
        waiting--;
        pass_done();
        enum ibv_wc_status result = last ? status : IBV_WC_SUCCESS;
        if (post->qp->state == IBV_QPS_ERR)
            result = IBV_WC_WR_FLUSH_ERR;
        else if (result != IBV_WC_SUCCESS)
            post->qp->state = IBV_QPS_ERR;
        if (result == IBV_WC_SUCCESS)
            execute(post);
        if (result == IBV_WC_SUCCESS && !(post->wr.send_flags & IBV_SEND_SIGNALED))
            continue;
        complete(post, result);
    }
    return done;
}

int fake_run(int n, enum ibv_wc_status status)
{
    pthread_mutex_lock(&lock);
    int done = run(n, status);
    pthread_mutex_unlock(&lock);
    return done;
}

struct fake_channel {
    struct ibv_comp_channel ibv;
    int writer;
};

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    int error = ENOMEM;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_RECEIVES && error; i++)
        if (!receives[i].qp) {
            receives[i] = (struct receive){qp, wr->wr_id, *wr->sg_list};
            error = 0;
        }
    pthread_mutex_unlock(&lock);
    *bad = wr;
    return error;
}

static struct receive *receive_of(const struct ibv_qp *qp)
{
    for (int i = 0; i < MOST_RECEIVES; i++)
        if (receives[i].qp == qp)
            return &receives[i];
    return NULL;
}

static void forget_receives(const struct ibv_qp *qp)
{
    pthread_mutex_lock(&lock);
    for (struct receive *receive; (receive = receive_of(qp));)
        receive->qp = NULL;
    pthread_mutex_unlock(&lock);
}

static void notify(struct ibv_cq *cq)
{
    if (cq->channel &&
        write(((struct fake_channel *)cq->channel)->writer, &cq, sizeof cq) != sizeof cq)
        abort();
}

void fake_datagram(struct ibv_qp *to, const void *bytes, size_t n)
{
    pthread_mutex_lock(&lock);
    struct receive *receive = receive_of(to);
    if (receive) {
        memcpy((char *)(uintptr_t)receive->sge.addr + GRH_BYTES, bytes, n);
        completions[n_completions++] = (struct completion){
            to->recv_cq,
            {.wr_id = receive->wr_id, .byte_len = (uint32_t)(GRH_BYTES + n), .qp_num = to->qp_num}};
        receive->qp = NULL;
        notify(to->recv_cq);
    }
    pthread_mutex_unlock(&lock);
}

static int post_datagram(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
    char bytes[FAKE_INLINE];
    size_t n = wr->sg_list->length;
    memcpy(bytes, (void *)(uintptr_t)wr->sg_list->addr, n);
    pthread_mutex_lock(&lock);
    bool flushed = qp->state != IBV_QPS_RTS, fails = !flushed && fake.datagram_failures > 0;
    if (flushed || fails) {
        fake.datagram_failures -= fails;
        qp->state = IBV_QPS_SQE;
        completions[n_completions++] = (struct completion){
            qp->send_cq,
            {.wr_id = wr->wr_id, .status = fails ? fake.datagram_status : IBV_WC_WR_FLUSH_ERR}};
        pthread_mutex_unlock(&lock);
        return 0;
    }
    fake.datagrams++;
    qp->send_cq->comp_events_completed++; // completions of sent datagrams that were not polled yet
    pthread_mutex_unlock(&lock);
    if (fake.datagram)
        fake.datagram(qp, bytes, n);
    return 0;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    return 0;
}

static int post_list(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    int accepted = 0;
    if (fake.n_posts == FAKE_JOURNAL && !waiting) // somebody asks again and again: begin anew
        fake.n_posts = next_to_run = 0;
    bool refuses = fake.post_error && (!fake.post_error_device ||
                                       qp->context->device == &devices[fake.post_error_device - 1]);
    fake.doorbells++;
    for (; wr; wr = wr->next, accepted++) {
        if ((refuses && accepted == fake.post_accept) || fake.n_posts == FAKE_JOURNAL) {
            int error = refuses ? fake.post_error : ENOMEM;
            *bad = wr;
            return error;
        }
        struct fake_post *post = &fake.journal[fake.n_posts++];
        waiting++;
        *post = (struct fake_post){
            .wr = *wr, .sge = *wr->sg_list, .qp = qp, .doorbell = fake.doorbells};
        if (wr->send_flags & IBV_SEND_INLINE)
            memcpy(post->inlined, (void *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length);
    }
    return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    if (qp->qp_type == IBV_QPT_UD)
        return post_datagram(qp, wr);
    pthread_mutex_lock(&lock);
    int error = post_list(qp, wr, bad);
    pthread_mutex_unlock(&lock);
    return error;
}

static int take_completions(struct ibv_cq *cq, int most, struct ibv_wc *wcs)
{
    int n = 0;
    if (fake.poll_fails)
        return -1;
    for (; cq->comp_events_completed && n < most; cq->comp_events_completed--)
        wcs[n++] = (struct ibv_wc){.status = IBV_WC_SUCCESS};
    for (int i = first_completion; i < n_completions && n < most; i++) {
        if (completions[i].cq != cq)
            continue;
        wcs[n++] = completions[i].wc;
        completions[i].cq = NULL;
    }
    while (first_completion < n_completions && !completions[first_completion].cq)
        first_completion++;
    if (first_completion == n_completions)
        first_completion = n_completions = 0;
    return n;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wcs)
{
    pthread_mutex_lock(&lock);
    int n = take_completions(cq, most, wcs);
    pthread_mutex_unlock(&lock);
    return n;
}

// The symbols of libibverbs.

#undef ibv_query_port
#undef ibv_reg_mr

int ibv_fork_init(void)
{
    fake.fork_inits++;
    return 0;
}

struct ibv_device **ibv_get_device_list(int *n)
{
    struct ibv_device **list = calloc(FAKE_DEVICES + 1, sizeof *list);
    for (int i = 0; i < fake.n_devices; i++) {
        snprintf(devices[i].ibdev_path, sizeof devices[i].ibdev_path, "%s",
                 fake.sysfs[i] ? fake.sysfs[i] : "");
        list[i] = &devices[i];
    }
    *n = fake.n_devices;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    errno = fake.open_error;
    if (fake.open_error)
        return NULL;
    struct ibv_context *context = make(sizeof *context);
    context->device = device;
    context->ops.post_send = post_send;
    context->ops.poll_cq = poll_cq;
    context->ops.post_recv = post_recv;
    context->ops.req_notify_cq = req_notify_cq;
    context->async_fd = open("/dev/null", O_RDONLY);
    return context;
}

int ibv_close_device(struct ibv_context *context)
{
    close(context->async_fd);
    return unmake(context);
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    *attr = (struct ibv_device_attr){.max_qp_wr = fake.max_qp_wr,
                                     .max_cqe = fake.max_cqe,
                                     .phys_port_cnt = 1,
                                     .max_qp_rd_atom = fake.max_rd_atomic,
                                     .max_qp_init_rd_atom = fake.max_rd_atomic,
                                     .atomic_cap = fake.atomic_cap};
    return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    memcpy(attr, &fake.port[context->device - devices], sizeof(struct ibv_port_attr));
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
    if (fake.no_gids[context->device - devices] || index >= FAKE_GIDS ||
        fake.gids[index].gid_type == (uint32_t)-1)
        return ENODATA;
    *entry = fake.gids[index];
    return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = make(sizeof *pd);
    pd->context = context;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    return unmake(pd);
}

static struct ibv_mr *make_mr(struct ibv_pd *pd, void *address, size_t bytes)
{
    struct ibv_mr *mr = make(sizeof *mr);
    mr->pd = pd;
    mr->context = pd->context;
    mr->addr = address;
    mr->length = bytes;
    pthread_mutex_lock(&lock);
    mr->lkey = ++next_number;
    mr->rkey = ++next_number;
    pthread_mutex_unlock(&lock);
    return mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t bytes, int access)
{
    errno = address == fake.unregistrable ? EFAULT : fake.register_error;
    if (errno)
        return NULL;
    for (size_t at = 0; fake.pins && at < bytes; at += 4096)
        ((volatile char *)address)[at] = ((volatile char *)address)[at];
    return make_mr(pd, address, bytes);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t bytes, uint64_t iova,
                                unsigned access)
{
    return ibv_reg_mr(pd, address, bytes, (int)access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t iova,
                                 int fd, int access)
{
    errno = fake.dmabuf_error;
    if (fake.dmabuf_error)
        return NULL;
    fake.dmabuf_registrations++;
    fake.dmabuf_offset = offset;
    fake.dmabuf_iova = iova;
    return make_mr(pd, (void *)(uintptr_t)iova, bytes);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    return unmake(mr);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int depth, void *arg,
                             struct ibv_comp_channel *channel, int vector)
{
    errno = fake.cq_error;
    if (fake.cq_error)
        return NULL;
    struct ibv_cq *cq = make(sizeof *cq);
    cq->context = context;
    cq->cqe = depth;
    cq->channel = channel;
    return cq;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    int fds[2];
    struct fake_channel *channel = make(sizeof *channel);
    if (pipe2(fds, O_CLOEXEC))
        abort();
    channel->ibv.context = context;
    channel->ibv.fd = fds[0];
    channel->writer = fds[1];
    return &channel->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    close(channel->fd);
    close(((struct fake_channel *)channel)->writer);
    return unmake(channel);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
    *context = NULL;
    return read(channel->fd, cq, sizeof *cq) == sizeof *cq ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    return make(sizeof(struct ibv_ah));
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
    return unmake(ah);
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    return unmake(cq);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    errno = fake.qp_error ? fake.qp_error : EINVAL;
    if (fake.qp_error || init->cap.max_inline_data > fake.max_inline)
        return NULL;
    pthread_mutex_lock(&lock);
    bool room = !fake.most_qps || fake.qps < fake.most_qps;
    fake.qps += room;
    pthread_mutex_unlock(&lock);
    errno = ENOMEM;
    if (!room)
        return NULL;
    struct ibv_qp *qp = make(sizeof *qp);
    qp->context = pd->context;
    qp->pd = pd;
    qp->qp_context = init->qp_context;
    qp->send_cq = init->send_cq;
    qp->recv_cq = init->recv_cq;
    qp->qp_type = init->qp_type;
    qp->qp_num = ++next_number;
    return qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    pthread_mutex_lock(&lock);
    fake.qps--;
    pthread_mutex_unlock(&lock);
    forget_receives(qp);
    return unmake(qp);
}

// Completions that are queued stay, as with some drivers.
static void forget_posts(struct ibv_qp *qp)
{
    pthread_mutex_lock(&lock);
    for (int i = next_to_run; i < fake.n_posts; i++)
        if (fake.journal[i].qp == qp && !fake.journal[i].done) {
            fake.journal[i].done = true;
            waiting--;
        }
    pass_done();
    pthread_mutex_unlock(&lock);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    switch (attr->qp_state) {
    case IBV_QPS_RESET:
        if (fake.unkillable)
            return EIO;
        forget_posts(qp);
        forget_receives(qp);
        break;
    case IBV_QPS_RTR:
        if (qp->qp_type == IBV_QPT_UD)
            break;
        fake.rtr = *attr;
        return fake.rtr_error;
    case IBV_QPS_RTS:
        if (qp->qp_type == IBV_QPT_RC)
            fake.rts = *attr;
        break;
    case IBV_QPS_ERR:
        if (fake.unkillable)
            return EIO;
        fake.killed_qps++;
        fake.killed_ns = gpsh_clock_ns();
        break;
    default: break;
    }
    qp->state = attr->qp_state;
    return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init)
{
    attr->rq_psn = qp->state == IBV_QPS_RESET ? 0 : fake.rq_psn;
    attr->qp_state = qp->state;
    fake.queried_ns = gpsh_clock_ns();
    return fake.query_qp_error;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    return !fake.misplaces;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    errno = EAGAIN;
    if (!fake.event)
        return -1;
    event->event_type = (enum ibv_event_type)(fake.event - 1);
    event->element.qp = fake.event_qp;
    fake.event = 0;
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
}
