// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// Datagrams of a rail: an unreliable datagram queue pair, for the few messages that it takes to
// connect a reliable one. Whoever sends them repeats what is not answered: here nothing waits, and
// what finds no room is dropped. One thread uses it, and sleeps on its descriptor between. A queue
// pair that fails is brought back under its number, by which the peers know it.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/clock.h"
#include "transports/verbs/setup/verbs_message.h"
#include "transports/verbs/setup/verbs_setup.h"

enum {
    SENDS = 64,
    RECEIVES = 512, // a job that begins with everybody's message to one PE repeats what is dropped
    GRH_BYTES = 40, // in front of what is received, whether or not there was one
    RECEIVE_BYTES = 128,
    SEND_BYTES = GPSH_VERBS_MESSAGE_BYTES,
    BYTES = (RECEIVES * RECEIVE_BYTES + SENDS * SEND_BYTES + 4095) / 4096 * 4096,
    BATCH = 16,
    MEND_MS = 100, // between two attempts to bring it back, and
    MEND_DOUBLES = 7,
};
_Static_assert(GRH_BYTES + GPSH_VERBS_MESSAGE_BYTES <= RECEIVE_BYTES, "a message fits");

struct verbs_datagrams {
    struct ibv_comp_channel *channel;
    struct ibv_cq *received, *sent;
    struct ibv_qp *qp;
    char *buffers; // of receives, then of sends
    struct ibv_mr *mr;
    uint32_t posted, done; // sends
    // What is wrong with the NIC here, since the last send that succeeded; or NULL
    const char *trouble;
    atomic_bool broken; // it has to be brought back: by any thread
    uint32_t mends;     // since then
    uint64_t mend_ns;   // not before
};

static int refused(const struct verbs_rail *rail, const char *what)
{
    return gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                     "%s cannot create %s for datagrams (%s), by which PEs connect: see dmesg, or "
                     "choose other devices with GPUSHMEM_VERBS_DEVICES",
                     rail->name, what, strerror(errno));
}

static bool receive(struct verbs_datagrams *d, uint64_t index)
{
    struct ibv_sge sge = {(uintptr_t)d->buffers + index * RECEIVE_BYTES, RECEIVE_BYTES,
                          d->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = index, .sg_list = &sge, .num_sge = 1}, *bad;
    return !ibv_post_recv(d->qp, &wr, &bad);
}

static int make_buffers(struct gpsh_verbs *verbs, struct verbs_rail *rail)
{
    struct verbs_datagrams *d = rail->datagrams;
    d->buffers = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (d->buffers == MAP_FAILED) {
        d->buffers = NULL;
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %d bytes of datagrams", BYTES);
    }
    struct gpsh_region region = {d->buffers, BYTES, GPSH_MEMORY_HOST, -1, -1};
    d->mr = gpsh_verbs_register(verbs, rail, &region, IBV_ACCESS_LOCAL_WRITE, NULL);
    return d->mr ? 0 : gpsh_last_error_code();
}

static int make_queues(struct verbs_rail *rail)
{
    struct verbs_datagrams *d = rail->datagrams;
    d->channel = ibv_create_comp_channel(rail->context);
    if (!d->channel)
        return refused(rail, "a completion channel");
    int flags = fcntl(d->channel->fd, F_GETFL);
    if (flags < 0 || fcntl(d->channel->fd, F_SETFL, flags | O_NONBLOCK))
        return refused(rail, "a completion channel that does not block");
    d->received = ibv_create_cq(rail->context, RECEIVES, NULL, d->channel, 0);
    d->sent = ibv_create_cq(rail->context, SENDS, NULL, NULL, 0);
    if (!d->received || !d->sent)
        return refused(rail, "a completion queue");
    struct ibv_qp_init_attr init = {
        .send_cq = d->sent,
        .recv_cq = d->received,
        .qp_type = IBV_QPT_UD,
        .cap = {
            .max_send_wr = SENDS, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1}};
    d->qp = ibv_create_qp(rail->pd, &init);
    return d->qp ? 0 : refused(rail, "a queue pair");
}

