// SPDX-License-Identifier: BSD-3-Clause
// The memory that belongs to team slots: the same on every PE, so that members need not tell each
// other where it is. docs/design/teams.md.
#ifndef GPSH_TEAM_SCRATCH_H
#define GPSH_TEAM_SCRATCH_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bell.h"
#include "core/config.h"
#include "gpushmem/device_abi.h"
#include "job/job.h"
#include "memory/control.h"

// ---- In the heap, after what the program has: for kernels and streams ----

enum {
    // the words of the device barrier over all PEs, which come first
    GPSH_DEVICE_SYNC_BYTES = 4096,
};

static inline uint64_t gpsh_stream_teams(const struct gpsh_settings *settings)
{
    int64_t teams = settings->teams, stream_teams = settings->stream_teams;
    return (uint64_t)(stream_teams < teams ? stream_teams : teams);
}

// Of each slot, and that of the first ones, GPUSHMEM_STREAM_TEAMS, beside it.
static inline uint64_t gpsh_team_kernel_bytes(void)
{
    return gpushmem_coll_kernel_bytes(gpsh_job()->boot->n_pes);
}
static inline uint64_t gpsh_team_stream_bytes(void)
{
    return gpushmem_coll_stream_bytes(gpsh_job()->boot->n_pes);
}

// All of it, in bytes: a multiple of 4096.
static inline uint64_t gpsh_heap_reserved(const struct gpsh_settings *settings)
{
    uint64_t bytes = GPSH_DEVICE_SYNC_BYTES +
                     gpsh_stream_teams(settings) * gpsh_team_stream_bytes() +
                     (uint64_t)settings->teams * gpsh_team_kernel_bytes();
    return (bytes + 4095) & ~(uint64_t)4095;
}

// Offsets of a slot's parts from the beginning of what is reserved.
static inline uint64_t gpsh_stream_scratch(int slot)
{
    return GPSH_DEVICE_SYNC_BYTES + (uint64_t)slot * gpsh_team_stream_bytes();
}

static inline uint64_t gpsh_kernel_scratch(const struct gpsh_settings *settings, int slot)
{
    return gpsh_stream_scratch((int)gpsh_stream_teams(settings)) +
           (uint64_t)slot * gpsh_team_kernel_bytes();
}

// ---- In the control region, in host memory: for operations of the host ----

enum { GPSH_TEAM_ROUNDS = 32, GPSH_TEAM_LINE_DATA = 56, GPSH_TEAM_ROOM = 3776 };

// Each word and each piece of data exists twice, for odd and even epochs: a PE may be one operation
// ahead of another one, but not two. After the struct come 2 * gpsh_team_room() bytes of data.
struct gpsh_team_words {
    // What this PE shows in epoch e is in own[e % 2]: the others look here. Up to
    // GPSH_TEAM_LINE_DATA bytes of data come with the word in one cache line.
    struct {
        _Alignas(64) _Atomic uint64_t epoch;
        char data[GPSH_TEAM_LINE_DATA];
    } own[2];
    // Those of the member of rank 0: members that wait in a flat meeting sleep by this.
    struct gpsh_bell bell;
    // What another PE sends in round r of epoch e: it comes with arrived[r][e % 2].
    _Atomic uint64_t arrived[GPSH_TEAM_ROUNDS][2];
};

// Bytes of data per epoch: room for 8 bytes of each member at least.
static inline size_t gpsh_team_room(int n_pes)
{
    size_t least = ((size_t)n_pes * 8 + 63) / 64 * 64;
    return least > GPSH_TEAM_ROOM ? least : GPSH_TEAM_ROOM;
}

// Where they begin for epochs that are even, or odd.
static inline char *gpsh_team_data(struct gpsh_team_words *words, unsigned side)
{
    return (char *)(words + 1) + side * gpsh_team_room(gpsh_job()->n_pes);
}

static inline size_t gpsh_team_words_bytes(int n_pes)
{
    return sizeof(struct gpsh_team_words) + 2 * gpsh_team_room(n_pes);
}

// Offset of a slot's words in the control region of a job of n PEs; of a slot that is one too many:
// the size of it all.
static inline uint64_t gpsh_control_team(int n_pes, int slot)
{
    uint64_t first = (gpsh_control_bytes(n_pes) + 63) / 64 * 64;
    return first + (uint64_t)slot * gpsh_team_words_bytes(n_pes);
}

// After all slots: what this PE shows the others when members of a team look for those that are
// left (comm/vote.h).
enum { GPSH_VOTE_HEAD_BYTES = 128 };
static inline uint64_t gpsh_vote_bytes(int n)
{
    return GPSH_VOTE_HEAD_BYTES + ((uint64_t)n + 511) / 512 * 64;
}

static inline uint64_t gpsh_control_vote(int n_pes, const struct gpsh_settings *settings)
{
    return gpsh_control_team(n_pes, (int)settings->teams);
}

// Of the whole control region.
static inline uint64_t gpsh_control_total(int n_pes, const struct gpsh_settings *settings)
{
    return gpsh_control_vote(n_pes, settings) + gpsh_vote_bytes(n_pes);
}

#endif
