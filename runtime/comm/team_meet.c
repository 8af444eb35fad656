// SPDX-License-Identifier: BSD-3-Clause
#include "comm/team_meet.h"

#include <stdio.h>
#include <string.h>

#include "comm/context.h"
#include "core/cpu.h"
#include "core/team_name.h"
#include "job/job.h"
#include "memory/heap.h"
#include "memory/word.h"
#include "progress/waiter.h"

static char *data_of(struct gpsh_team_words *words, unsigned side)
{
    return gpsh_team_data(words, side);
}

static unsigned side_of(const struct gpsh_team *team)
{
    return team->epoch % 2;
}

// ---- Broken teams ----

static void find_lost(struct gpsh_team *team)
{
    for (int rank = 0; rank < team->n && team->failed_pe < 0; rank++)
        if (atomic_load(&gpsh_job()->peers[team->pes[rank]].error))
            team->failed_pe = rank;
}

int gpsh_team_break(struct gpsh_team *team, int status)
{
    find_lost(team);
    if (!team->broken)
        team->broken = status;
    return status;
}

static int refuse(const struct gpsh_team *team, const char *what)
{
    if (team->failed_pe >= 0)
        return gpsh_fail(team->broken,
                         "%s: PE %d, which is rank %d of the team, was lost: %s; the team can only "
                         "be destroyed",
                         what, team->pes[team->failed_pe], team->failed_pe,
                         gpsh_job()->peers[team->pes[team->failed_pe]].reason);
    return gpsh_fail(
        team->broken,
        "%s: an earlier operation of this team failed (%s), so that its members may be "
        "out of step; the team can only be destroyed",
        what, gpushmem_strerror(team->broken));
}

static __attribute__((noinline)) int look_for_lost(struct gpsh_team *team, const char *what)
{
    team->failures = atomic_load_explicit(&gpsh_job()->failures, memory_order_acquire);
    find_lost(team);
    if (team->failed_pe >= 0 && !team->broken)
        team->broken = GPUSHMEM_ERR_PE_FAILED;
    return team->broken ? refuse(team, what) : 0;
}

int gpsh_team_usable(struct gpsh_team *team, const char *what)
{
    unsigned failures = atomic_load_explicit(&gpsh_job()->failures, memory_order_relaxed);
    bool fine = !team->broken && failures == team->failures;
    return GPSH_LIKELY(fine) ? 0 : look_for_lost(team, what);
}

// ---- Waiting ----

// What is waited for: a word of a member, or of this PE's that a member writes.
struct awaited {
    const struct gpsh_team *team;
    int rank;
};

static void about_awaited(const void *subject, char *text, size_t bytes)
{
    const struct awaited *awaited = subject;
    const struct gpsh_team *team = awaited->team;
    snprintf(text, bytes, " for PE %d, rank %d of %d in %s", team->pes[awaited->rank],
             awaited->rank, team->n, gpsh_team_name(team->handle).text);
}

int gpsh_team_await(struct gpsh_team *team, int rank, const _Atomic uint64_t *word, uint64_t least,
                    const char *what)
{
    const struct awaited awaited = {team, rank};
    GPSH_WAIT(waiter, what);
    waiter.looks = true;
    waiter.about = about_awaited;
    waiter.subject = &awaited;
    waiter.bell = team->bell;
    waiter.awaited = GPSH_AWAITED_TEAM;
    waiter.awaited_pe = team->pes[rank];
    waiter.team = team->handle;
    waiter.number = team->epoch;
    int status = 0;
    while (status == 0 && atomic_load_explicit(word, memory_order_acquire) < least) {
        status = gpsh_waiter_step(&waiter);
        if (status == 0)
            status = gpsh_team_usable(team, what);
    }
    return status;
}

// Pairs with the release stores in show and tell, and with signals.
static inline int await(struct gpsh_team *team, int rank, const _Atomic uint64_t *word,
                        const char *what)
{
    bool there = atomic_load_explicit(word, memory_order_acquire) >= team->epoch;
    return GPSH_LIKELY(there) ? 0 : gpsh_team_await(team, rank, word, team->epoch, what);
}

// ---- Flat ----

static void show(struct gpsh_team *team, const void *data, size_t bytes)
{
    unsigned side = side_of(team);
    char *line = team->mine->own[side].data;
    if (bytes)
        memcpy(bytes <= GPSH_TEAM_LINE_DATA ? line : data_of(team->mine, side), data, bytes);
    atomic_store_explicit(&team->mine->own[side].epoch, team->epoch, memory_order_release);
}

