// SPDX-License-Identifier: BSD-3-Clause
// Teams: groups of PEs that call collective functions together, included by gpushmem.h.
//
// A member's number in its team is its rank, 0 .. n-1. A handle is a plain number, the same on all
// members, for the host, streams and kernels. Predefined: GPUSHMEM_TEAM_WORLD (all PEs),
// GPUSHMEM_TEAM_SHARED (the PEs of this node whose heaps this PE loads and stores: all of them, or
// only itself if that does not hold between all PEs of each node), GPUSHMEM_TEAM_NODE (the PEs of
// this node), GPUSHMEM_TEAM_SAME_RANK (those with this PE's number on their nodes),
// GPUSHMEM_TEAM_SAME_GPU (those whose heaps are on this PE's GPU; with a heap in host memory this
// PE alone) and GPUSHMEM_TEAM_GPU_LEADERS (the first PE of each of these).
//
// Functions with an argument `team` fail with
//   GPUSHMEM_ERR_INVALID    it is GPUSHMEM_TEAM_INVALID, was destroyed, or this PE is no member
// and those that are collective over a team also with
//   GPUSHMEM_ERR_PE_FAILED  a member was lost
//   GPUSHMEM_ERR_TIMEOUT    not all members came within GPUSHMEM_WAIT_TIMEOUT_MS
// After either the members may be out of step: the team can only be destroyed, and its further
// collectives fail at once.
#ifndef GPUSHMEM_TEAM_H
#define GPUSHMEM_TEAM_H

#include <stddef.h>
#include <stdint.h>

#include "gpushmem/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a program wants of a team. Members that config_mask does not name are 0.
struct gpushmem_team_config {
    int32_t num_contexts; // contexts that the program means to create from it, at least
    int32_t reserved[7];  // 0
};
// For config_mask: which members of the struct are meant.
#define GPUSHMEM_TEAM_NUM_CONTEXTS 1L

// This PE's rank, and the number of members. Local. GPUSHMEM_TEAM_INVALID gives -1 and leaves the
// last error as it is; so does a PE outside the team, which holds that handle.
GPUSHMEM_API int gpushmem_team_my_pe(gpushmem_team_t team);
GPUSHMEM_API int gpushmem_team_n_pes(gpushmem_team_t team);

// The rank in dest_team of the PE that has rank src_pe in src_team. Local. -1, and the last error
// stays, if one of the teams is GPUSHMEM_TEAM_INVALID, if there is no such rank, or if that PE is
// not in dest_team.
GPUSHMEM_API int gpushmem_team_translate_pe(gpushmem_team_t src_team, int src_pe,
                                            gpushmem_team_t dest_team);

// The members of *config that config_mask names, as they were passed to the split. Local.
//   GPUSHMEM_ERR_INVALID    unknown mask bits, or `config` is NULL and the mask is not 0
GPUSHMEM_API int gpushmem_team_get_config(gpushmem_team_t team, long config_mask,
                                          struct gpushmem_team_config *config);

// New teams of members of `parent`. Collective over `parent`; all its members pass the same
// arguments and get the same result. A PE that is in no new team gets GPUSHMEM_TEAM_INVALID, which
// is no failure. After a failure *new_team is GPUSHMEM_TEAM_INVALID. `config` may be NULL if the
// mask is 0. Splits are made by one thread of a PE at a time.
//   split_strided  the ranks start, start + stride, ... of `parent`, `size` of them, in this order;
//                  the stride may be negative, or 0 with a size of 1
//   split_2d       rank r of `parent` is at x = r % xrange, y = r / xrange; *xteam holds those with
//                  this PE's y in the order of x, *yteam those with its x in the order of y
//   split_list     the ranks of `parent` in ranks[0 .. size-1], in this order, all different
//   GPUSHMEM_ERR_INVALID    ranks outside `parent` or twice; a size or xrange below 1; bad config;
//                           no place for the result
//   GPUSHMEM_ERR_NO_MEMORY  GPUSHMEM_TEAMS exist already, or host memory is exhausted
//   GPUSHMEM_ERR_ASYMMETRY  members passed different arguments
GPUSHMEM_API int gpushmem_team_split_strided(gpushmem_team_t parent, int start, int stride,
                                             int size, const struct gpushmem_team_config *config,
                                             long config_mask, gpushmem_team_t *new_team);
