// SPDX-License-Identifier: BSD-3-Clause
#include "comm/vote.h"

#include <stdlib.h>
#include <string.h>

#include "core/hash.h"

_Static_assert(sizeof(struct gpsh_vote) <= GPSH_VOTE_HEAD_BYTES, "see gpsh_vote_bytes");

static struct gpsh_vote *vote_of(const struct gpsh_poll *poll, int rank)
{
    return (struct gpsh_vote *)(void *)(poll->votes + (size_t)rank * poll->bytes);
}

static uint64_t digest_of(const struct gpsh_poll *poll, const struct gpsh_vote *vote)
{
    size_t first = offsetof(struct gpsh_vote, call);
    uint64_t digest =
        gpsh_hash_more(GPSH_HASH_START, (const char *)vote + first, poll->bytes - first);
    return digest ? digest : 1; // 0 is nobody's: memory is zero at first
}

static bool is_lost(const struct gpsh_poll *poll, int rank)
{
    return gpsh_vote_is_lost(poll->mine, rank);
}

static bool is_awaited(const struct gpsh_poll *poll, int rank)
{
    return rank != poll->me && !is_lost(poll, rank);
}

// The rank's vote of any call, or NULL.
static struct gpsh_vote *look(struct gpsh_poll *poll, int rank)
{
    struct gpsh_vote *vote = vote_of(poll, rank);
    poll->ops->read(poll->arg, rank, vote);
    if (vote->digest == digest_of(poll, vote))
        return vote;
    vote->phase = vote->call = 0;
    return NULL;
}

// Of calls over one team.
static bool is_of_team(const struct gpsh_poll *poll, const struct gpsh_vote *vote)
{
    return vote->call >> 32 == poll->mine->call >> 32;
}

// ---- Beginning and ending ----

static void restart(struct gpsh_poll *poll)
{
    struct gpsh_vote *mine = poll->mine;
    mine->phase = GPSH_VOTE_SET;
    mine->place = (struct gpsh_team_place){.slot = -1};
    mine->terms = (struct gpsh_team_terms){.status = poll->status, .pe = poll->pe};
}

int gpsh_poll_begin(struct gpsh_poll *poll, uint64_t call, const struct gpsh_team_free *free_here)
{
    size_t n = (size_t)poll->n;
    poll->mine = calloc(1, poll->bytes);
    poll->votes = calloc(n, poll->bytes);
    if (!poll->mine || !poll->votes) {
        gpsh_poll_end(poll);
        return GPUSHMEM_ERR_NO_MEMORY;
    }
    poll->mine->call = call;
    poll->mine->free = *free_here;
    restart(poll);
    poll->mine->digest = digest_of(poll, poll->mine);
    return 0;
}

void gpsh_poll_end(struct gpsh_poll *poll)
{
    free(poll->mine);
    free(poll->votes);
    poll->mine = NULL;
    poll->votes = NULL;
}

// ---- What others show ----

static bool take_over(struct gpsh_poll *poll, const struct gpsh_vote *vote)
{
    if (!vote || vote->call != poll->mine->call || vote->phase != GPSH_VOTE_DONE)
        return false;
    memcpy(poll->mine, vote, poll->bytes);
    return true;
}

// From here on nothing counts that the rank shows: others that go on without it rely on that.
static void lose(struct gpsh_poll *poll, int rank)
{
    poll->mine->lost[rank / 64] |= (uint64_t)1 << rank % 64;
}

// 1: something has changed.
static int merge(struct gpsh_poll *poll, int by)
{
    int changed = 0;
    for (int rank = 0; rank < poll->n; rank++) {
        if (is_lost(poll, rank) || !gpsh_vote_is_lost(vote_of(poll, by), rank))
            continue;
        if (rank == poll->me)
            return GPUSHMEM_ERR_PE_FAILED;
        changed = 1;
        lose(poll, rank);
        poll->ops->found_lost(poll->arg, rank, by);
    }
    return changed;
}

// One rank that is awaited. 1: something has changed.
static int see(struct gpsh_poll *poll, int rank)
{
    const struct gpsh_vote *vote = look(poll, rank);
    if (poll->ops->is_lost(poll->arg, rank)) {
        lose(poll, rank);
        return 1;
    }
    if (!vote || !is_of_team(poll, vote) || vote->call < poll->mine->call)
        return 0;
    if (take_over(poll, vote))
        return 1;
    if (vote->call == poll->mine->call)
        return merge(poll, rank);
    // Others have given up an earlier call, in which this PE still is, and made another.
    poll->mine->call = vote->call;
    return 1;
}

