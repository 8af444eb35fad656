// SPDX-License-Identifier: BSD-3-Clause
// A small operation of a stream as its kernel takes it: all addresses worked out by the host, so
// that the kernel has nothing to do but load, send, wait and store (docs/design/collectives.md).
// Between the library and its kernels; the packets are those of any operation of that size.
#ifndef GPUSHMEM_IMPL_COLL_FEW_H
#define GPUSHMEM_IMPL_COLL_FEW_H

#include "gpushmem/impl/team_layout.h"

enum { GPUSHMEM_COLL_FEW_OTHERS = 7 };

// One of the other members, in the order of their ranks.
struct gpushmem_coll_few_member {
    char *to[2];         // this PE's packets, in memory of the member's: even and odd numbers
    const char *from[2]; // the member's packets, here
    const char *source;  // the block that it gets; NULL: an empty message
    char *dest;          // where its block goes; NULL: it is folded, or its message is empty
    bool brings;         // its message is not empty
};

struct gpushmem_coll_few {
    uint64_t *epochs;    // device memory of this PE: the numbers of the streams' blocks
    const char *scratch; // the team's, for streams
    const char *source;  // this PE's contribution to its own result; NULL: none
    char *dest;          // of the result if it folds, else of the own block; NULL: there already
    uint32_t bytes;      // of a block
    int32_t others;
    struct gpushmem_coll_few_member members[GPUSHMEM_COLL_FEW_OTHERS];
};

// `lanes`: threads of the launch, a unit of 8 bytes each. Calls that are compared, and teams that
// have lost a member, go the general way.
GPUSHMEM_HOST_DEVICE bool gpushmem_coll_is_few(const struct gpushmem_dev_team *team,
                                               const struct gpushmem_coll_op *op, uint64_t lanes)
{
    return team->n >= 2 && team->n <= GPUSHMEM_COLL_FEW_OTHERS + 1 &&
           op->kind != GPUSHMEM_COLL_ALLTOALLS && gpushmem_coll_bytes(op) <= 8 * lanes &&
           !(team->flags & (GPUSHMEM_DEV_TEAM_CHECKED | GPUSHMEM_DEV_TEAM_LOST));
}

// Everything but the members' `to`, which begins where `there` + its offset in the heap is.
GPUSHMEM_HOST_DEVICE void gpushmem_coll_few_member_set(struct gpushmem_coll_few_member *member,
                                                       const struct gpushmem_dev_team *team,
                                                       const struct gpushmem_coll_op *op,
                                                       int32_t rank)
{
    int32_t room = (int32_t)(team->flags >> GPUSHMEM_DEV_TEAM_ROOM_SHIFT);
    bool gets = gpushmem_coll_message(op, team->my_rank, rank) > 0;
    member->brings = gpushmem_coll_message(op, rank, team->my_rank) > 0;
    member->source = gets ? gpushmem_coll_source(op, rank) : NULL;
    member->dest =
        member->brings && op->kind < GPUSHMEM_COLL_REDUCE ? gpushmem_coll_dest(op, rank) : NULL;
    for (int odd = 0; odd < 2; odd++) {
        member->to[odd] = team->stream_scratch +
                          gpushmem_coll_ll_place(room, team->n, true, odd, team->my_rank, rank);
        member->from[odd] = team->stream_scratch +
                            gpushmem_coll_ll_place(room, team->n, true, odd, rank, team->my_rank);
    }
}

// `to` of each member still names this PE's memory: the caller adds how far the member's is away.
GPUSHMEM_HOST_DEVICE struct gpushmem_coll_few
gpushmem_coll_few_of(const struct gpushmem_dev_team *team, const struct gpushmem_coll_op *op)
{
    struct gpushmem_coll_few few;
    int32_t me = team->my_rank;
    few.epochs = team->epochs + GPUSHMEM_TEAM_STREAM_EPOCHS;
    few.scratch = team->stream_scratch;
    few.source = NULL;
    bool folds = op->kind >= GPUSHMEM_COLL_REDUCE;
    if (gpushmem_coll_message(op, me, me) > 0 && op->kind != GPUSHMEM_COLL_EXSCAN)
        few.source = gpushmem_coll_source(op, me);
    few.dest = folds ? (char *)op->dest : few.source ? gpushmem_coll_dest(op, me) : NULL;
    if (!folds && few.dest == few.source)
        few.dest = NULL;
    few.bytes = (uint32_t)gpushmem_coll_bytes(op);
    few.others = team->n - 1;
    for (int32_t j = 0; j < few.others; j++)
        gpushmem_coll_few_member_set(&few.members[j], team, op, j < me ? j : j + 1);
    return few;
}

#endif
