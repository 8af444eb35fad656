// SPDX-License-Identifier: BSD-3-Clause
// Small operations of streams in few instructions: each thread has at most one unit for each
// member, and the host has worked out all addresses (gpushmem/impl/coll_few.h). The packets are
// those of coll_ll.cuh, and other members may go that way for the same operation. A lone warp takes
// 4 to 6 cycles for each instruction and several share them, so that the instructions of the
// general way are most of what such an operation takes. docs/design/collectives.md.
#ifndef GPUSHMEM_DEVICE_COLL_FEW_CUH
#define GPUSHMEM_DEVICE_COLL_FEW_CUH

#include "gpushmem/device/coll_ll.cuh"
#include "gpushmem/impl/coll_few.h"

// A thread's units: its own, what goes to the other members, and what comes from them.
template <int OTHERS> struct gpsh_dev_few {
    unsigned at;   // offset of the unit in a block
    unsigned left; // bytes of the block from there on; 0: this thread has no unit
    gpsh_dev_unit<2> own, sent[OTHERS], in[OTHERS];
};

template <int OTHERS> GPSH_DEV bool gpsh_dev_few_is(const struct gpushmem_coll_few &op, int j)
{
    return OTHERS == 1 || j < op.others;
}

GPSH_DEV gpsh_dev_unit<2> gpsh_dev_few_unit(const char *block, unsigned at, unsigned left)
{
    return left ? gpsh_dev_load_unit<2>(block + at, left) : gpsh_dev_unit<2>{};
}

template <int OTHERS>
GPSH_DEV void gpsh_dev_few_load(const struct gpushmem_coll_few &op, unsigned lane,
                                struct gpsh_dev_few<OTHERS> *few)
{
    few->at = lane * GPSH_LL_UNIT;
    few->left = few->at < op.bytes ? op.bytes - few->at : 0;
    few->own = {};
    if (op.source)
        few->own = gpsh_dev_few_unit(op.source, few->at, few->left);
    GPSH_UNROLL
    for (int j = 0; j < OTHERS; j++) {
        const char *block = op.members[j].source;
        few->sent[j] = few->own;
        if (gpsh_dev_few_is<OTHERS>(op, j) && block && block != op.source)
            few->sent[j] = gpsh_dev_few_unit(block, few->at, few->left);
    }
}

template <int OTHERS>
GPSH_DEV void gpsh_dev_few_send(const struct gpushmem_coll_few &op, uint64_t epoch,
                                const struct gpsh_dev_few<OTHERS> &few)
{
    GPSH_UNROLL
    for (int j = 0; j < OTHERS; j++) {
        const struct gpushmem_coll_few_member &to = op.members[j];
        if (gpsh_dev_few_is<OTHERS>(op, j) && gpsh_dev_ll_goes(few.left, to.source, few.at))
            gpsh_dev_store_packet((epoch & 1 ? to.to[1] : to.to[0]) + 2 * few.at,
                                  gpsh_dev_ll_pack(few.sent[j], (uint32_t)epoch));
    }
}

template <int OTHERS>
GPSH_DEV void gpsh_dev_few_await(struct gpsh_dev_coll *c, const struct gpushmem_coll_few &op,
                                 struct gpsh_dev_few<OTHERS> *few)
{
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(c->dev);
    const char *late;
    do {
        late = nullptr;
        GPSH_UNROLL
        for (int j = 0; j < OTHERS; j++) {
            const struct gpushmem_coll_few_member &from = op.members[j];
            if (!gpsh_dev_few_is<OTHERS>(op, j) ||
                !gpsh_dev_ll_goes(few->left, from.brings, few->at))
                continue;
            const char *place = (c->epoch & 1 ? from.from[1] : from.from[0]) + 2 * few->at;
            struct gpsh_dev_packet packet = gpsh_dev_load_packet(place);
            late = gpsh_dev_ll_is(packet, (uint32_t)c->epoch) ? late : place;
            few->in[j].w[0] = (uint32_t)packet.low;
            few->in[j].w[1] = (uint32_t)packet.high;
        }
        if (late)
            c->status = gpsh_dev_coll_spin(*c, &wait, late, c->epoch, 0);
    } while (late && !c->status);
}

// In the order of ranks, the own unit in between.
template <int OTHERS>
GPSH_DEV gpsh_dev_unit<2> gpsh_dev_few_fold(const struct gpushmem_coll_few &op, int me, int type,
                                            int fold, const struct gpsh_dev_few<OTHERS> &few)
{
    gpsh_dev_acc<2> acc = {};
    bool first = true;
    GPSH_UNROLL
    for (int j = 0; j <= OTHERS; j++) {
        if (j == me && op.source) {
            acc = gpsh_dev_ll_fold(type, fold, acc, few.own, first);
            first = false;
        }
        if (j < OTHERS && gpsh_dev_few_is<OTHERS>(op, j) && op.members[j].brings) {
            acc = gpsh_dev_ll_fold(type, fold, acc, few.in[j], first);
            first = false;
        }
    }
    return gpsh_dev_fold_result(acc, type);
}

template <int OTHERS>
GPSH_DEV void gpsh_dev_few_take(const struct gpsh_dev_coll &c, const struct gpushmem_coll_few &op,
                                const struct gpushmem_coll_op &call,
                                const struct gpsh_dev_few<OTHERS> &few)
{
    if (!few.left)
        return;
    if (gpsh_dev_coll_folds(call)) {
        gpsh_dev_store_unit<2>(op.dest + few.at,
                               gpsh_dev_few_fold(op, c.me, call.type, call.fold, few), few.left);
        return;
    }
    if (op.dest)
        gpsh_dev_store_unit<2>(op.dest + few.at, few.own, few.left);
    GPSH_UNROLL
    for (int j = 0; j < OTHERS; j++)
        if (gpsh_dev_few_is<OTHERS>(op, j) && op.members[j].dest)
            gpsh_dev_store_unit<2>(op.members[j].dest + few.at, few.in[j], few.left);
}

template <int OTHERS>
GPSH_DEV void gpsh_dev_coll_few(struct gpsh_dev_coll *c, const struct gpushmem_coll_few &op,
                                const struct gpushmem_coll_op &call,
                                struct gpsh_dev_few<OTHERS> *few)
{
    if (c->status)
        return;
    gpsh_dev_few_send(op, c->epoch, *few);
    gpsh_dev_few_await(c, op, few);
    if (!c->status)
        gpsh_dev_few_take(*c, op, call, *few);
}

#endif
