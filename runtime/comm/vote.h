// SPDX-License-Identifier: BSD-3-Clause
// The members of a team that live agree on which are lost, and on what a team of the others begins
// with, while further ones may die. docs/design/teams.md.
//
// Each shows the others a vote. SET: whom it takes for lost; it adds whom others take for lost.
// READY: all that it takes to live take the same for lost; with what it offers for the new team.
// DONE: all those were READY. A member takes over a DONE that it sees, unless it has counted the
// one that shows it among the lost before. It ends when all that live are DONE.
//
// No memory of other PEs here: team_survivors.c has that.
#ifndef GPSH_VOTE_H
#define GPSH_VOTE_H

#include "comm/team.h"

enum gpsh_vote_phase { GPSH_VOTE_SET = 1, GPSH_VOTE_READY, GPSH_VOTE_DONE };

// Of gpsh_vote_bytes of the job's size, whatever the team's is: the next may be another team's.
struct gpsh_vote {
    uint64_t digest; // of all that follows: tells a vote of which only a part has arrived
    uint64_t call;   // the parent's handle << 32, and which call over it
    uint32_t phase;
    struct gpsh_team_place place; // from READY on: what is free on all
    struct gpsh_team_free free;
    // SET: only the status; READY: this PE's in the slot; DONE: all, joined
    struct gpsh_team_terms terms;
    uint64_t lost[]; // a bit for each rank
};

struct gpsh_poll_ops {
    // Copies what the rank shows now: any bytes, zero at first. What it showed before something
    // that this PE has read from another rank is there.
    void (*read)(void *arg, int rank, struct gpsh_vote *out);
    bool (*is_lost)(void *arg, int rank);
    // Another rank says so.
    void (*found_lost)(void *arg, int rank, int by);
    // Fills in this PE's terms for mine->place and those that are not in mine->lost.
    void (*offer)(void *arg, struct gpsh_vote *mine);
};

struct gpsh_poll {
    int me, n, pe;
    size_t bytes; // of a vote
    const struct gpsh_poll_ops *ops;
    void *arg;
    int status;  // why this PE cannot take part, whoever is lost
    int awaited; // the rank that was waited for last
    struct gpsh_vote *mine;
    char *votes; // [n] what was read last; phase 0: nothing
};

// The poll is filled in up to `status`. GPUSHMEM_ERR_NO_MEMORY: nothing was allocated.
int gpsh_poll_begin(struct gpsh_poll *poll, uint64_t call, const struct gpsh_team_free *free);
void gpsh_poll_end(struct gpsh_poll *poll);

enum gpsh_poll_step {
    GPSH_POLL_WAITS, // until others show something
    GPSH_POLL_SHOWS, // poll->mine has changed
    GPSH_POLL_ENDED, // poll->mine is the result
};
// GPUSHMEM_ERR_PE_FAILED: another member takes this PE for lost.
int gpsh_poll_step(struct gpsh_poll *poll);

// This PE cannot take part after all, and has told nobody yet: poll->mine has changed.
void gpsh_poll_refuse(struct gpsh_poll *poll, int status);

static inline bool gpsh_vote_is_lost(const struct gpsh_vote *vote, int rank)
{
    return vote->lost[rank / 64] >> rank % 64 & 1;
}

#endif