static int make_ready(struct gpsh_verbs *verbs, struct verbs_rail *rail)
{
    struct ibv_qp *qp = rail->datagrams->qp;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = (uint16_t)verbs->env.settings->verbs_pkey_index,
                               .port_num = rail->port,
                               .qkey = verbs_qkey(verbs->secret)};
    int error =
        ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    attr.qp_state = IBV_QPS_RTR;
    error = error ? error : ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    error = error ? error : ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    errno = error;
    return error ? gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                             "%s rejects a queue pair's first settings (%s): is "
                             "GPUSHMEM_VERBS_PKEY_INDEX=%lld in its table?",
                             rail->name, strerror(error),
                             (long long)verbs->env.settings->verbs_pkey_index)
                 : 0;
}

static int begin(struct gpsh_verbs *verbs, struct verbs_rail *rail)
{
    int status = make_ready(verbs, rail);
    bool posted = true;
    for (uint64_t i = 0; !status && posted && i < RECEIVES; i++)
        posted = receive(rail->datagrams, i);
    if (!posted || (!status && ibv_req_notify_cq(rail->datagrams->received, 0)))
        return refused(rail, "receives");
    return status;
}

int gpsh_verbs_datagrams_open(struct gpsh_verbs *verbs, struct verbs_rail *rail)
{
    rail->datagrams = calloc(1, sizeof *rail->datagrams);
    if (!rail->datagrams)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the datagrams of %s", rail->name);
    int status = make_queues(rail);
    if (!status)
        status = make_buffers(verbs, rail);
    return status ? status : begin(verbs, rail);
}

void gpsh_verbs_datagrams_close(struct verbs_rail *rail)
{
    struct verbs_datagrams *d = rail->datagrams;
    if (!d)
        return;
    if (d->qp)
        ibv_destroy_qp(d->qp);
    if (d->received)
        ibv_destroy_cq(d->received);
    if (d->sent)
        ibv_destroy_cq(d->sent);
    if (d->channel)
        ibv_destroy_comp_channel(d->channel);
    if (d->mr)
        ibv_dereg_mr(d->mr);
    if (d->buffers)
        munmap(d->buffers, BYTES);
    free(d);
    rail->datagrams = NULL;
}

struct ibv_qp *gpsh_verbs_datagrams_qp(const struct verbs_rail *rail)
{
    return rail->datagrams->qp;
}

int gpsh_verbs_datagrams_fd(const struct verbs_rail *rail)
{
    return rail->datagrams->channel->fd;
}

// The first trouble says more than what follows from it.
static void fails(struct verbs_datagrams *d, const char *what)
{
    d->trouble = d->trouble ? d->trouble : what;
    atomic_store(&d->broken, true);
}

static void retire_sends(struct verbs_datagrams *d)
{
    struct ibv_wc wcs[BATCH];
    int n = 0;
    while (d->done != d->posted && (n = ibv_poll_cq(d->sent, BATCH, wcs)) > 0)
        for (int i = 0; i < n; i++) {
            d->done++;
            if (wcs[i].status != IBV_WC_SUCCESS) {
                fails(d, ibv_wc_status_str(wcs[i].status));
                continue;
            }
            d->trouble = NULL;
            d->mends = 0;
        }
    if (n < 0)
        fails(d, "its completion queue cannot be polled");
}

const char *gpsh_verbs_datagrams_trouble(struct verbs_rail *rail)
{
    struct verbs_datagrams *d = rail->datagrams;
    retire_sends(d);
    return d->trouble || d->posted - d->done < SENDS ? d->trouble : "its sends do not complete";
}

void gpsh_verbs_datagrams_broken(struct verbs_rail *rail)
{
    atomic_store(&rail->datagrams->broken, true);
}

