// SPDX-License-Identifier: BSD-3-Clause
// Collectives of CUDA streams, included by gpushmem.h after stream.h, whose rules hold here too.
//
//   gpushmem_float_sum_reduce_on_stream(GPUSHMEM_TEAM_WORLD, gradient, part, n, stream);
//
// Further rules
//
//   Team       All members enqueue the same operations of a team in the same order, with the same
//              numbers (only nelems of collect may differ), each in a stream of its choice. A
//              team's operations of streams are one sequence: two streams of a PE that both use a
//              team are ordered by the program, or use a team each (a split of all members makes
//              one). They are independent of the team's operations in kernels and of the host.
//   Overlap    Operations of different teams run side by side if all members start them in one
//              order, or have room on their GPUs for all of them at once: a few take at most 64
//              blocks of 512 threads each.
//   Memory     dest and source are in the symmetric heap, at the same place on all members. They do
//              not overlap, but may be the same for reduce, scans, and broadcast; of fcollect
//              source may be this PE's block of dest, and of reducescatter dest that of source.
//   Ready      dest belongs to the operation when the stream comes to it on this PE, not before:
//              no barrier is needed in front. After the operation, dest is complete here and source
//              may be written; nothing is said about other PEs.
//   Bits       Reductions fold from the left in the order of ranks, whatever the size, so all
//              members, issuers and sizes give the same bits (of a NaN only that it is
//              one: sign and payload are unspecified). half and bfloat16 are folded in float
//              and rounded once (once for each node with GPUSHMEM_COLLECTIVES=round=1, where large
//              reduces of streams go by nodes); of complex numbers each product and sum is. Minimum
//              and maximum: NaN wins, -0 is less than +0. Integers wrap.
//   Nothing    Zero elements are legal: nothing is enqueued, except by collect.
//   Graphs     A graph with collectives may be launched any number of times, also beside others in
//              the order of one stream, but not while other operations of its teams are under way.
//   Failures   When a member is lost or GPUSHMEM_WAIT_TIMEOUT_MS is over, the operation ends on all
//              members. Later ones of the team end at once. gpushmem_device_error and
//              gpushmem_launch_wait report it on each member, also one that has heard of the loss
//              from no other side yet. A call returns GPUSHMEM_ERR_PE_FAILED once this PE knows of
//              the loss; if it returns 0 before that, the operation fails and is reported in turn.
//              Only destroying the team is of use then.
//   Checks     With GPUSHMEM_CHECK=1 each call waits for all members' calls and compares them. The
//              team's collective operations of the host and of streams are one sequence then. If
//              functions or arguments differ (the places of dest and source in the heap, too),
//              nothing is enqueued anywhere and all members return GPUSHMEM_ERR_ASYMMETRY. An
//              operation that begins on a PE while another one of its team is under way there, in
//              another stream or graph, ends with GPUSHMEM_ERR_STATE, as do all later ones of the
//              team and, on all members, those under way. The same holds in kernels, for each
//              channel.
//   No GPU     In a program without kernels, whose heap is in host memory, the host's operation of
//              the same name does the work before the call returns; only stream NULL is legal.
//   Errors     besides those of stream.h:
//                GPUSHMEM_ERR_INVALID      no team of this PE; root is no rank; a stride below 1;
//                                          dest overlaps source where it may not
//                GPUSHMEM_ERR_UNSUPPORTED  the team has no memory for streams
//                                          (GPUSHMEM_TEAM_MEMORY)
//                GPUSHMEM_ERR_ASYMMETRY    with GPUSHMEM_CHECK=1, see above
#ifndef GPUSHMEM_COLL_STREAM_H
#define GPUSHMEM_COLL_STREAM_H

#include "gpushmem/impl/complex_types.h"
#include "gpushmem/impl/signatures.h"
#include "gpushmem/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

