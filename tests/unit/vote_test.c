// SPDX-License-Identifier: BSD-3-Clause
// Polls of several members in one process: votes are read while they are written, members die at
// any moment and are heard of at any moment. GPUSHMEM_VOTE_RUNS=n draws more of them.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "comm/vote.h"
#include "core/config.h"

enum { MOST = 7, BYTES = 256, CALLS = 3, STEPS = 400000 };

struct member {
    struct gpsh_poll poll;
    int rank, call; // the call that it is in, from 1; beyond CALLS: it has made all
    bool dead, knows[MOST];
    struct gpsh_vote *results[CALLS + 1];
};
static struct member members[MOST];
static _Alignas(64) char shown[MOST][BYTES];
static char showing[MOST][BYTES]; // what is being written there,
static int left[MOST];            // and how many bytes are still to come
static int n_members;
static uint64_t state;

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

// A dead member's memory may be gone.
static void read_vote(void *arg, int rank, struct gpsh_vote *out)
{
    (void)arg;
    memcpy(out, shown[rank], BYTES);
    if (members[rank].dead && draw(4) == 0)
        memset(out, 0, BYTES);
}

static bool is_lost(void *arg, int rank)
{
    const struct member *m = arg;
    return m->knows[rank];
}

static void found_lost(void *arg, int rank, int by)
{
    struct member *m = arg;
    cr_assert(members[rank].dead && by != rank);
    m->knows[rank] = true;
}

static void offer(void *arg, struct gpsh_vote *mine)
{
    const struct member *m = arg;
    mine->terms.pe = m->rank;
    mine->terms.epoch = (uint64_t)(100 * m->rank + mine->place.slot);
    mine->terms.generation = (uint32_t)m->rank;
    mine->terms.lacks = m->rank == 1 ? 2 : 0;
}

static const struct gpsh_poll_ops ops = {read_vote, is_lost, found_lost, offer};

static void show(const struct member *m)
{
    memcpy(showing[m->rank], m->poll.mine, BYTES);
    left[m->rank] = BYTES;
}

// A few words more.
static void write_on(int rank)
{
    int at = BYTES - left[rank], bytes = 8 * (1 + (int)draw(BYTES / 8));
    bytes = bytes < left[rank] ? bytes : left[rank];
    memcpy(shown[rank] + at, showing[rank] + at, (size_t)bytes);
    left[rank] -= bytes;
}

// Slot 9 is free on all, unless `full`.
static void begin(struct member *m, bool full)
{
    struct gpsh_team_free slots = {{(uint64_t)draw(64) | (full ? 0 : 512)}, {draw(64)}};
    slots.slots[0] &= full ? (uint64_t)1 << m->rank : UINT64_MAX;
    m->call++;
    if (m->call > CALLS)
        return;
    m->poll.status = m->rank == 1 && m->call == 2 ? GPUSHMEM_ERR_INVALID : 0;
    cr_assert_eq(gpsh_poll_begin(&m->poll, (uint64_t)7 << 32 | (uint64_t)m->call, &slots), 0);
    show(m);
}

static void step(struct member *m, bool full)
{
    int status = m->call <= CALLS ? gpsh_poll_step(&m->poll) : GPSH_POLL_WAITS;
    cr_assert_geq(status, 0);
    if (status == GPSH_POLL_SHOWS)
        show(m);
    if (status != GPSH_POLL_ENDED)
        return;
    cr_assert_not_null(m->results[m->call] = malloc(BYTES));
    memcpy(m->results[m->call], m->poll.mine, BYTES);
    gpsh_poll_end(&m->poll);
    begin(m, full);
}

// Of its vote a part may have been written.
static void die(struct member *m)
{
    m->dead = true;
    if (m->call <= CALLS)
        gpsh_poll_end(&m->poll);
}

static bool all_through(void)
{
    bool through = true;
    for (int i = 0; i < n_members; i++)
        through = through && (members[i].dead || members[i].call > CALLS);
    return through;
}

