// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "fake_pair.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/config.h"
#include "core/error.h"
#include "transports/verbs/setup/verbs_message.h"

int fake_copies, fake_copy_error;

static int copy(void *to, const void *from, size_t bytes)
{
    fake_copies++;
    if (fake_copy_error)
        return gpsh_fail(fake_copy_error, "the fake copy is broken");
    memcpy(to, from, bytes);
    return 0;
}

static void on_peer_failed(void *arg, int pe, int code, const char *why)
{
    struct fake_pair *pair = arg;
    pair->failures++;
    pair->failed_pe = pe;
    pair->failed_code = code;
}

static void on_peer_cut_off(void *arg, int pe, const char *why)
{
    struct fake_pair *pair = arg;
    pair->cut_off++;
    on_peer_failed(arg, pe, GPUSHMEM_ERR_TRANSPORT, why);
}

static bool lives(void *arg, int pe)
{
    return ((struct fake_pair *)arg)->lives;
}

static bool is_stopped(void *arg, int pe)
{
    return ((struct fake_pair *)arg)->stopped_pe == pe + 1;
}

static bool is_lost(void *arg, int pe)
{
    return ((struct fake_pair *)arg)->lost_pe == pe + 1;
}

// PE 1's end of a handshake, which has the numbers of PE 0's queue pairs.
static void answer(struct ibv_qp *from, const void *bytes, size_t n)
{
    struct gpsh_verbs_message message;
    unsigned char reply[GPSH_VERBS_MESSAGE_BYTES];
    if (!gpsh_verbs_message_parse(bytes, n, &message) || message.kind == GPSH_VERBS_UP)
        return;
    message.kind = message.kind == GPSH_VERBS_GREETS ? GPSH_VERBS_READY : GPSH_VERBS_UP;
    message.from = message.to;
    message.to = 0;
    message.yours = message.own;
    gpsh_verbs_message_write(&message, reply);
    fake_datagram(from, reply, sizeof reply);
}

static int establish(struct fake_pair *pair, int pe)
{
    const struct timespec nap = {.tv_nsec = 20000};
    int status = pair->transport->ops->establish(pair->transport, pe, true);
    while (!status && !(status = pair->transport->ops->establish(pair->transport, pe, false)))
        nanosleep(&nap, NULL);
    return status < 0 ? status : 0;
}

int fake_pair_connect(struct fake_pair *pair, int pe)
{
    struct gpsh_verbs_blob blob;
    int64_t bytes = pair->transport->ops->describe(pair->transport, NULL, 0);
    void *own = malloc((size_t)bytes), *theirs;
    pair->transport->ops->describe(pair->transport, own, (size_t)bytes);
    gpsh_verbs_blob_parse(own, (size_t)bytes, &blob);
    blob.pe = (uint32_t)pe;
    blob.bases[GPSH_HEAP] = (uintptr_t)(pe ? pair->there : pair->heap);
    blob.bases[GPSH_CONTROL] = (uintptr_t)(pe ? pair->control_there : pair->control);
    blob.rails[0].apart = pe && pair->apart;
    if (pe && pair->peer_rail)
        pair->peer_rail(&blob.rails[0]);
    bytes = (int64_t)gpsh_verbs_blob_bytes(&blob);
    theirs = malloc((size_t)bytes);
    gpsh_verbs_blob_write(&blob, theirs);
    int status = pair->transport->ops->connect(pair->transport, pe, theirs, (size_t)bytes);
    free(own);
    free(theirs);
    return status;
}

int fake_pair_open(struct fake_pair *pair)
{
    char *environment[PAIR_SETTINGS + 1] = {0};
    for (int i = 0; i < PAIR_SETTINGS; i++)
        environment[i] = (char *)pair->settings[i];
    if (gpsh_settings_read(environment, &pair->values))
        return -1;
    pair->heap = aligned_alloc(4096, PAIR_HEAP);
    pair->there = aligned_alloc(4096, PAIR_HEAP);
    memset(pair->heap, 0, PAIR_HEAP);
    memset(pair->there, 0, PAIR_HEAP);
    pair->control = aligned_alloc(4096, PAIR_CONTROL);
    pair->control_there = aligned_alloc(4096, PAIR_CONTROL);
    memset(pair->control, 0, PAIR_CONTROL);
    memset(pair->control_there, 0, PAIR_CONTROL);
    pair->failed_pe = -1;
    int fd = pair->heap_kind == GPSH_MEMORY_DEVICE ? pair->dmabuf_fd : -1;
    pair->env = (struct gpsh_transport_env){
        .n_pes = 2,
        .settings = &pair->values,
        .copy = copy,
        .queues = pair->queues,
        .channels = pair->n_channels ? pair->n_channels : 1,
        .peer_failed = on_peer_failed,
        .peer_cut_off = on_peer_cut_off,
        .peer_lives = lives,
        .peer_stopped = is_stopped,
        .arg = pair,
        .near_pci = pair->near_pci,
        .locks = PAIR_LOCKS,
        .n_locks = pair->n_locks,
        .notes = PAIR_NOTES,
        .peer_lost = is_lost,
        .regions = {{pair->heap, PAIR_HEAP, pair->heap_kind, fd, -1},
                    {(char *)pair->control, PAIR_CONTROL, GPSH_MEMORY_HOST, -1, -1}}};
    if (pair->heap_unregistrable)
        fake.unregistrable = pair->heap;
    int status = gpsh_verbs_ops.open(&pair->env, &pair->transport);
    for (int pe = 0; pe < 2 && !status; pe++)
        status = fake_pair_connect(pair, pe);
    fake.datagram = fake.datagram ? fake.datagram : answer;
    for (int pe = 0; pe < 2 && !status && !pair->lazy; pe++)
        status = establish(pair, pe);
    if (!status)
        status = gpsh_verbs_ops.channel_open(pair->transport, 0, &pair->channel);
    if (status)
        fake_pair_close(pair);
    return status;
}

void fake_pair_close(struct fake_pair *pair)
{
    if (pair->transport)
        gpsh_verbs_ops.close(pair->transport);
    gpsh_settings_clear(&pair->values);
    free(pair->heap);
    free(pair->there);
    free(pair->control);
    free(pair->control_there);
    pair->transport = NULL;
    pair->heap = pair->there = NULL;
    pair->control = pair->control_there = NULL;
}

struct gpsh_op fake_put(const char *from, uint64_t remote, uint64_t bytes)
{
    return (struct gpsh_op){
        .kind = GPSH_OP_PUT, .pe = 1, .local = (char *)from, .remote = remote, .bytes = bytes};
}

struct gpsh_op fake_amo(enum gpsh_amo amo, int width, uint64_t remote, uint64_t operand,
                        uint64_t compare, void *result)
{
    return (struct gpsh_op){.kind = GPSH_OP_AMO,
                            .amo = (uint8_t)amo,
                            .width = (uint8_t)width,
                            .pe = 1,
                            .remote = remote,
                            .operand = operand,
                            .compare = compare,
                            .result = result};
}

int fake_post_op(struct fake_pair *pair, const struct gpsh_op *op)
{
    return gpsh_verbs_ops.post(pair->channel, op);
}

void fake_settle(struct fake_pair *pair)
{
    gpsh_verbs_ops.flush(pair->channel);
    for (int quiet = 0; quiet < 3; quiet++) {
        if (fake_run(FAKE_JOURNAL, IBV_WC_SUCCESS))
            quiet = 0;
        gpsh_verbs_ops.progress(pair->channel);
    }
}
