// SPDX-License-Identifier: BSD-3-Clause
// The memory of teams, which lies at the same place on each member. docs/design/teams.md.
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

// In units, of which a team takes as many as its members need when it is made.
enum {
    // the words of the device barrier over all PEs, which come first
    GPSH_DEVICE_SYNC_BYTES = 4096,
    GPSH_SCRATCH_UNITS = 512,
};

// All of it, in bytes: a multiple of 4096.
static inline uint64_t gpsh_heap_reserved(const struct gpsh_settings *settings)
{
    return (uint64_t)settings->team_memory / 4096 * 4096;
}

// Bytes of a unit: a multiple of 128.
static inline uint64_t gpsh_scratch_unit(const struct gpsh_settings *settings)
{
    return (gpsh_heap_reserved(settings) - GPSH_DEVICE_SYNC_BYTES) / GPSH_SCRATCH_UNITS / 128 * 128;
}

// What a team has, for kernels and for streams: offsets from the beginning of what is reserved, 0:
// nothing.
struct gpsh_scratch {
    uint64_t kernels, streams;
    int room; // of how many members
};

// ---- In the control region, in host memory: for operations of the host ----

enum { GPSH_TEAM_ROUNDS = 32, GPSH_TEAM_RING = 32, GPSH_TEAM_LINE_DATA = 56 };

// Each word and each piece of data exists twice, for odd and even epochs: a PE may be one operation
// ahead of another one, but not two.
struct gpsh_team_words {
    // What this PE sends as root of a flat team's small broadcasts, in turn: it goes on before the
    // others have come. And the epoch of the last such broadcast that it has heard itself.
    struct {
        _Alignas(64) _Atomic uint64_t epoch;
        char data[GPSH_TEAM_LINE_DATA];
    } sent[GPSH_TEAM_RING];
    _Alignas(64) _Atomic uint64_t heard;
    // Those of the member of rank 0: members that wait in a flat meeting sleep by this.
    struct gpsh_bell bell;
    // What another PE sends in round r of epoch e: it comes with arrived[r][e % 2].
    _Atomic uint64_t arrived[GPSH_TEAM_ROUNDS][2];
};

// What this PE shows in an epoch: the others look here. A few bytes of data come with the word in
// one cache line, more of them lie behind it. Both are in the second half of a page: in one page,
// since processors fetch ahead by pages, and not where pages begin, as a program's large blocks do,
// since a load waits for stores in flight to addresses with the same last 12 bits. Without the
// first 1 KiB took up to 1.2 times as long (EPYC), without the second up to 1.4 times.
struct gpsh_team_shown {
    _Alignas(64) _Atomic uint64_t epoch;
    char line[GPSH_TEAM_LINE_DATA];
    char data[];
};
enum { GPSH_TEAM_SHOWN_AT = 2048 - sizeof(struct gpsh_team_shown) };

// Whole pages of an epoch of a team of n: with room for 8 bytes of each member at least. The
// predefined teams have as much as one of all PEs.
static inline size_t gpsh_team_pages(int n)
{
    return (sizeof(struct gpsh_team_shown) + (size_t)n * 8 + 4095) / 4096 * 4096;
}

// The others have those of slots which follow each other, with two counters of each member
// (comm/team_exchange.h): of 64 slots and one for the line, so at most GPSH_TEAM_MOST_SLOTS.
enum { GPSH_TEAM_MOST_SLOTS = 65 };
static inline size_t gpsh_slot_pages(int n_pes)
{
    size_t least = ((size_t)n_pes * 16 + 63) / 64;
    return least <= 4096 ? 4096 : (least + 4095) / 4096 * 4096;
}

static inline int gpsh_slots_of(int n_pes, int n)
{
    size_t slot = gpsh_slot_pages(n_pes);
    return (int)((gpsh_team_pages(2 * n) + slot - 1) / slot);
}

// Offset of a slot's words in the control region of a job of n PEs.
static inline uint64_t gpsh_control_team(int n_pes, int slot)
{
    uint64_t first = (gpsh_control_bytes(n_pes) + 63) / 64 * 64;
    return first + (uint64_t)slot * sizeof(struct gpsh_team_words);
}

// Of what it shows, which is twice its pages; of a slot that is one too many: the end of it all.
static inline uint64_t gpsh_control_shown(int n_pes, const struct gpsh_settings *settings, int slot)
{
    int predefined = slot < GPUSHMEM_TEAM_PREDEFINED ? slot : +GPUSHMEM_TEAM_PREDEFINED;
    uint64_t words_end = gpsh_control_team(n_pes, (int)settings->teams);
    return (words_end + 4095) / 4096 * 4096 + GPSH_TEAM_SHOWN_AT +
           2 * (uint64_t)predefined * gpsh_team_pages(n_pes) +
           2 * (uint64_t)(slot - predefined) * gpsh_slot_pages(n_pes);
}

// After all slots: what this PE shows the others when members of a team look for those that are
// left (comm/vote.h).
enum { GPSH_VOTE_HEAD_BYTES = 192 };
static inline uint64_t gpsh_vote_bytes(int n)
{
    return GPSH_VOTE_HEAD_BYTES + ((uint64_t)n + 511) / 512 * 64;
}

static inline uint64_t gpsh_control_vote(int n_pes, const struct gpsh_settings *settings)
{
    return gpsh_control_shown(n_pes, settings, (int)settings->teams);
}

// Of the whole control region.
static inline uint64_t gpsh_control_total(int n_pes, const struct gpsh_settings *settings)
{
    return gpsh_control_vote(n_pes, settings) + gpsh_vote_bytes(n_pes);
}

#endif
