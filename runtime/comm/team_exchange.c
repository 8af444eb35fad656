// SPDX-License-Identifier: BSD-3-Clause
#include "comm/team_exchange.h"

#include <stdio.h>
#include <string.h>

#include "comm/context.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/team_name.h"
#include "job/job.h"
#include "memory/heap.h"
#include "progress/waiter.h"

// What the member with these words shows.
static struct gpsh_team_shown *shown_of(const struct gpsh_team *team, struct gpsh_team_words *words,
                                        unsigned side)
{
    return (void *)((char *)words + team->shown + (ptrdiff_t)side * team->side);
}

static char *data_of(const struct gpsh_team *team, struct gpsh_team_words *words, unsigned side)
{
    return shown_of(team, words, side)->data;
}

// Where it shows so many bytes.
static char *place_of(struct gpsh_team_shown *shown, size_t bytes)
{
    return bytes <= GPSH_TEAM_LINE_DATA ? shown->line : shown->data;
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
        team->broken = atomic_load(&gpsh_job()->peers[team->pes[team->failed_pe]].error);
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
    struct gpsh_team_shown *mine = shown_of(team, team->mine, side_of(team));
    if (bytes)
        memcpy(place_of(mine, bytes), data, bytes);
    atomic_store_explicit(&mine->epoch, team->epoch, memory_order_release);
}