// Waits for all others. views[r] is what rank r shows, if everybody shows `bytes`.
static int look(struct gpsh_team *team, size_t bytes, const char *what)
{
    unsigned side = side_of(team);
    for (int i = 1; i < team->n; i++) {
        int rank = team->my_rank + i;
        rank = rank < team->n ? rank : rank - team->n;
        struct gpsh_team_words *theirs = team->words[rank];
        int status = await(team, rank, &theirs->own[side].epoch, what);
        if (GPSH_UNLIKELY(status < 0))
            return status;
        if (bytes)
            team->views[rank] =
                bytes <= GPSH_TEAM_LINE_DATA ? theirs->own[side].data : data_of(theirs, side);
    }
    if (team->bell)
        gpsh_bell_ring(team->bell);
    return 0;
}

// ---- Messages ----

static int tell_far(struct gpsh_team *team, int rank, int round, char *data, size_t bytes,
                    size_t offset)
{
    unsigned side = side_of(team);
    const char *control = (const char *)gpsh_heap()->control;
    const struct gpsh_op op = {
        .kind = GPSH_OP_PUT_SIGNAL,
        .flags = GPSH_OP_LOCAL_HOST,
        .region = GPSH_CONTROL,
        .pe = team->pes[rank],
        .local = data,
        .remote = (uint64_t)(data_of(team->mine, side) + offset - control),
        .bytes = bytes,
        .signal = (uint64_t)((const char *)&team->mine->arrived[round][side] - control),
        .operand = team->epoch,
    };
    return gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_SOURCE);
}

// Writes `bytes` to `offset` in the rank's room of this epoch, then its word of the round.
static int tell(struct gpsh_team *team, int rank, int round, char *data, size_t bytes,
                size_t offset)
{
    struct gpsh_team_words *theirs = team->words[rank];
    unsigned side = side_of(team);
    if (!theirs)
        return tell_far(team, rank, round, data, bytes, offset);
    if (bytes)
        memcpy(data_of(theirs, side) + offset, data, bytes);
    atomic_store_explicit(&theirs->arrived[round][side], team->epoch, memory_order_release);
    return 0;
}

static int rank_at(const struct gpsh_team *team, int distance)
{
    int rank = team->my_rank + distance;
    return rank < 0 ? rank + team->n : rank < team->n ? rank : rank - team->n;
}

// One round: tells the rank `distance` after this one, hears of the one as far before it.
static int exchange(struct gpsh_team *team, int round, int distance, char *data, size_t bytes,
                    size_t offset, const char *what)
{
    int status = tell(team, rank_at(team, distance), round, data, bytes, offset);
    if (status == 0)
        status =
            await(team, rank_at(team, -distance), &team->mine->arrived[round][side_of(team)], what);
    return status;
}

// J. Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing
// systems", 1997: after round r a PE has the data of the 2^(r+1) ranks up to and including its own,
// its own first. Without data this is the dissemination barrier.
static int relay(struct gpsh_team *team, const void *mine, size_t bytes, const char *what)
{
    char *room = data_of(team->mine, side_of(team));
    int n = team->n;
    if (bytes)
        memcpy(room, mine, bytes);
    for (int round = 0, distance = 1; distance < n; round++, distance *= 2) {
        int pieces = distance < n - distance ? distance : n - distance;
        int status = exchange(team, round, distance, room, (size_t)pieces * bytes,
                              (size_t)distance * bytes, what);
        if (status < 0)
            return status;
    }
    for (int i = 0; bytes && i < n; i++)
        team->views[rank_at(team, -i)] = room + (size_t)i * bytes;
    return 0;
}

// The same rounds; whoever has the root's data by then passes it on.
static int relay_cast(struct gpsh_team *team, int root, const void *mine, size_t bytes,
                      const char *what)
{
    char *room = data_of(team->mine, side_of(team));
    int n = team->n, behind = (team->my_rank - root + n) % n;
    if (behind == 0)
        memcpy(room, mine, bytes);
    for (int round = 0, distance = 1; distance < n; round++, distance *= 2) {
        // Who is the receiver's own root, or has it already, gets nothing.
        int receiver = (behind + distance) % n;
        bool passes = behind < distance && receiver >= distance;
        int status = exchange(team, round, distance, room, passes ? bytes : 0, 0, what);
        if (status < 0)
            return status;
    }
    team->views[root] = room;
    return 0;
}