GPUSHMEM_API int gpushmem_team_split_2d(gpushmem_team_t parent, int xrange,
                                        const struct gpushmem_team_config *xaxis_config,
                                        long xaxis_mask, gpushmem_team_t *xaxis_team,
                                        const struct gpushmem_team_config *yaxis_config,
                                        long yaxis_mask, gpushmem_team_t *yaxis_team);
GPUSHMEM_API int gpushmem_team_split_list(gpushmem_team_t parent, const int *ranks, int size,
                                          const struct gpushmem_team_config *config,
                                          long config_mask, gpushmem_team_t *new_team);

// A team of the members of `parent` that live, in the order of their ranks, after others were lost
// (GPUSHMEM_ON_PE_FAILURE=notify); if none was, of all. Collective over the members that live: they
// agree on who is lost, also if they have not all heard of it yet, or if further ones are lost
// meanwhile. One that is lost as the call ends may still be in the new team: its collectives fail
// then, and the call can be repeated, over it or over `parent`. Members that have called
// gpushmem_finalize count as lost. `parent` may be any team, whether its own collectives still
// work or not; what it is good for does not change. The new team is one like those of the splits.
// After GPUSHMEM_ERR_TIMEOUT, which names a PE that has not come, the call may be repeated. Made,
// as the splits are, by one thread of a PE at a time. Kernels that are launched after it may wait
// again: await first those that were under way (gpushmem_launch_wait).
//   GPUSHMEM_ERR_UNSUPPORTED  GPUSHMEM_ON_PE_FAILURE is not notify on all PEs
//   GPUSHMEM_ERR_INVALID      as the splits, on any member
//   GPUSHMEM_ERR_NO_MEMORY    as the splits, on any member
//   GPUSHMEM_ERR_PE_FAILED    the other members take this PE for lost
GPUSHMEM_API int gpushmem_team_survivors(gpushmem_team_t parent,
                                         const struct gpushmem_team_config *config,
                                         long config_mask, gpushmem_team_t *new_team);

// Ends a team. Collective over it; nothing of it may be under way in kernels and streams.
// GPUSHMEM_TEAM_INVALID does nothing. The handle is gone whatever the status is. A team that lost a
// member is destroyed by each PE alone, without waiting.
//   GPUSHMEM_ERR_INVALID    a predefined team
GPUSHMEM_API int gpushmem_team_destroy(gpushmem_team_t team);

// All members have called. Collective over the team; completes nothing: stores and loads of the
// members before it happen before those after it, puts are completed by gpushmem_quiet.
GPUSHMEM_API int gpushmem_team_sync(gpushmem_team_t team);

// Connects this PE with all members now, for all its contexts, kernels and streams, rather than
// with each at the first operation to it: for programs that want no operation to take longer than
// the next one. Local: the members need not call, and may compute. Does nothing where connections
// need not be made (mapped memory), or stand. Completes and orders nothing. Any thread. If
// GPUSHMEM_VERBS_QUEUE_PAIRS allows fewer queue pairs than that takes, those made first are closed
// again for the later ones.
//   GPUSHMEM_ERR_PE_FAILED  a member was lost, or does not answer
//   GPUSHMEM_ERR_TRANSPORT  a connection cannot be made: the sentence says what the NIC lacks
//   GPUSHMEM_ERR_TIMEOUT    not within GPUSHMEM_WAIT_TIMEOUT_MS
GPUSHMEM_API int gpushmem_connect(gpushmem_team_t team);

// How many PEs of the job were lost (GPUSHMEM_ON_PE_FAILURE=notify), as far as this PE knows; the
// first `most` of them, in ascending order, go to pes[]. Local. A negative code on failure.
GPUSHMEM_API int gpushmem_failed_pes(int *pes, int most);

// gpushmem_ptr with a rank of the team.
GPUSHMEM_API void *gpushmem_team_ptr(gpushmem_team_t team, const void *sym, int pe);

#ifdef __cplusplus
}
#endif

#endif