// Results of those that live are the same, and name none that lives.
static void compare(uint64_t seed, int call)
{
    const struct gpsh_vote *first = NULL;
    for (int i = 0; i < n_members; i++) {
        const struct gpsh_vote *result = members[i].results[call];
        if (members[i].dead)
            continue;
        first = first ? first : result;
        cr_assert(memcmp(&result->place, &first->place, sizeof first->place) == 0 &&
                      result->lost[0] == first->lost[0] &&
                      memcmp(&result->terms, &first->terms, sizeof first->terms) == 0,
                  "seed %lu, call %d, member %d", seed, call, i);
        for (int k = 0; k < n_members; k++)
            cr_assert(members[k].dead || !gpsh_vote_is_lost(result, k));
        bool refused = call == 2 && n_members > 1 && !gpsh_vote_is_lost(result, 1);
        cr_assert(!refused || result->terms.status != 0); // or no slot was free
    }
}

static void run(uint64_t seed)
{
    state = seed * 0x9e3779b97f4a7c15u;
    gpsh_settings_state.team_memory = 16 << 20;
    memset(members, 0, sizeof members);
    memset(left, 0, sizeof left);
    memset(shown, 0, sizeof shown);
    n_members = 1 + (int)draw(MOST);
    int kills = (int)draw((unsigned)n_members);
    unsigned pace = 20 + draw(400);
    bool full = draw(16) == 0;
    for (int i = 0; i < n_members; i++) {
        members[i].rank = i;
        members[i].poll = (struct gpsh_poll){
            .me = i, .n = n_members, .pe = i, .bytes = BYTES, .ops = &ops, .arg = &members[i]};
        begin(&members[i], full);
    }
    for (int i = 0; i < STEPS && !all_through(); i++) {
        struct member *m = &members[draw((unsigned)n_members)];
        struct member *other = &members[draw((unsigned)n_members)];
        if (kills && draw(pace) == 0 && !m->dead) {
            die(m);
            kills--;
        } else if (draw(8) == 0) {
            m->knows[other->rank] = m->knows[other->rank] || other->dead;
        } else if (!m->dead && left[m->rank]) {
            write_on(m->rank);
        } else if (!m->dead) {
            step(m, full);
        }
    }
    cr_assert(all_through(), "seed %lu: they have not ended", seed);
    for (int call = 1; call <= CALLS; call++)
        compare(seed, call);
    for (int i = 0; i < n_members; i++)
        for (int call = 1; call <= CALLS; call++)
            free(members[i].results[call]);
}

Test(vote, poll__members_die_at_any_moment__the_others_agree)
{
    const char *runs = getenv("GPUSHMEM_VOTE_RUNS");
    for (uint64_t seed = 1; seed <= (runs ? strtoull(runs, NULL, 10) : 600); seed++)
        run(seed);
}

// One that gave a call up for a timeout comes back with the next one; a late one joins that.
Test(vote, poll__a_call_was_given_up__the_late_one_joins_the_next)
{
    const struct gpsh_team_free slots = {{512}, {0}};
    n_members = 2;
    for (int i = 0; i < 2; i++) {
        members[i].rank = i;
        members[i].poll =
            (struct gpsh_poll){.me = i, .n = 2, .bytes = BYTES, .ops = &ops, .arg = &members[i]};
    }
    for (uint64_t call = 1; call <= 2; call++) {
        gpsh_poll_end(&members[0].poll);
        cr_assert_eq(gpsh_poll_begin(&members[0].poll, call, &slots), 0);
        memcpy(shown[0], members[0].poll.mine, BYTES);
        cr_assert_eq(gpsh_poll_step(&members[0].poll), GPSH_POLL_WAITS);
    }
    cr_assert_eq(gpsh_poll_begin(&members[1].poll, 1, &slots), 0);
    memcpy(shown[1], members[1].poll.mine, BYTES);
    int ended = 0;
    for (int i = 0; i < 1000 && ended != 3; i++) {
        for (int k = 0; k < 2; k++) {
            int status = ended >> k & 1 ? GPSH_POLL_WAITS : gpsh_poll_step(&members[k].poll);
            if (status == GPSH_POLL_SHOWS)
                memcpy(shown[k], members[k].poll.mine, BYTES);
            ended |= (status == GPSH_POLL_ENDED) << k;
        }
    }
    cr_assert_eq(ended, 3);
    cr_assert(members[1].poll.mine->call == 2 && members[1].poll.mine->place.slot == 9);
    gpsh_poll_end(&members[0].poll);
    gpsh_poll_end(&members[1].poll);
}
