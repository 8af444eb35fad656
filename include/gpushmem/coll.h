// SPDX-License-Identifier: BSD-3-Clause
// Collective operations of the host over a team, included by gpushmem.h.
//
// All members of the team call the same function with the same arguments, but for `dest`, `source`
// and what else is said below, in the same order. PEs are named by their rank in the team. dest and
// source are symmetric; they do not overlap, unless a function says that it works in place. On
// return this PE's dest is complete and its source may change; nothing is known about the others
// (gpushmem_barrier is for that). A PE's dest belongs to the operation from the PE's own call on,
// not before: no PE need wait until the others' dests are ready. Zero elements do nothing, and wait
// for nobody. Several teams may be used at the same time, by different threads.
//   GPUSHMEM_ERR_INVALID    no such team, root or stride; with GPUSHMEM_CHECK=1: they overlap
//   GPUSHMEM_ERR_ADDRESS    dest or source is not symmetric memory
//   GPUSHMEM_ERR_ASYMMETRY  with GPUSHMEM_CHECK=1: the first PE and argument that differ are named
//                           to all, and nothing was done. Without it such a call has no meaning
//   GPUSHMEM_ERR_PE_FAILED, GPUSHMEM_ERR_TIMEOUT  as in team.h; dest is undefined
#ifndef GPUSHMEM_COLL_H
#define GPUSHMEM_COLL_H

#include "gpushmem/impl/complex_types.h"
#include "gpushmem/impl/signatures.h"
#include "gpushmem/team.h"

#ifdef __cplusplus
extern "C" {
#endif

// gpushmem_quiet, then gpushmem_team_sync: after it every member sees what every member has put.
GPUSHMEM_API int gpushmem_barrier(gpushmem_team_t team);

// Data that moves. nelems counts the elements of one PE's part.
//   gpushmem_TYPE_broadcast(gpushmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems,
//                           int root)
//   gpushmem_TYPE_alltoalls(gpushmem_team_t team, TYPE *dest, const TYPE *source, ptrdiff_t dst,
//                           ptrdiff_t sst, size_t nelems)
//   the others              (gpushmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems)
//   broadcast  source of `root` to dest of all, root's too; in place legal (dest == source)
//   fcollect   dest has n parts: part r is the source of rank r; each PE's source may be
//              its own part of dest, on all PEs or on none
//   collect    the same, where each PE has another nelems, which may be 0
//   alltoall   source and dest have n parts: part r of source goes to rank r, part r of dest comes
//              from it
//   alltoalls  the same, elements dst and sst apart (at least 1): element i of part r is at
//              (r * nelems + i) * dst
// The forms on memory (gpushmem_broadcastmem and so on) count bytes, and take symmetric addresses
// of any alignment.
GPUSHMEM_API int gpushmem_broadcastmem(gpushmem_team_t team, void *dest, const void *source,
                                       size_t bytes, int root);
GPUSHMEM_API int gpushmem_collectmem(gpushmem_team_t team, void *dest, const void *source,
                                     size_t bytes);
GPUSHMEM_API int gpushmem_fcollectmem(gpushmem_team_t team, void *dest, const void *source,
                                      size_t bytes);
GPUSHMEM_API int gpushmem_alltoallmem(gpushmem_team_t team, void *dest, const void *source,
                                      size_t bytes);
GPUSHMEM_API int gpushmem_alltoallsmem(gpushmem_team_t team, void *dest, const void *source,
                                       ptrdiff_t dst, ptrdiff_t sst, size_t bytes);
#define GPUSHMEM_DECLARE_MOVE(NAME, KIND, FORM, PREFIX, TYPE)                                      \
    GPUSHMEM_API int gpushmem_##PREFIX##_##NAME(gpushmem_team_t team, GPSH_P_##FORM(TYPE, ));
#define GPUSHMEM_DECLARE(NAME, TYPE) GPSH_COLL_MOVES(GPUSHMEM_DECLARE_MOVE, NAME, TYPE)
GPUSHMEM_RMA_TYPES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE
#undef GPUSHMEM_DECLARE_MOVE

// Reductions, element by element: folded from the left in the order of the ranks, so that every PE
// gets the same bits, whatever the size and the way; but of a NaN only that it is one: its sign and
// payload are unspecified. types.h says which types and how they are folded.
//   gpushmem_TYPE_FOLD_reduce(gpushmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems)
//   reduce         dest of all: the fold of all sources; in place legal (dest == source)
//   reducescatter  source has n parts; dest of rank r, nelems elements, is the fold of all parts r;
//                  dest may be the PE's own part of source, on all PEs or on none
//   sum_inscan     dest of rank r: the sum of the sources 0 .. r; in place legal
//   sum_exscan     dest of rank r: the sum of the sources 0 .. r - 1, and 0 on rank 0; in place
//                  legal
#define GPUSHMEM_DECLARE_FOLD(NAME, KIND, NUMBER, PREFIX, TYPE)                                    \
    GPUSHMEM_API int gpushmem_##PREFIX##_##NAME(gpushmem_team_t team, GPSH_P_PART(TYPE, ));
#define GPUSHMEM_DECLARE(NAME, TYPE) GPSH_COLLS_OF_BITS(GPUSHMEM_DECLARE_FOLD, NAME, TYPE)
GPUSHMEM_COLL_BITWISE_TYPES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE
#define GPUSHMEM_DECLARE(NAME, TYPE) GPSH_COLLS_OF_ORDER(GPUSHMEM_DECLARE_FOLD, NAME, TYPE)
GPUSHMEM_COLL_ORDERED_TYPES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE
#define GPUSHMEM_DECLARE(NAME, TYPE) GPSH_COLLS_OF_SUMS(GPUSHMEM_DECLARE_FOLD, NAME, TYPE)
GPUSHMEM_COLL_TYPES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE
#undef GPUSHMEM_DECLARE_FOLD

// The largest value, and where it is: element i of dest is the pair with the largest x among
// element i of all sources; of equal ones that with the smallest y. A pair whose x is NaN wins over
// all, the one of the lowest rank over other NaNs. In place legal.
GPUSHMEM_API int gpushmem_double2_maxloc_reduce(gpushmem_team_t team, gpushmem_double2 *dest,
                                                const gpushmem_double2 *source, size_t nelems);

#ifdef __cplusplus
}
#endif

#endif