// The stream goes on when all members' streams have come here; barrier does quiet_on_stream first.
GPUSHMEM_API int gpushmem_team_sync_on_stream(gpushmem_team_t team, gpushmem_stream_t stream);
GPUSHMEM_API int gpushmem_barrier_on_stream(gpushmem_team_t team, gpushmem_stream_t stream);

// Each takes the parameters of coll.h's function, and then `gpushmem_stream_t stream`.
// broadcast  nelems elements of the source of the member with rank `root` to dest of all, itself
//            included; source is not looked at elsewhere
// fcollect   the source of all members, nelems each, in the order of ranks
// collect    the same where nelems may differ, and be 0
// alltoall   block r of source, of nelems elements, goes to rank r, where it is block my_rank
// alltoalls  the same for elements that are `sst` apart in source and `dst` apart in dest, in
//            elements; block r begins r * nelems * sst elements (dst in dest) after the first
#define GPUSHMEM_DECLARE_ONE(NAME, FORM, TYPE)                                                     \
    GPUSHMEM_API int gpushmem_##NAME##_on_stream(gpushmem_team_t team, GPSH_P_##FORM(TYPE, ),      \
                                                 gpushmem_stream_t stream);
#define GPUSHMEM_DECLARE_MEM(NAME, KIND, FORM, UNUSED) GPUSHMEM_DECLARE_ONE(NAME##mem, FORM, void)
GPSH_COLL_MOVES(GPUSHMEM_DECLARE_MEM, )
#undef GPUSHMEM_DECLARE_MEM
#define GPUSHMEM_DECLARE_MOVE(NAME, KIND, FORM, PREFIX, TYPE)                                      \
    GPUSHMEM_DECLARE_ONE(PREFIX##_##NAME, FORM, TYPE)
#define GPUSHMEM_DECLARE(NAME, TYPE) GPSH_COLL_MOVES(GPUSHMEM_DECLARE_MOVE, NAME, TYPE)
GPUSHMEM_RMA_TYPES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE
#undef GPUSHMEM_DECLARE_MOVE

// reduce         element i of dest is the fold of element i of all members' sources
// reducescatter  the same, of which each member gets block my_rank: source has nelems elements for
//                each member, dest nelems
// inscan  the sum of the sources of ranks 0 to my_rank
// exscan  the same without this PE's own; 0 at rank 0
#define GPUSHMEM_DECLARE_FOLD(NAME, KIND, NUMBER, PREFIX, TYPE)                                    \
    GPUSHMEM_DECLARE_ONE(PREFIX##_##NAME, PART, TYPE)
#define GPUSHMEM_DECLARE_SUMS(NAME, TYPE) GPSH_COLLS_OF_SUMS(GPUSHMEM_DECLARE_FOLD, NAME, TYPE)
#define GPUSHMEM_DECLARE(NAME, TYPE)                                                               \
    GPUSHMEM_DECLARE_SUMS(NAME, TYPE)                                                              \
    GPSH_COLLS_OF_ORDER(GPUSHMEM_DECLARE_FOLD, NAME, TYPE)
GPUSHMEM_RMA_TYPES(GPUSHMEM_DECLARE)
GPUSHMEM_DECLARE_SUMS(complexf, gpushmem_complexf)
GPUSHMEM_DECLARE_SUMS(complexd, gpushmem_complexd)
#undef GPUSHMEM_DECLARE
#undef GPUSHMEM_DECLARE_SUMS
#define GPUSHMEM_DECLARE(NAME, TYPE) GPSH_COLLS_OF_BITS(GPUSHMEM_DECLARE_FOLD, NAME, TYPE)
GPUSHMEM_INTEGER_TYPES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE
#undef GPUSHMEM_DECLARE_FOLD
#undef GPUSHMEM_DECLARE_ONE

GPUSHMEM_API int gpushmem_double2_maxloc_reduce_on_stream(gpushmem_team_t team,
                                                          gpushmem_double2 *dest,
                                                          const gpushmem_double2 *source,
                                                          size_t nelems, gpushmem_stream_t stream);

#ifdef __cplusplus
}
#endif

#endif