// What was under way is lost, like what the network drops.
static bool bring_back(struct gpsh_verbs *verbs, struct verbs_rail *rail)
{
    struct verbs_datagrams *d = rail->datagrams;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    struct ibv_wc wcs[BATCH];
    if (ibv_modify_qp(d->qp, &attr, IBV_QP_STATE))
        return false;
    while (ibv_poll_cq(d->sent, BATCH, wcs) > 0 || ibv_poll_cq(d->received, BATCH, wcs) > 0)
        continue;
    d->done = d->posted;
    return !begin(verbs, rail);
}

uint64_t gpsh_verbs_datagrams_mend(struct gpsh_verbs *verbs, struct verbs_rail *rail)
{
    struct verbs_datagrams *d = rail->datagrams;
    uint64_t now = gpsh_clock_ns();
    retire_sends(d);
    if (!atomic_load(&d->broken))
        return UINT64_MAX;
    if (now < d->mend_ns)
        return d->mend_ns;
    uint32_t doubles = d->mends < MEND_DOUBLES ? d->mends : MEND_DOUBLES;
    d->mend_ns = now + ((uint64_t)MEND_MS * 1000000 << doubles);
    d->trouble = d->trouble ? d->trouble : "its queue pair went down";
    if (!(d->mends & (d->mends + 1))) // ever more seldom
        GPSH_LOG(WARN, "verbs",
                 "%s, this PE's own NIC, fails to send or take the datagrams by which PEs connect "
                 "(%s); they begin anew: see dmesg",
                 rail->name, d->trouble);
    d->mends++;
    atomic_store(&d->broken, false);
    if (!bring_back(verbs, rail))
        atomic_store(&d->broken, true);
    return atomic_load(&d->broken) ? d->mend_ns : UINT64_MAX;
}

void gpsh_verbs_datagram_send(struct verbs_rail *rail, struct ibv_ah *path, uint32_t qpn,
                              uint32_t qkey, const void *bytes, size_t n)
{
    struct verbs_datagrams *d = rail->datagrams;
    retire_sends(d);
    if (d->posted - d->done == SENDS)
        return;
    char *buffer = d->buffers + RECEIVES * RECEIVE_BYTES + d->posted % SENDS * SEND_BYTES;
    memcpy(buffer, bytes, n);
    struct ibv_sge sge = {(uintptr_t)buffer, (uint32_t)n, d->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {.ah = path, .remote_qpn = qpn, .remote_qkey = qkey}};
    struct ibv_send_wr *bad;
    if (ibv_post_send(d->qp, &wr, &bad))
        fails(d, "it refuses a send");
    else
        d->posted++;
}

static void take_events(struct verbs_datagrams *d)
{
    struct ibv_cq *cq;
    void *context;
    unsigned n = 0;
    while (!ibv_get_cq_event(d->channel, &cq, &context))
        n++;
    if (n)
        ibv_ack_cq_events(d->received, n);
}

void gpsh_verbs_datagrams_take(struct verbs_rail *rail,
                               void (*take)(void *arg, int rail, const void *bytes, size_t n),
                               int number, void *arg)
{
    struct verbs_datagrams *d = rail->datagrams;
    struct ibv_wc wcs[BATCH];
    int n;
    take_events(d);
    // Asked for before it is looked: what comes in between wakes once too often, and never too
    // seldom.
    (void)ibv_req_notify_cq(d->received, 0);
    while ((n = ibv_poll_cq(d->received, BATCH, wcs)) > 0)
        for (int i = 0; i < n; i++) {
            const char *buffer = d->buffers + wcs[i].wr_id * RECEIVE_BYTES;
            if (wcs[i].status != IBV_WC_SUCCESS) {
                fails(d, ibv_wc_status_str(wcs[i].status)); // and all are posted again
                continue;
            }
            if (wcs[i].byte_len >= GRH_BYTES)
                take(arg, number, buffer + GRH_BYTES, wcs[i].byte_len - GRH_BYTES);
            if (!receive(d, wcs[i].wr_id))
                fails(d, "it refuses a receive");
        }
    if (n < 0)
        fails(d, "its completion queue cannot be polled");
}
