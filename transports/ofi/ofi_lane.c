// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "transports/ofi/ofi_lane.h"

#include <stdio.h>
#include <stdlib.h>

#include "transports/ofi/ofi_fabric.h"
#include "transports/ofi/ofi_memory.h"
#include "transports/ofi/ofi_peers.h"

enum { LEAST_REQUESTS = 64, MOST_REQUESTS = 1024, READ_AT_ONCE = 32 };

static int make_blocks(struct gpsh_ofi *ofi, struct ofi_channel *channel)
{
    if (!ofi->local_keys)
        return 0;
    size_t bytes = (size_t)OFI_BLOCKS * OFI_BLOCK;
    channel->blocks = aligned_alloc(4096, bytes);
    if (!channel->blocks)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %zu bytes of a channel", bytes);
    channel->blocks_mr = gpsh_ofi_local_register(ofi, channel->ep, channel->blocks, bytes);
    if (!channel->blocks_mr)
        return gpsh_last_error_code();
    for (int i = 0; i < OFI_BLOCKS; i++)
        channel->free[channel->free_blocks++] = (uint16_t)i;
    return 0;
}

static int make_requests(struct gpsh_ofi *ofi, struct ofi_channel *channel)
{
    size_t n = ofi->info->tx_attr->size;
    n = n < LEAST_REQUESTS ? LEAST_REQUESTS : n > MOST_REQUESTS ? MOST_REQUESTS : n;
    channel->requests = calloc(n, sizeof *channel->requests);
    if (!channel->requests)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a channel to %d PEs",
                         ofi->env.n_pes);
    for (size_t i = 0; i < n; i++) {
        channel->requests[i].next = channel->idle;
        channel->idle = &channel->requests[i];
    }
    return 0;
}

int gpsh_ofi_lane_open(struct gpsh_ofi *ofi, struct ofi_channel *channel)
{
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
    int error = fi_cq_open(ofi->domain, &attr, &channel->cq, NULL);
    if (!error)
        error = fi_endpoint(ofi->domain, ofi->info, &channel->ep, NULL);
    if (!error)
        error = fi_ep_bind(channel->ep, &ofi->av->fid, 0);
    if (!error)
        error = fi_ep_bind(channel->ep, &channel->cq->fid, FI_TRANSMIT | FI_RECV);
    if (!error)
        error = fi_enable(channel->ep);
    if (error)
        return gpsh_ofi_error(ofi, "a channel's endpoint", error);
    int status = make_requests(ofi, channel);
    return status ? status : make_blocks(ofi, channel);
}

void gpsh_ofi_lane_close(struct ofi_channel *channel)
{
    if (channel->blocks_mr && channel->ofi->endpoint_keys)
        fi_close(&channel->blocks_mr->fid);
    if (channel->ep)
        fi_close(&channel->ep->fid);
    if (channel->cq)
        fi_close(&channel->cq->fid);
    if (channel->blocks_mr && !channel->ofi->endpoint_keys)
        fi_close(&channel->blocks_mr->fid);
    free(channel->requests);
    free(channel->blocks);
    channel->blocks_mr = NULL;
    channel->ep = NULL;
    channel->cq = NULL;
    channel->requests = NULL;
    channel->blocks = NULL;
}

void gpsh_ofi_copy(struct gpsh_ofi *ofi, unsigned flags, void *to, const void *from, size_t bytes)
{
    if (ofi->env.queues && !(flags & GPSH_OP_LOCAL_HOST))
        (void)ofi->env.copy(to, from, bytes);
    else if (bytes)
        memcpy(to, from, bytes);
}

void gpsh_ofi_flow_break(struct ofi_flow *flow, int code, const char *why)
{
    const struct gpsh_transport_env *env = &flow->channel->ofi->env;
    if (flow->failing || flow->dead)
        return;
    flow->failing = code;
    if (env->peer_failed)
        env->peer_failed(env->arg, flow->pe, code, why);
}

static struct ofi_request *take_request(struct ofi_flow *flow, struct ofi_slot *slot)
{
    struct ofi_channel *channel = flow->channel;
    struct ofi_request *request = channel->idle;
    if (!request)
        return NULL;
    channel->idle = request->next;
    request->flow = flow;
    request->slot = slot;
    request->block = request->to = NULL;
    request->atomic = false;
    return request;
}

static void give_request(struct ofi_channel *channel, struct ofi_request *request)
{
    if (request->block)
        channel->free[channel->free_blocks++] =
            (uint16_t)((request->block - channel->blocks) / OFI_BLOCK);
    request->next = channel->idle;
    channel->idle = request;
}