// Waits for all others. views[r] is what rank r shows, if everybody shows `bytes`.
static int look(struct gpsh_team *team, size_t bytes, const char *what)
{
    unsigned side = side_of(team);
    for (int i = 1; i < team->n; i++) {
        int rank = team->my_rank + i;
        rank = rank < team->n ? rank : rank - team->n;
        struct gpsh_team_shown *theirs = shown_of(team, team->words[rank], side);
        int status = await(team, rank, &theirs->epoch, what);
        if (GPSH_UNLIKELY(status < 0))
            return status;
        if (bytes)
            team->views[rank] = place_of(theirs, bytes);
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
        .remote = (uint64_t)(data_of(team, team->mine, side) + offset - control),
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
        memcpy(data_of(team, theirs, side) + offset, data, bytes);
    atomic_store_explicit(&theirs->arrived[round][side], team->epoch, memory_order_release);
    return 0;
}

static int rank_at(const struct gpsh_team *team, int distance)
{
    int rank = team->my_rank + distance;
    return rank < 0 ? rank + team->n : rank < team->n ? rank : rank - team->n;
}

// One round: tells one rank, hears of another.
static int exchange(struct gpsh_team *team, int round, int to, int from, char *data, size_t bytes,
                    size_t offset, const char *what)
{
    int status = tell(team, to, round, data, bytes, offset);
    return status < 0 ? status
                      : await(team, from, &team->mine->arrived[round][side_of(team)], what);
}

// Bruck's all-to-all: in round r each piece that has to go a distance with bit r moves by 2^r. Each
// round has a place of its own in the room, since a fast PE may be rounds ahead.
static int alltoall_rounds(struct gpsh_team *team, const char *mine, size_t bytes, const char *what)
{
    char *room = data_of(team, team->mine, side_of(team));
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
        int status = exchange(team, round, rank_at(team, distance), rank_at(team, -distance),
                              packed, used, offset, what);
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

// ---- By groups ----

// A group is a node's members, or one member alone if members do not see each other's words. Its
// first member hears the others, exchanges with the first members of the other groups in rounds,
// and shows that it has: then what came is in its room for its group to look at. As in the other
// ways, a member that sees the end of an epoch knows that all members have entered it.

static const char *shown_by(struct gpsh_team *team, int rank, size_t bytes)
{
    return place_of(shown_of(team, team->words[rank], side_of(team)), bytes);
}

static int hear_group(struct gpsh_team *team, const char *what)
{
    const struct gpsh_team_nodes *groups = team->groups;
    const int *members = groups->members + groups->starts[groups->mine];
    int status = 0;
    for (int i = 1; i < groups->sizes[groups->mine] && status == 0; i++)
        status = await(team, members[i],
                       &shown_of(team, team->words[members[i]], side_of(team))->epoch, what);
    return status;
}

static int exchange_groups(struct gpsh_team *team, int round, int distance, size_t bytes,
                           size_t offset, const char *what)
{
    const struct gpsh_team_nodes *groups = team->groups;
    int to = groups->leaders[(groups->mine + distance) % groups->n];
    int from = groups->leaders[(groups->mine - distance + groups->n) % groups->n];
    return exchange(team, round, to, from, data_of(team, team->mine, side_of(team)), bytes, offset,
                    what);
}

// J. Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing
// systems", 1997: after round r a group has the data of the 2^(r+1) groups up to and including its
// own, its own first. Without data this is the dissemination barrier.
static int lead_allgather(struct gpsh_team *team, const void *mine, size_t bytes, const char *what)
{
    const struct gpsh_team_nodes *groups = team->groups;
    const int *members = groups->members + groups->starts[groups->mine];
    char *room = data_of(team, team->mine, side_of(team));
    for (int i = 0; bytes && i < groups->sizes[groups->mine]; i++)
        memcpy(room + (size_t)i * bytes, i == 0 ? mine : shown_by(team, members[i], bytes), bytes);
    int status = 0;
    for (int round = 0, have = 1; have < groups->n && status == 0; round++, have *= 2) {
        int pieces = have < groups->n - have ? have : groups->n - have;
        int to = (groups->mine + have) % groups->n;
        size_t blocks = 0, before = 0;
        if (bytes) {
            blocks = (size_t)gpsh_team_nodes_members(groups, groups->mine, pieces);
            before = (size_t)gpsh_team_nodes_members(groups, to, have);
        }
        status = exchange_groups(team, round, have, blocks * bytes, before * bytes, what);
    }
    return status;
}

// The same rounds; whoever has the root's data by then passes it on.
static int lead_broadcast(struct gpsh_team *team, int root, const void *mine, size_t bytes,
                          const char *what)
{
    const struct gpsh_team_nodes *groups = team->groups;
    int n = groups->n, behind = (groups->mine - groups->node[root] + n) % n, status = 0;
    if (behind == 0)
        memcpy(data_of(team, team->mine, side_of(team)),
               root == team->my_rank ? mine : shown_by(team, root, bytes), bytes);
    for (int round = 0, have = 1; have < n && status == 0; round++, have *= 2) {
        // Who is of the root's group, or has it already, gets nothing.
        bool passes = behind < have && (behind + have) % n >= have;
        status = exchange_groups(team, round, have, passes ? bytes : 0, 0, what);
    }
    return status;
}

// How many pieces of room an allreduce takes: the sum, and what comes in each round. `half`: the
// largest power of two that is not above the number of groups.
static int allreduce_rounds(const struct gpsh_team_nodes *groups, int *half)
{
    int rounds = 2; // from the groups beyond, and back to them
    for (*half = 1; *half * 2 <= groups->n; *half *= 2)
        rounds++;
    return rounds;
}

// Of `half` groups, or pairs of which the first group has the sum: this one's is number `mine`, and
// the first `pairs` are pairs.
static int lead_doubling(struct gpsh_team *team, int half, int mine, int pairs, size_t bytes,
                         const struct gpsh_team_fold *fold, const char *what)
{
    char *sum = data_of(team, team->mine, side_of(team));
    int status = 0;
    for (int round = 1, distance = 1; distance < half && status == 0; round++, distance *= 2) {
        int number = mine ^ distance;
        int other = team->groups->leaders[number < pairs ? 2 * number : number + pairs];
        char *came = sum + (size_t)(round + 1) * bytes;
        status = exchange(team, round, other, other, sum, bytes, (size_t)(came - sum), what);
        if (status == 0)
            fold->add(fold->self, sum, number < mine ? came : sum, number < mine ? sum : came);
    }
    return status;
}

// Recursive doubling (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
// communication operations in MPICH", 2005): in each round a group has the sum of twice as many,
// which follow each other. Where the groups are no power of two, the first ones make pairs: the
// second of a pair hands its own to the first, which tells it the result in the last round.
static int lead_allreduce(struct gpsh_team *team, const void *mine, size_t bytes,
                          const struct gpsh_team_fold *fold, const char *what)
{
    const struct gpsh_team_nodes *groups = team->groups;
    const int *members = groups->members + groups->starts[groups->mine];
    int half, last = allreduce_rounds(groups, &half) - 1, me = groups->mine, status = 0;
    char *sum = data_of(team, team->mine, side_of(team));
    size_t end = (size_t)(last + 1) * bytes;
    memcpy(sum, mine, bytes);
    for (int i = 1; i < groups->sizes[me]; i++)
        fold->add(fold->self, sum, sum, shown_by(team, members[i], bytes));
    int pairs = groups->n - half;
    bool paired = me < 2 * pairs;
    if (paired && me % 2) {
        int other = groups->leaders[me - 1];
        status = tell(team, other, 0, sum, bytes, bytes);
        if (status == 0)
            status = await(team, other, &team->mine->arrived[last][side_of(team)], what);
        memcpy(sum, sum + end, bytes);
        return status;
    }
    if (paired) {
        status = await(team, groups->leaders[me + 1], &team->mine->arrived[0][side_of(team)], what);
        fold->add(fold->self, sum, sum, sum + bytes);
    }
    if (status == 0)
        status = lead_doubling(team, half, paired ? me / 2 : me - pairs, pairs, bytes, fold, what);
    return status == 0 && paired ? tell(team, groups->leaders[me + 1], last, sum, bytes, end)
                                 : status;
}

// Every member's block; or, of a broadcast, the root's; or their sum, which is views[0].
enum { ALL = -1, SUM = -2 };

static int exchange_by_groups(struct gpsh_team *team, int root, const void *mine, size_t bytes,
                              const struct gpsh_team_fold *fold, const char *what)
{
    unsigned side = side_of(team);
    const struct gpsh_team_nodes *groups = team->groups;
    int leader = groups->leaders[groups->mine], status;
    if (leader != team->my_rank) {
        show(team, mine, root < 0 || root == team->my_rank ? bytes : 0);
        status = await(team, leader, &shown_of(team, team->words[leader], side)->epoch, what);
    } else {
        status = hear_group(team, what);
        if (status == 0)
            status = root == ALL   ? lead_allgather(team, mine, bytes, what)
                     : root == SUM ? lead_allreduce(team, mine, bytes, fold, what)
                                   : lead_broadcast(team, root, mine, bytes, what);
        if (status == 0) // pairs with the members' await: what came is in the room
            atomic_store_explicit(&shown_of(team, team->mine, side)->epoch, team->epoch,
                                  memory_order_release);
    }
    const char *room =
        data_of(team, leader == team->my_rank ? team->mine : team->words[leader], side);
    if (root != ALL)
        team->views[root == SUM ? 0 : root] = room;
    for (int rank = 0; root == ALL && bytes && status == 0 && rank < team->n; rank++)
        team->views[rank] = room + (size_t)groups->place[rank] * bytes;
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

int gpsh_team_sync(struct gpsh_team *team, const char *what)
{
    int status = begin(team, what);
    if (status < 0)
        return status;
    if (!team->flat)
        return end(team, exchange_by_groups(team, ALL, NULL, 0, NULL, what));
    show(team, NULL, 0);
    return end(team, look(team, 0, what));
}

size_t gpsh_team_allgather_most(const struct gpsh_team *team)
{
    size_t room = team->room;
    return team->flat ? room : room / (size_t)team->n;
}

int gpsh_team_allgather(struct gpsh_team *team, const void *mine, size_t bytes, const char *what)
{
    int status = begin(team, what);
    if (status < 0)
        return status;
    if (!team->flat)
        return end(team, exchange_by_groups(team, ALL, mine, bytes, NULL, what));
    show(team, mine, bytes);
    team->views[team->my_rank] = mine;
    return end(team, look(team, bytes, what));
}

size_t gpsh_team_broadcast_most(const struct gpsh_team *team)
{
    return team->room;
}

// Data that fits into a line, in a flat team. The root writes it into the next line of its ring and
// goes on: it waits only for those who have not heard what was in that line before, 32 broadcasts
// ago. Where PEs share cores, each of them then has several broadcasts for a turn on the core.
// Counted as two epochs, so that the meetings before and after it have different sides still.
static int broadcast_ahead(struct gpsh_team *team, int root, const void *mine, size_t bytes,
                           const char *what)
{
    team->epoch++;
    unsigned at = (unsigned)(team->epoch >> 1) % GPSH_TEAM_RING;
    struct gpsh_team_words *roots = team->words[root];
    int status = 0;
    if (root == team->my_rank) {
        for (int i = 1; i < team->n && status == 0; i++) {
            int rank = rank_at(team, i);
            const _Atomic uint64_t *heard = &team->words[rank]->heard;
            // Pairs with the release store below: the line may be written to.
            if (atomic_load_explicit(heard, memory_order_acquire) < team->sent[at])
                status = gpsh_team_await(team, rank, heard, team->sent[at], what);
        }
        if (status < 0)
            return status;
        memcpy(roots->sent[at].data, mine, bytes);
        atomic_store_explicit(&roots->sent[at].epoch, team->epoch, memory_order_release);
        team->sent[at] = team->epoch;
        team->views[root] = mine;
    } else {
        status = await(team, root, &roots->sent[at].epoch, what);
        if (status < 0)
            return status;
        char *copy = gpsh_team_work(team, GPSH_WORK_OUT);
        team->views[root] = memcpy(copy, roots->sent[at].data, bytes);
    }
    atomic_store_explicit(&team->mine->heard, team->epoch, memory_order_release);
    if (team->bell)
        gpsh_bell_ring(team->bell);
    return 0;
}

int gpsh_team_broadcast(struct gpsh_team *team, int root, const void *mine, size_t bytes,
                        const char *what)
{
    int status = begin(team, what);
    if (status < 0)
        return status;
    if (!team->flat)
        return end(team, exchange_by_groups(team, root, mine, bytes, NULL, what));
    if (bytes <= GPSH_TEAM_LINE_DATA)
        return end(team, broadcast_ahead(team, root, mine, bytes, what));
    show(team, mine, team->my_rank == root ? bytes : 0);
    team->views[team->my_rank] = mine;
    return end(team, look(team, bytes, what));
}

size_t gpsh_team_allreduce_most(const struct gpsh_team *team)
{
    int half;
    return team->flat ? 0 : team->room / (size_t)(allreduce_rounds(team->groups, &half) + 1);
}

int gpsh_team_allreduce(struct gpsh_team *team, const void *mine, size_t bytes,
                        const struct gpsh_team_fold *fold, const char *what)
{
    int status = begin(team, what);
    return status < 0 ? status : end(team, exchange_by_groups(team, SUM, mine, bytes, fold, what));
}

size_t gpsh_team_alltoall_most(const struct gpsh_team *team)
{
    size_t n = (size_t)team->n, room = team->room, rounds = 0;
    for (size_t distance = 1; distance < n; distance *= 2)
        rounds++;
    size_t share = rounds * ((n + 1) / 2);
    return room / (team->flat || share < n ? n : share);
}

int gpsh_team_alltoall(struct gpsh_team *team, const void *mine, size_t bytes, const char *what)
{
    int status = begin(team, what);
    if (status < 0)
        return status;
    if (!team->flat)
        return end(team, alltoall_rounds(team, mine, bytes, what));
    show(team, mine, (size_t)team->n * bytes);
    team->views[team->my_rank] = mine;
    status = look(team, (size_t)team->n * bytes, what);
    for (int rank = 0; status == 0 && rank < team->n; rank++)
        team->views[rank] += (size_t)team->my_rank * bytes;
    return end(team, status);
}

int gpsh_team_allgather_any(struct gpsh_team *team, const void *mine, size_t bytes, void *all,
                            const char *what)
{
    size_t most = gpsh_team_allgather_most(team), part;
    for (size_t at = 0; at < bytes; at += part) {
        part = bytes - at < most ? bytes - at : most;
        int status = gpsh_team_allgather(team, (const char *)mine + at, part, what);
        if (status < 0)
            return status;
        for (int rank = 0; rank < team->n; rank++)
            memcpy((char *)all + (size_t)rank * bytes + at, team->views[rank], part);
    }
    return 0;
}

// ---- Counters ----

static _Atomic uint64_t *counters(const struct gpsh_team *team, struct gpsh_team_words *words,
                                  uint64_t epoch)
{
    return (_Atomic uint64_t *)(void *)data_of(team, words, epoch % 2);
}

// Nobody else reads or writes them before the meeting: all have left the operation before the last.
void gpsh_team_signals_clear(struct gpsh_team *team)
{
    _Atomic uint64_t *mine = counters(team, team->mine, team->epoch + 1);
    for (size_t i = 0; i < gpsh_team_signals(team); i++)
        atomic_store_explicit(mine + i, 0, memory_order_relaxed);
}

static int signal_far(struct gpsh_team *team, int rank, size_t index, uint64_t value)
{
    const char *mine = (const char *)(counters(team, team->mine, team->epoch) + index);
    const struct gpsh_op op = {
        .kind = GPSH_OP_PUT_SIGNAL,
        .flags = GPSH_OP_LOCAL_HOST,
        .region = GPSH_CONTROL,
        .pe = team->pes[rank],
        .signal = (uint64_t)(mine - (const char *)gpsh_heap()->control),
        .operand = value,
    };
    int status = gpsh_context_fence(&gpsh_default_context, team->pes[rank]);
    return status < 0 ? status : gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE);
}

int gpsh_team_signal(struct gpsh_team *team, int rank, size_t index, uint64_t value)
{
    struct gpsh_team_words *theirs = team->words[rank];
    // A store of this processor overtakes data that a transport moves, as it does in GPU memory.
    if (!theirs || !gpsh_direct_base(team->pes[rank]))
        return signal_far(team, rank, index, value);
    atomic_store_explicit(counters(team, theirs, team->epoch) + index, value, memory_order_release);
    return 0;
}

int gpsh_team_signal_wait_at(struct gpsh_team *team, int at, int rank, size_t index, uint64_t least,
                             const char *what)
{
    struct gpsh_team_words *words = at == team->my_rank ? team->mine : team->words[at];
    const _Atomic uint64_t *word = counters(team, words, team->epoch) + index;
    int status = 0;
    if (atomic_load_explicit(word, memory_order_acquire) < least)
        status = gpsh_team_await(team, rank, word, least, what);
    if (status == 0)
        gpsh_acquire_remote();
    return status;
}

int gpsh_team_signal_wait(struct gpsh_team *team, int rank, size_t index, uint64_t least,
                          const char *what)
{
    return gpsh_team_signal_wait_at(team, team->my_rank, rank, index, least, what);
}