// Bruck's all-to-all: in round r each piece that has to go a distance with bit r moves by 2^r. Each
// round has a place of its own in the room, since a fast PE may be rounds ahead.
static int relay_transpose(struct gpsh_team *team, const char *mine, size_t bytes, const char *what)
{
    char *room = data_of(team->mine, side_of(team));
    char *pieces = gpsh_team_work(team, GPSH_WORK_PIECES);
    char *packed = gpsh_team_work(team, GPSH_WORK_PACKED);
    int n = team->n;
    for (int i = 0; i < n; i++)
        memcpy(pieces + (size_t)i * bytes, mine + (size_t)rank_at(team, i) * bytes, bytes);
    size_t offset = 0;
    for (int round = 0, distance = 1; distance < n; round++, distance *= 2) {
        size_t used = 0;
        for (int i = distance; i < n; i++)
            if (i & distance) {
                memcpy(packed + used, pieces + (size_t)i * bytes, bytes);
                used += bytes;
            }
        int status = exchange(team, round, distance, packed, used, offset, what);
        if (status < 0)
            return status;
        const char *from = room + offset;
        for (int i = distance; i < n; i++)
            if (i & distance) {
                memcpy(pieces + (size_t)i * bytes, from, bytes);
                from += bytes;
            }
        offset += used;
    }
    for (int i = 0; i < n; i++)
        team->views[rank_at(team, -i)] = pieces + (size_t)i * bytes;
    return 0;
}

// ---- By nodes ----

// The first member of each node hears the others of its node, exchanges with the first members of
// the other nodes in Bruck's rounds, and shows that it has: then what came is in its room for its
// node to look at. As in the other ways, a member that sees the end of an epoch knows that all have
// entered it.

static const char *shown_by(struct gpsh_team *team, int rank, size_t bytes)
{
    struct gpsh_team_words *theirs = team->words[rank];
    unsigned side = side_of(team);
    return bytes <= GPSH_TEAM_LINE_DATA ? theirs->own[side].data : data_of(theirs, side);
}

static int hear_node(struct gpsh_team *team, const char *what)
{
    const struct gpsh_team_nodes *nodes = team->nodes;
    int status = 0;
    for (int rank = team->my_rank + 1; rank < team->n && status == 0; rank++)
        if (nodes->node[rank] == nodes->mine)
            status = await(team, rank, &team->words[rank]->own[side_of(team)].epoch, what);
    return status;
}

// One round, as `exchange` does, with nodes instead of ranks.
static int exchange_nodes(struct gpsh_team *team, int round, int distance, size_t bytes,
                          size_t offset, const char *what)
{
    const struct gpsh_team_nodes *nodes = team->nodes;
    unsigned side = side_of(team);
    int to = nodes->leaders[(nodes->mine + distance) % nodes->n];
    int from = nodes->leaders[(nodes->mine - distance + nodes->n) % nodes->n];
    int status = tell(team, to, round, data_of(team->mine, side), bytes, offset);
    return status < 0 ? status : await(team, from, &team->mine->arrived[round][side], what);
}

static int lead_gather(struct gpsh_team *team, const void *mine, size_t bytes, const char *what)
{
    const struct gpsh_team_nodes *nodes = team->nodes;
    char *room = data_of(team->mine, side_of(team));
    for (int rank = 0; bytes && rank < team->n; rank++)
        if (nodes->node[rank] == nodes->mine)
            memcpy(room + (size_t)nodes->place[rank] * bytes,
                   rank == team->my_rank ? mine : shown_by(team, rank, bytes), bytes);
    int status = 0;
    for (int round = 0, have = 1; have < nodes->n && status == 0; round++, have *= 2) {
        int pieces = have < nodes->n - have ? have : nodes->n - have;
        int to = (nodes->mine + have) % nodes->n;
        int members = gpsh_team_nodes_members(nodes, nodes->mine, pieces);
        int before = gpsh_team_nodes_members(nodes, to, have);
        status = exchange_nodes(team, round, have, (size_t)members * bytes, (size_t)before * bytes,
                                what);
    }
    return status;
}

static int lead_cast(struct gpsh_team *team, int root, const void *mine, size_t bytes,
                     const char *what)
{
    const struct gpsh_team_nodes *nodes = team->nodes;
    int n = nodes->n, behind = (nodes->mine - nodes->node[root] + n) % n, status = 0;
    if (behind == 0)
        memcpy(data_of(team->mine, side_of(team)),
               root == team->my_rank ? mine : shown_by(team, root, bytes), bytes);
    for (int round = 0, have = 1; have < n && status == 0; round++, have *= 2) {
        bool passes = behind < have && (behind + have) % n >= have;
        status = exchange_nodes(team, round, have, passes ? bytes : 0, 0, what);
    }
    return status;
}

// What the leaders bring: every member's block, or, of a broadcast, the root's.
enum { GATHER = -1 };

static int meet_by_nodes(struct gpsh_team *team, int root, const void *mine, size_t bytes,
                         const char *what)
{
    unsigned side = side_of(team);
    int leader = team->nodes->leaders[team->nodes->mine];
    if (leader != team->my_rank) {
        show(team, mine, root == GATHER || root == team->my_rank ? bytes : 0);
        return await(team, leader, &team->words[leader]->own[side].epoch, what);
    }
    int status = hear_node(team, what);
    if (status == 0)
        status = root == GATHER ? lead_gather(team, mine, bytes, what)
                                : lead_cast(team, root, mine, bytes, what);
    if (status == 0) // pairs with the members' await: what came is in the room
        atomic_store_explicit(&team->mine->own[side].epoch, team->epoch, memory_order_release);
    return status;
}