// What libfabric said to a post: 1, 0 where it is full, or a status.
static int posted(struct ofi_flow *flow, struct ofi_slot *slot, struct ofi_request *request,
                  ssize_t error)
{
    struct ofi_channel *channel = flow->channel;
    if (!error) {
        channel->under_way++;
        slot->parts++;
        return 1;
    }
    give_request(channel, request);
    if (error == -FI_EAGAIN)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_PE_FAILED, "no operation reaches PE %d by libfabric: %s",
                     flow->pe, channel->ofi->library->strerror((int)-error));
}

// ------------------------------------------------------------------------------------------
// puts and gets

static int out_of_range(const struct ofi_flow *flow, const struct ofi_slot *slot)
{
    return gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                     "an operation on PE %d is outside its heap: %llu bytes at offset %llu",
                     flow->pe, (unsigned long long)slot->bytes, (unsigned long long)slot->remote);
}

// Through a block of registered memory: false if none is free.
static bool borrow_block(struct ofi_channel *channel, struct ofi_request *request)
{
    if (!channel->free_blocks)
        return false;
    request->block = channel->blocks + (size_t)channel->free[--channel->free_blocks] * OFI_BLOCK;
    return true;
}

static uint64_t least(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

int64_t gpsh_ofi_lane_move(struct ofi_flow *flow, struct ofi_slot *slot)
{
    struct ofi_channel *channel = flow->channel;
    struct gpsh_ofi *ofi = channel->ofi;
    struct ofi_remote remote;
    void *descriptor;
    if (!gpsh_ofi_remote(ofi, flow->peer, slot->region, slot->remote + slot->offset, &remote))
        return out_of_range(flow, slot);
    struct ofi_request *request = take_request(flow, slot);
    if (!request)
        return 0;
    char *local = slot->local + slot->offset;
    uint64_t bytes = least(slot->bytes - slot->offset, remote.bytes, ofi->max_message);
    bool put = slot->kind != GPSH_OP_GET;
    bool named = gpsh_ofi_descriptor(ofi, local, bytes, &descriptor);
    if (!named && !borrow_block(channel, request)) {
        give_request(channel, request);
        return 0;
    }
    if (!named) {
        bytes = bytes < OFI_BLOCK ? bytes : OFI_BLOCK;
        descriptor = fi_mr_desc(channel->blocks_mr);
        request->to = put ? NULL : local;
        request->bytes = bytes;
        if (put)
            gpsh_ofi_copy(ofi, slot->flags, request->block, local, bytes);
        local = request->block;
    }
    slot->borrowed |= named;
    fi_addr_t to = ofi_address(flow->peer);
    ssize_t error = put ? fi_write(channel->ep, local, bytes, descriptor, to, remote.address,
                                   remote.key, &request->context)
                        : fi_read(channel->ep, local, bytes, descriptor, to, remote.address,
                                  remote.key, &request->context);
    int status = posted(flow, slot, request, error);
    return status > 0 ? (int64_t)bytes : status;
}

// ------------------------------------------------------------------------------------------
// atomics

struct native {
    enum fi_op op;
    bool fetch, compare;
};

static struct native native_of(const struct ofi_slot *slot)
{
    static const enum fi_op ops[] = {[GPSH_AMO_FETCH] = FI_ATOMIC_READ,
                                     [GPSH_AMO_SET] = FI_ATOMIC_WRITE,
                                     [GPSH_AMO_ADD] = FI_SUM,
                                     [GPSH_AMO_SWAP] = FI_ATOMIC_WRITE,
                                     [GPSH_AMO_CSWAP] = FI_CSWAP,
                                     [GPSH_AMO_AND] = FI_BAND,
                                     [GPSH_AMO_OR] = FI_BOR,
                                     [GPSH_AMO_XOR] = FI_BXOR};
    if (slot->kind == GPSH_OP_PUT_SIGNAL)
        return (struct native){slot->flags & GPSH_OP_SIGNAL_ADD ? FI_SUM : FI_ATOMIC_WRITE, false,
                               false};
    bool compare = slot->amo == GPSH_AMO_CSWAP;
    return (struct native){ops[slot->amo], compare || slot->result || slot->amo == GPSH_AMO_FETCH,
                           compare};
}

static ssize_t post_native(struct ofi_channel *channel, const struct native *native,
                           const struct fi_msg_atomic *message, struct fi_ioc *result,
                           struct fi_ioc *compare, void *descriptor)
{
    if (native->compare)
        return fi_compare_atomicmsg(channel->ep, message, compare, &descriptor, 1, result,
                                    &descriptor, 1, FI_COMPLETION);
    if (native->fetch)
        return fi_fetch_atomicmsg(channel->ep, message, result, &descriptor, 1, FI_COMPLETION);
    return fi_atomicmsg(channel->ep, message, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

// Operands and results are the slot's: they stay as they are until it is complete.
int gpsh_ofi_lane_atomic(struct ofi_flow *flow, struct ofi_slot *slot)
{
    struct ofi_channel *channel = flow->channel;
    struct gpsh_ofi *ofi = channel->ofi;
    bool signal = slot->kind == GPSH_OP_PUT_SIGNAL;
    struct ofi_remote remote;
    if (!gpsh_ofi_remote(ofi, flow->peer, slot->region, signal ? slot->signal : slot->remote,
                         &remote))
        return out_of_range(flow, slot);
    struct ofi_request *request = take_request(flow, slot);
    if (!request)
        return 0;
    request->atomic = true;
    void *descriptor = flow->slots_mr ? fi_mr_desc(flow->slots_mr) : NULL;
    struct native native = native_of(slot);
    struct fi_ioc operand = {&slot->operand, 1}, result = {&slot->value, 1},
                  compare = {&slot->compare, 1};
    struct fi_rma_ioc target = {remote.address, 1, remote.key};
    struct fi_msg_atomic message = {.msg_iov = &operand,
                                    .desc = &descriptor,
                                    .iov_count = 1,
                                    .addr = ofi_address(flow->peer),
                                    .rma_iov = &target,
                                    .rma_iov_count = 1,
                                    .datatype = signal || slot->width == 8 ? FI_UINT64 : FI_UINT32,
                                    .op = native.op,
                                    .context = &request->context};
    int status = posted(flow, slot, request,
                        post_native(channel, &native, &message, &result, &compare, descriptor));
    if (status > 0)
        flow->atomics++;
    return status;
}

// ------------------------------------------------------------------------------------------
// completion

static void complete(struct ofi_channel *channel, struct ofi_request *request)
{
    struct ofi_slot *slot = request->slot;
    if (request->to)
        gpsh_ofi_copy(channel->ofi, slot->flags, request->to, request->block, request->bytes);
    request->flow->atomics -= request->atomic;
    slot->parts--;
    channel->under_way--;
    give_request(channel, request);
}

// What the target refuses is this PE's own trouble; all else tells of a connection.
static bool is_refusal(int error)
{
    return error == FI_EACCES || error == FI_EINVAL || error == FI_ENOKEY || error == FI_EFAULT ||
           error == FI_EMSGSIZE || error == FI_EPERM;
}

static void failed(struct ofi_channel *channel)
{
    struct gpsh_ofi *ofi = channel->ofi;
    struct fi_cq_err_entry entry = {0};
    if (fi_cq_readerr(channel->cq, &entry, 0) < 1 || !entry.op_context)
        return;
    struct ofi_request *request = entry.op_context;
    struct ofi_flow *flow = request->flow;
    char why[256];
    request->to = NULL;
    complete(channel, request);
    if (flow->dead || flow->failing)
        return;
    if (is_refusal(entry.err)) {
        snprintf(why, sizeof why, "PE %d refuses an operation: %s", flow->pe,
                 ofi->library->strerror(entry.err));
        gpsh_ofi_flow_break(flow, GPUSHMEM_ERR_TRANSPORT, why);
        return;
    }
    flow->failing = GPUSHMEM_ERR_PE_FAILED;
    gpsh_ofi_peer_fail(ofi, flow->pe, GPUSHMEM_ERR_PE_FAILED,
                       "the connection to PE %d was lost (libfabric: %s)", flow->pe,
                       ofi->library->strerror(entry.err));
}

void gpsh_ofi_lane_read(struct ofi_channel *channel)
{
    struct fi_cq_entry entries[READ_AT_ONCE];
    while (channel->under_way) {
        ssize_t n = fi_cq_read(channel->cq, entries, READ_AT_ONCE);
        if (n == -FI_EAVAIL)
            failed(channel);
        else if (n <= 0)
            return;
        for (ssize_t i = 0; i < n; i++)
            if (entries[i].op_context)
                complete(channel, entries[i].op_context);
        if (n > 0 && n < READ_AT_ONCE)
            return;
    }
}
