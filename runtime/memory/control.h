// SPDX-License-Identifier: BSD-3-Clause
// The control region: the runtime's own words beside the heap.
#ifndef GPSH_CONTROL_REGION_H
#define GPSH_CONTROL_REGION_H

#include <stdatomic.h>
#include <stdint.h>

// Layout of the control region, the same on every PE. Every word is written by remote PEs through
// the transports.
enum { GPSH_SYNC_ROUNDS = 32, GPSH_AMO_LOCKS = 128 };
struct gpsh_control {
    // Dissemination barrier: in round r the PE 2^r before this one writes what it knows of barrier
    // number s to arrived[r].words[s % 2] (comm/sync.c). It may enter the next barrier while this
    // PE is still in this one, but not the one after that. words[2]: how far it is in comparing
    // calls that differ.
    struct {
        _Alignas(64) _Atomic uint64_t words[3];
    } arrived[GPSH_SYNC_ROUNDS];
    // The collective call that this PE is in, written when calls are found to differ, for the
    // others to read.
    struct gpsh_collective {
        uint64_t number;       // counts the barriers of this PE
        uint64_t kind;         // enum gpsh_collective_kind
        uint64_t arguments[2]; // of the public function
        uint64_t place;        // of the block that this PE would return (comm/sync.h), or 0
        int64_t status;        // negative: this PE's part failed
    } collective;
    char failure[240]; // and why
    // What this PE has done for a heap that grows, written before the PEs meet, for the others to
    // read after it (api/growth.c). In turn: some may read one while others write the next.
    struct gpsh_growth {
        uint64_t number;
        int64_t status;         // negative: it could not, and why
        uint64_t bytes;         // that it would add
        unsigned char keys[64]; // for the transports of the others (gpsh_transport_ops.extend)
        char why[160];          // and where it takes the others' memory (api/growth.c)
    } growth[2];
    // For transports: see gpsh_transport_env.locks.
    uint64_t locks[GPSH_AMO_LOCKS];
    // The processor on which this PE's first thread was seen last, plus 1; 0: not yet
    // (progress/cores.c).
    _Alignas(64) _Atomic int32_t cpu;
    // [n_pes] not 0: that PE has left the job in order (comm/depart.c). Written by that PE. After
    // them come three times as many words for transports: see gpsh_transport_env.notes.
    // Then come the entries, and then the words of the teams: gpsh_control_team.
    _Atomic uint64_t departed[];
};

// Of PE 0's control region: the words of `arrived` where PEs look at all others' instead of passing
// on what they know. All in one place: words in a page of each PE cost every PE a page fault, and a
// page of its page table, for every other one.
struct gpsh_control_entry {
    _Atomic uint64_t words[2];
};
enum { GPSH_ENTRIES_MOST = 4096 }; // jobs of more PEs have none

static inline uint64_t gpsh_control_entries(int n_pes)
{
    return sizeof(struct gpsh_control) + (1 + 3) * (uint64_t)n_pes * sizeof(uint64_t);
}

// Without the words of the teams.
static inline uint64_t gpsh_control_bytes(int n_pes)
{
    uint64_t entries = n_pes <= GPSH_ENTRIES_MOST ? (uint64_t)n_pes : 0;
    return gpsh_control_entries(n_pes) + entries * sizeof(struct gpsh_control_entry);
}

#endif