static const char *leaders_room(struct gpsh_team *team)
{
    return data_of(team->words[team->nodes->leaders[team->nodes->mine]], side_of(team));
}

static int gather_by_nodes(struct gpsh_team *team, const void *mine, size_t bytes, const char *what)
{
    int status = meet_by_nodes(team, GATHER, mine, bytes, what);
    for (int rank = 0; bytes && status == 0 && rank < team->n; rank++)
        team->views[rank] = leaders_room(team) + (size_t)team->nodes->place[rank] * bytes;
    return status;
}

static int cast_by_nodes(struct gpsh_team *team, int root, const void *mine, size_t bytes,
                         const char *what)
{
    int status = meet_by_nodes(team, root, mine, bytes, what);
    team->views[root] = leaders_room(team);
    return status;
}

// ---- Operations ----

static int begin(struct gpsh_team *team, const char *what)
{
    int status = gpsh_team_usable(team, what);
    if (status == 0)
        team->epoch++;
    return status;
}

static int end(struct gpsh_team *team, int status)
{
    if (GPSH_UNLIKELY(status < 0))
        return gpsh_team_break(team, status);
    if (!team->flat)
        gpsh_acquire_remote();
    return 0;
}

int gpsh_team_meet(struct gpsh_team *team, const char *what)
{
    int status = begin(team, what);
    if (status < 0)
        return status;
    if (team->nodes)
        return end(team, gather_by_nodes(team, NULL, 0, what));
    if (!team->flat)
        return end(team, relay(team, NULL, 0, what));
    show(team, NULL, 0);
    return end(team, look(team, 0, what));
}

size_t gpsh_team_gather_most(const struct gpsh_team *team)
{
    size_t room = gpsh_team_room(gpsh_job()->n_pes);
    return team->flat ? room : room / (size_t)team->n;
}

int gpsh_team_gather(struct gpsh_team *team, const void *mine, size_t bytes, const char *what)
{
    int status = begin(team, what);
    if (status < 0)
        return status;
    if (team->nodes)
        return end(team, gather_by_nodes(team, mine, bytes, what));
    if (!team->flat)
        return end(team, relay(team, mine, bytes, what));
    show(team, mine, bytes);
    team->views[team->my_rank] = mine;
    return end(team, look(team, bytes, what));
}

size_t gpsh_team_cast_most(const struct gpsh_team *team)
{
    (void)team;
    return gpsh_team_room(gpsh_job()->n_pes);
}

int gpsh_team_cast(struct gpsh_team *team, int root, const void *mine, size_t bytes,
                   const char *what)
{
    int status = begin(team, what);
    if (status < 0)
        return status;
    if (team->nodes)
        return end(team, cast_by_nodes(team, root, mine, bytes, what));
    if (!team->flat)
        return end(team, relay_cast(team, root, mine, bytes, what));
    show(team, mine, team->my_rank == root ? bytes : 0);
    team->views[team->my_rank] = mine;
    return end(team, look(team, bytes, what));
}

size_t gpsh_team_transpose_most(const struct gpsh_team *team)
{
    size_t n = (size_t)team->n, room = gpsh_team_room(gpsh_job()->n_pes), rounds = 0;
    for (size_t distance = 1; distance < n; distance *= 2)
        rounds++;
    size_t share = rounds * ((n + 1) / 2);
    return room / (team->flat || share < n ? n : share);
}

int gpsh_team_transpose(struct gpsh_team *team, const void *mine, size_t bytes, const char *what)
{
    int status = begin(team, what);
    if (status < 0)
        return status;
    if (!team->flat)
        return end(team, relay_transpose(team, mine, bytes, what));
    show(team, mine, (size_t)team->n * bytes);
    team->views[team->my_rank] = mine;
    status = look(team, (size_t)team->n * bytes, what);
    for (int rank = 0; status == 0 && rank < team->n; rank++)
        team->views[rank] += (size_t)team->my_rank * bytes;
    return end(team, status);
}

int gpsh_team_gather_all(struct gpsh_team *team, const void *mine, size_t bytes, void *all,
                         const char *what)
{
    size_t most = gpsh_team_gather_most(team), part;
    for (size_t at = 0; at < bytes; at += part) {
        part = bytes - at < most ? bytes - at : most;
        int status = gpsh_team_gather(team, (const char *)mine + at, part, what);
        if (status < 0)
            return status;
        for (int rank = 0; rank < team->n; rank++)
            memcpy((char *)all + (size_t)rank * bytes + at, team->views[rank], part);
    }
    return 0;
}