static int see_all(struct gpsh_poll *poll)
{
    int changed = 0;
    for (int rank = 0; rank < poll->n; rank++) {
        int status = is_awaited(poll, rank) ? see(poll, rank) : 0;
        if (status < 0 || poll->mine->phase == GPSH_VOTE_DONE)
            return status;
        changed |= status;
    }
    return changed;
}

// ---- This PE's vote ----

// All that live are as far as this PE, and take the same ranks for lost.
static bool all_agree(struct gpsh_poll *poll)
{
    const struct gpsh_vote *mine = poll->mine;
    size_t bytes = (size_t)(poll->n + 63) / 64 * sizeof *mine->lost;
    for (int rank = 0; rank < poll->n; rank++) {
        const struct gpsh_vote *vote = vote_of(poll, rank);
        if (!is_awaited(poll, rank))
            continue;
        poll->awaited = rank;
        if (vote->call != mine->call || vote->phase < mine->phase ||
            memcmp(vote->lost, mine->lost, bytes) != 0)
            return false;
    }
    return true;
}

static const struct gpsh_vote *next_living(const struct gpsh_poll *poll, int *rank)
{
    while (*rank < poll->n && is_lost(poll, *rank))
        ++*rank;
    return *rank == poll->n ? NULL : *rank == poll->me ? poll->mine : vote_of(poll, *rank);
}

// Where it is free on all that live.
static struct gpsh_team_place choose_place(const struct gpsh_poll *poll)
{
    struct gpsh_team_free all = poll->mine->free;
    const struct gpsh_vote *vote;
    int n = 0;
    for (int rank = 0; (vote = next_living(poll, &rank)); rank++, n++)
        gpsh_team_free_join(&all, &vote->free);
    return gpsh_team_place(&all, n);
}

static void be_ready(struct gpsh_poll *poll)
{
    struct gpsh_vote *mine = poll->mine;
    mine->place = choose_place(poll);
    mine->phase = GPSH_VOTE_READY;
    if (mine->place.slot < 0 && !mine->terms.status)
        mine->terms.status = GPUSHMEM_ERR_NO_MEMORY;
    if (!mine->terms.status)
        poll->ops->offer(poll->arg, mine);
}

static void be_done(struct gpsh_poll *poll)
{
    struct gpsh_vote *mine = poll->mine;
    const struct gpsh_vote *vote;
    struct gpsh_team_terms all = {0};
    for (int rank = 0; (vote = next_living(poll, &rank)); rank++)
        gpsh_team_terms_join(&all, &vote->terms, true);
    mine->phase = GPSH_VOTE_DONE;
    mine->terms = all;
}

// All that live were READY before this PE was DONE: one that now shows another team's call, or a
// later one of this team, has ended this one.
static bool has_ended(struct gpsh_poll *poll, int rank)
{
    if (!is_awaited(poll, rank) || poll->ops->is_lost(poll->arg, rank))
        return true;
    const struct gpsh_vote *vote = look(poll, rank);
    poll->awaited = rank;
    return vote && (vote->call != poll->mine->call || vote->phase == GPSH_VOTE_DONE);
}

static int shows(struct gpsh_poll *poll)
{
    poll->mine->digest = digest_of(poll, poll->mine);
    return GPSH_POLL_SHOWS;
}

void gpsh_poll_refuse(struct gpsh_poll *poll, int status)
{
    poll->status = status;
    if (poll->mine->phase == GPSH_VOTE_DONE)
        return;
    restart(poll);
    (void)shows(poll);
}

int gpsh_poll_step(struct gpsh_poll *poll)
{
    if (poll->mine->phase == GPSH_VOTE_DONE) {
        for (int rank = 0; rank < poll->n; rank++)
            if (!has_ended(poll, rank))
                return GPSH_POLL_WAITS;
        return GPSH_POLL_ENDED;
    }
    int changed = see_all(poll);
    if (changed < 0)
        return changed;
    if (poll->mine->phase == GPSH_VOTE_DONE)
        return shows(poll);
    if (changed) {
        restart(poll);
        return shows(poll);
    }
    if (!all_agree(poll))
        return GPSH_POLL_WAITS;
    if (poll->mine->phase == GPSH_VOTE_SET)
        be_ready(poll);
    else
        be_done(poll);
    return shows(poll);
}
