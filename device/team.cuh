// SPDX-License-Identifier: BSD-3-Clause
// Teams in kernels: an operation's view of its team, the flags that members tell each other, begin
// and end. Design: docs/design/teams.md, docs/design/collectives.md.
#ifndef GPUSHMEM_DEVICE_TEAM_CUH
#define GPUSHMEM_DEVICE_TEAM_CUH

#include "gpushmem/device/sync.cuh"

// ---- Who calls ----

// A scope as values: the bodies of collectives are long, and exist once for all scopes.
struct gpsh_dev_group {
    unsigned rank, size;
    enum { thread, warp, block } scope;
};

template <class Scope> struct gpsh_dev_scope_name;
template <> struct gpsh_dev_scope_name<gpsh_scope_thread> {
    static constexpr auto value = gpsh_dev_group::thread;
};
template <> struct gpsh_dev_scope_name<gpsh_scope_warp> {
    static constexpr auto value = gpsh_dev_group::warp;
};
template <> struct gpsh_dev_scope_name<gpsh_scope_block> {
    static constexpr auto value = gpsh_dev_group::block;
};

template <class Scope> GPSH_DEV struct gpsh_dev_group gpsh_dev_group_of(void)
{
    return {Scope::rank(), Scope::size(), gpsh_dev_scope_name<Scope>::value};
}

GPSH_DEV void gpsh_dev_group_sync(const struct gpsh_dev_group &group)
{
    if (group.scope == gpsh_dev_group::block)
        gpsh_scope_block::sync();
    else if (group.scope == gpsh_dev_group::warp)
        gpsh_scope_warp::sync();
}

GPSH_DEV bool gpsh_dev_group_any(const struct gpsh_dev_group &group, bool mine)
{
    return group.scope == gpsh_dev_group::block  ? gpsh_scope_block::any(mine)
           : group.scope == gpsh_dev_group::warp ? gpsh_scope_warp::any(mine)
                                                 : mine;
}

// Some of the group's threads do not take part, which CPU threads know: nothing is moved, or told
// to other members, by those. After a meeting.
GPSH_DEV bool gpsh_dev_group_incomplete(const struct gpsh_dev_group &group)
{
#if defined(__CUDACC__)
    (void)group;
    return false;
#else
    return group.scope != gpsh_dev_group::thread && gpsh_emu_some_missed();
#endif
}

// Some thread brings a status: that which is nearest to 0.
GPSH_DEV_CALL int gpsh_dev_group_settle(struct gpsh_dev_group group, int status)
{
    GPSH_DEV_BOUNDS();
    int settled = -1;
    while (!gpsh_dev_group_any(group, status == settled))
        settled--;
    return settled;
}

// The group meets. The same for all its threads: 0, or the status that one of them brings. A wait
// fails for one thread and not for another, and they must leave an operation by the same barriers.
GPSH_DEV int gpsh_dev_group_agree(const struct gpsh_dev_group &group, int status)
{
    return gpsh_dev_group_any(group, status != 0) ? gpsh_dev_group_settle(group, status) : 0;
}

// ---- An operation under way ----

struct gpsh_dev_coll {
    const struct gpushmem_dev &dev;
    struct gpsh_dev_group group;
    unsigned lane, lanes;   // of the threads of all blocks that take part
    unsigned block, blocks; // of the launch, if it is a stream's
    bool stream;
    int room;          // of how many members its scratch has room
    int handle, me, n; // of the team
    uint32_t flags;    // enum gpushmem_dev_team_flag
    int start, stride;
    const int32_t *pes;
    char *scratch;        // of the channel
    char *dense;          // its dense packets, or NULL
    uint64_t *epoch_word; // holds the number of the operation before
    uint64_t epoch;
    // 0, or why it gave up: this thread's, and the group's once that has agreed
    int status;
};

// Functions that are not inlined take it, and the operation, by value: once its address has gone to
// one of them it lies in the thread's local memory, and every look at a member is a load, in each
// turn of every wait.

// What the handle says about teams, taken from its copy in constant memory: functions that are not
// inlined would read it from *dev.self, and wait for that before the first load that they are for.
struct gpsh_dev_teams {
    const struct gpushmem_dev_team *entries;
    int n, n_pes;
};

GPSH_DEV struct gpsh_dev_teams gpsh_dev_teams_of(const struct gpushmem_dev &dev)
{
    return {dev.teams, (int)dev.n_teams, dev.n_pes};
}

// The parts of a handle: which team, and which of its sequences.
GPSH_DEV int gpsh_dev_handle_team(int handle)
{
    return handle & ((1 << GPUSHMEM_TEAM_CHANNEL_SHIFT) - 1);
}
GPSH_DEV int gpsh_dev_handle_channel(int handle)
{
    return handle >> GPUSHMEM_TEAM_CHANNEL_SHIFT & GPUSHMEM_TEAM_CHANNEL_MASK;
}

// The entry of the handle's slot, which may be another team's (gpsh_dev_team_is), or NULL.
GPSH_DEV const struct gpushmem_dev_team *gpsh_dev_teams_at(const struct gpsh_dev_teams &teams,
                                                           int handle)
{
    int slot = handle & GPUSHMEM_TEAM_SLOT_MASK;
    return handle >= 0 && slot < teams.n ? teams.entries + slot : nullptr;
}

// Begun by gpsh_dev_coll_begin.
GPSH_DEV struct gpsh_dev_coll gpsh_dev_coll_of(const struct gpushmem_dev &dev,
                                               struct gpsh_dev_group group)
{
    return {dev, group, group.rank, group.size, 0,       1,       false,   0,       -1, 0,
            0,   0,     0,          0,          nullptr, nullptr, nullptr, nullptr, 0,  0};
}

GPSH_DEV void gpsh_dev_coll_take(struct gpsh_dev_coll *c, const struct gpushmem_dev_team &team)
{
    c->handle = team.team;
    c->me = team.my_rank;
    c->n = team.n;
    c->flags = team.flags;
    c->room = (int)(team.flags >> GPUSHMEM_DEV_TEAM_ROOM_SHIFT);
    c->start = team.start;
    c->stride = team.stride;
    c->pes = team.pes;
}

GPSH_DEV int gpsh_dev_coll_pe(const struct gpsh_dev_coll &c, int rank)
{
    return c.stride ? c.start + rank * c.stride : c.pes[rank];
}

GPSH_DEV bool gpsh_dev_checked(const struct gpsh_dev_coll &c)
{
    return (c.flags & GPUSHMEM_DEV_TEAM_CHECKED) != 0;
}

// Where a member's object is for loads and stores, or NULL.
GPSH_DEV char *gpsh_dev_coll_there(const struct gpsh_dev_coll &c, const void *object, int rank)
{
    return rank == c.me ? (char *)object
                        : gpsh_dev_direct(c.dev, object, gpsh_dev_coll_pe(c, rank));
}

// 0, or the status that the team's poison says.
GPSH_DEV int gpsh_dev_poison_status(int handle, uint64_t word)
{
    return (uint32_t)word == ((uint32_t)handle | 0x80000000u) ? -(int)(word >> 32) : 0;
}
GPSH_DEV int gpsh_dev_coll_poisoned(const struct gpsh_dev_coll &c)
{
    return gpsh_dev_poison_status(c.handle, gpsh_dev_load64_value_sys(c.scratch));
}

GPSH_DEV void gpsh_dev_coll_poison_at(const struct gpsh_dev_coll &c, const char *scratch)
{
    for (int r = 0; r < c.n; r++)
        if (char *there = gpsh_dev_coll_there(c, scratch, r))
            gpsh_dev_store64_sys(there, gpushmem_team_poison(c.handle, c.status));
}

// A thread gave up, with that status: the operations of the team that are queued on its members, in
// all channels and on streams, end at once.
GPSH_DEV_CALL void gpsh_dev_team_poison(const struct gpushmem_dev &dev, int handle, int status)
{
    GPSH_DEV_BOUNDS();
    const struct gpushmem_dev_team &team = dev.teams[handle & GPUSHMEM_TEAM_SLOT_MASK];
    struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, {0, 1, gpsh_dev_group::thread});
    gpsh_dev_coll_take(&c, team);
    c.handle = handle;
    c.status = status;
    gpsh_dev_coll_poison_at(c, team.scratch);
    if (!(c.flags & GPUSHMEM_DEV_TEAM_STREAM))
        return;
    gpsh_dev_coll_poison_at(c, team.stream_scratch);
    for (int k = 1; k < GPUSHMEM_TEAM_CHANNELS; k++)
        gpsh_dev_coll_poison_at(c, team.stream_scratch +
                                       gpushmem_coll_channel_at(c.room, k, gpsh_dev_checked(c)));
}

GPSH_DEV void gpsh_dev_coll_poison(const struct gpsh_dev_coll &c)
{
    gpsh_dev_team_poison(c.dev, c.handle, c.status);
}

// One empty turn of a wait for members that looks at the host. Not 0: gives up.
GPSH_DEV_CALL int gpsh_dev_coll_look(const struct gpushmem_dev &dev, int handle,
                                     const char *scratch, struct gpsh_dev_wait *wait,
                                     const void *word, uint64_t value, uint64_t seen)
{
    GPSH_DEV_BOUNDS();
    wait->spins--;
    int status = gpsh_dev_spin(wait, true);
    if (!status)
        status = gpsh_dev_poison_status(handle, gpsh_dev_load64_value_sys(scratch));
    if (status || wait->asked)
        gpsh_dev_tell(dev, status ? status : wait->asked, word, sizeof(uint64_t),
                      gpsh_dev_wants<uint64_t>(GPUSHMEM_CMP_GE, value, seen));
    wait->asked = 0;
    return status;
}

GPSH_DEV int gpsh_dev_coll_spin(const struct gpsh_dev_coll &c, struct gpsh_dev_wait *wait,
                                const void *word, uint64_t value, uint64_t seen)
{
#if defined(__CUDACC__)
    if (++wait->spins % GPSH_DEV_LOOK_EVERY)
        return 0;
#else
    if ((wait->spins + 1) % GPSH_DEV_LOOK_EVERY)
        return gpsh_dev_spin(wait, true);
    wait->spins++;
#endif
    struct gpsh_dev_wait slow = *wait;
    int status = gpsh_dev_coll_look(c.dev, c.handle, c.scratch, &slow, word, value, seen);
    *wait = slow;
    return status;
}

// ---- Flags ----

// The word in which `rank` tells this PE, in this block; the same address names it on all members.
GPSH_DEV uint64_t *gpsh_dev_coll_flag(const struct gpsh_dev_coll &c, int flag, int rank)
{
    uint64_t blocks = c.stream ? GPUSHMEM_COLL_STREAM_BLOCKS : 1;
    uint64_t row = (uint64_t)flag * blocks + c.block;
    return (uint64_t *)(c.scratch + GPUSHMEM_COLL_FLAGS_AT) + row * gpushmem_coll_row(c.room) +
           rank;
}

// A fence came before. No flag to oneself.
GPSH_DEV void gpsh_dev_coll_store(const struct gpsh_dev_coll &c, uint64_t *word, uint64_t value,
                                  int rank)
{
    if (char *there = gpsh_dev_coll_there(c, word, rank))
        gpsh_dev_store64_sys(there, value);
    else
        gpsh_dev_announce_by_ring(*c.dev.self, word, value, gpsh_dev_coll_pe(c, rank));
}

// A message to a member that no store reaches: data, if there is any, and the word behind it, by
// the NIC's queue. False: it goes through a ring. So it does where another rail goes on when one is
// lost: the proxy repeats what was under way, which a kernel cannot, and the member would wait for
// ever.
GPSH_DEV bool gpsh_dev_coll_post(const struct gpushmem_dev &dev, void *to, const void *from,
                                 uint64_t bytes, uint64_t *word, uint64_t value, int pe,
                                 bool blocking)
{
    return gpsh_dev_nic_try(dev, pe, [=, &dev](bool prepared) {
               const uint32_t *flags = &gpushmem_nic_queues(dev.nic)[pe].flags;
               return gpsh_dev_load32_relaxed_gpu(flags) & GPUSHMEM_NIC_RAILS
                          ? gpsh_dev_nic_leave(dev, dev.nic, pe, prepared)
                          : gpsh_dev_nic_put_signal(dev, dev.nic, to, from, bytes, word, value,
                                                    GPUSHMEM_SIGNAL_SET, pe, blocking, prepared);
           }) == GPSH_NIC_TAKEN;
}

GPSH_DEV void gpsh_dev_coll_tell(const struct gpsh_dev_coll &c, int flag, uint64_t value, int rank)
{
    gpsh_dev_coll_store(c, gpsh_dev_coll_flag(c, flag, c.me), value, rank);
}

GPSH_DEV void gpsh_dev_coll_await(struct gpsh_dev_coll *c, const uint64_t *word, uint64_t value)
{
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(c->dev);
    for (uint64_t seen; !c->status && (seen = gpsh_dev_load64_acquire_sys(word)) < value;)
        c->status = gpsh_dev_coll_spin(*c, &wait, word, value, seen);
}

// Each thread tells and hears some of the members; then all of the group know that all members are
// there, or all give up. What they did before is visible to the group, and with `fence` what the
// group did to them. After a barrier of the group, none of whose threads has given up. `mapped`:
// all members are.
GPSH_DEV void gpsh_dev_coll_meet_agreed(struct gpsh_dev_coll *c, int flag, bool fence, bool mapped)
{
    unsigned rank = c->group.rank, size = c->group.size;
    const int first = (int)(rank == (unsigned)c->me ? rank + size : rank);
    uint64_t *mine = gpsh_dev_coll_flag(*c, flag, c->me);
    // looked up before the fence, after which everything has to be read from memory again
    char *there = first < c->n ? gpsh_dev_coll_there(*c, mine, first) : nullptr;
    if (fence && rank < (unsigned)c->n)
        gpsh_dev_fence_sys();
    if (there)
        gpsh_dev_store64_sys(there, c->epoch);
    for (int r = there ? first + (int)size : first; r < c->n; r += (int)size)
        if (r != c->me && mapped)
            gpsh_dev_store64_sys(gpsh_dev_coll_there(*c, mine, r), c->epoch);
        else if (r != c->me)
            gpsh_dev_coll_tell(*c, flag, c->epoch, r);
    for (int r = (int)rank; r < c->n; r += (int)size)
        if (r != c->me)
            gpsh_dev_coll_await(c, gpsh_dev_coll_flag(*c, flag, r), c->epoch);
    c->status = gpsh_dev_group_agree(c->group, c->status);
}

GPSH_DEV void gpsh_dev_coll_meet(struct gpsh_dev_coll *c, int flag, bool fence = true)
{
    c->status = gpsh_dev_group_agree(c->group, c->status);
    if (!c->status)
        gpsh_dev_coll_meet_agreed(c, flag, fence, false);
}

GPSH_DEV_CALL int gpsh_dev_coll_met(struct gpsh_dev_coll c, int flag, bool fence = true)
{
    GPSH_DEV_BOUNDS();
    gpsh_dev_coll_meet(&c, flag, fence);
    return c.status;
}

GPSH_DEV void gpsh_dev_coll_exchange(struct gpsh_dev_coll *c, int flag)
{
    c->status = gpsh_dev_coll_met(*c, flag);
}

// ---- The 32 bits of packets ----

GPSH_DEV void gpsh_dev_coll_clear(const struct gpsh_dev_coll &c)
{
    char *packets = c.scratch + gpushmem_coll_ll_at(c.room, c.stream);
    unsigned bytes = (unsigned)gpushmem_coll_ll_bytes(c.room, c.stream);
    for (unsigned i = c.group.rank; i < bytes / sizeof(struct gpsh_dev_packet); i += c.group.size)
        gpsh_dev_store_packet(packets + i * sizeof(struct gpsh_dev_packet), {0, 0});
    bytes = c.dense ? (unsigned)gpushmem_coll_dense_bytes(c.stream) : 0;
    for (unsigned i = 16 * c.group.rank; i < bytes; i += 16 * c.group.size)
        gpsh_dev_store_dense(c.dense + i, {{0, 0, 0}, 0});
}

// Says that the operation c->epoch is over, after a barrier of the group: all have read the number.
// The first block counts for those that this launch does not have.
GPSH_DEV void gpsh_dev_coll_advance(const struct gpsh_dev_coll &c)
{
    if (c.group.rank == 0)
        gpsh_dev_store64_relaxed_gpu(c.epoch_word, c.epoch);
    if (c.stream && c.block == 0)
        for (unsigned b = c.blocks + c.group.rank; b < GPUSHMEM_COLL_STREAM_BLOCKS;
             b += c.group.size)
            gpsh_dev_store64_relaxed_gpu(c.epoch_word + b, c.epoch);
}

GPSH_DEV void gpsh_dev_coll_count(const struct gpsh_dev_coll &c)
{
    gpsh_dev_group_sync(c.group);
    gpsh_dev_coll_advance(c);
}

// The same for an operation that may have failed, which all members are told.
GPSH_DEV void gpsh_dev_coll_finish(struct gpsh_dev_coll *c, int status)
{
    c->status = gpsh_dev_group_agree(c->group, status);
    if (c->status && c->group.rank == 0)
        gpsh_dev_coll_poison(*c);
    gpsh_dev_coll_advance(*c);
}

// Packets say their epoch in 32 bits. A number whose low half is 0 is no operation's: its flags
// enclose the clearing of the packets of the 2^32 operations before, so that none is taken for a
// later one. The first block does it, the others wait for that.
GPSH_DEV_CALL int gpsh_dev_coll_rounded(struct gpsh_dev_coll *c)
{
    GPSH_DEV_BOUNDS();
    uint64_t *done = (uint64_t *)(c->scratch + GPUSHMEM_COLL_ROUND_AT);
    if (c->block == 0) {
        gpsh_dev_coll_meet(c, GPUSHMEM_COLL_ENTRY);
        gpsh_dev_coll_clear(*c);
        gpsh_dev_coll_meet(c, GPUSHMEM_COLL_EXIT);
        if (c->group.rank == 0 && !c->status)
            gpsh_dev_store64_release_sys(done, c->epoch);
    } else {
        gpsh_dev_coll_await(c, done, c->epoch);
    }
    gpsh_dev_coll_count(*c);
    return c->status;
}

GPSH_DEV void gpsh_dev_coll_round(struct gpsh_dev_coll *c)
{
    struct gpsh_dev_coll rare = *c;
    c->status = gpsh_dev_coll_rounded(&rare);
    c->epoch++;
}

// ---- Begin and end ----

GPSH_DEV bool gpsh_dev_team_is_valid(const struct gpushmem_dev &dev, int handle)
{
    const struct gpushmem_dev_team *entry = gpsh_dev_teams_at(gpsh_dev_teams_of(dev), handle);
    return entry && entry->team == gpsh_dev_handle_team(handle);
}

// Which collective it is, as in gpushmem_coll_call, but for the width of its elements.
GPSH_DEV uint64_t gpsh_dev_coll_name(const struct gpushmem_coll_op &op)
{
    return op.kind |
           (op.kind >= GPUSHMEM_COLL_REDUCE ? (uint64_t)op.type << 8 | (uint64_t)op.fold << 16 : 0);
}

// GPUSHMEM_ERR_INVALID: what is wrong with a call.
GPSH_DEV void gpsh_dev_coll_refuse(struct gpsh_dev_coll *c, uint32_t kind, int which, uint64_t seen,
                                   uint64_t wanted, uint64_t call = 0)
{
    c->status = GPUSHMEM_ERR_INVALID;
    gpsh_dev_record(&c->dev.fault[GPUSHMEM_FAULT_FIRST], &c->dev.fault_claim[GPUSHMEM_FAULT_FIRST],
                    c->status, -1, (const void *)call, 0, {kind, which, wanted, seen});
}

// A team's entry by loads that are under way at once: each look takes 0.3 us after an acquire.
GPSH_DEV struct gpushmem_dev_team gpsh_dev_team_read(const struct gpushmem_dev_team *entry)
{
    struct gpushmem_dev_team team = {};
#if defined(__CUDA_ARCH__)
    uint64_t words[sizeof team / 8];
    GPSH_UNROLL
    for (unsigned i = 0; i < sizeof team / 16; i++)
        asm volatile("ld.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(words[2 * i]), "=l"(words[2 * i + 1])
                     : "l"((const char *)entry + 16 * i));
    memcpy(&team, words, sizeof team);
#else
    team = *entry;
#endif
    return team;
}

// It is that team's. The assembler puts a load off behind a branch that does not ask for it: so
// this question, which comes first, looks at every one.
GPSH_DEV bool gpsh_dev_team_is(const struct gpushmem_dev_team &team, int handle)
{
    return (team.team == gpsh_dev_handle_team(handle)) & (team.pes != nullptr) &
           (team.scratch != nullptr) & (team.epochs != nullptr);
}

// A sequence of kernels' own.
GPSH_DEV void gpsh_dev_coll_take_channel(struct gpsh_dev_coll *c,
                                         const struct gpushmem_dev_team &team, int channel)
{
    c->epoch_word = team.epochs + channel;
    c->scratch = channel ? team.stream_scratch +
                               gpushmem_coll_channel_at(c->room, channel, gpsh_dev_checked(*c))
                         : team.scratch;
    if (gpushmem_coll_has_dense(team.flags))
        c->dense = team.stream_scratch + gpushmem_coll_dense_at(c->room, false, channel);
}

// That of streams.
GPSH_DEV void gpsh_dev_coll_take_stream(struct gpsh_dev_coll *c,
                                        const struct gpushmem_dev_team &team)
{
    c->stream = true;
    c->scratch = team.stream_scratch;
    if (gpushmem_coll_has_dense(team.flags))
        c->dense = team.stream_scratch + gpushmem_coll_dense_at(c->room, true, 0);
}

// The bit of a sequence's number that says that an operation of it is under way (GPUSHMEM_CHECK=1).
#define GPSH_DEV_UNDER_WAY ((uint64_t)1 << 63)

// By all threads of the group. 0, or GPUSHMEM_ERR_STATE: two streams, graphs, blocks or threads use
// the sequence at once. Whoever finds the bit set has taken it away, and gives it back.
GPSH_DEV_CALL int gpsh_dev_coll_claim(const struct gpushmem_dev &dev, struct gpsh_dev_group group,
                                      uint64_t *epoch_word)
{
    GPSH_DEV_BOUNDS();
    int status = 0;
    if (group.rank == 0 &&
        gpsh_dev_add64_relaxed_gpu(epoch_word, GPSH_DEV_UNDER_WAY) & GPSH_DEV_UNDER_WAY) {
        gpsh_dev_add64_relaxed_gpu(epoch_word, GPSH_DEV_UNDER_WAY);
        status = GPUSHMEM_ERR_STATE;
        gpsh_dev_record(&dev.fault[GPUSHMEM_FAULT_FIRST], &dev.fault_claim[GPUSHMEM_FAULT_FIRST],
                        status, -1, nullptr, 0, {GPUSHMEM_FAULT_BUSY, 0, 0, 0});
    }
    return gpsh_dev_group_agree(group, status);
}

// `goes_on`: the second kernel of one operation. After a barrier of the group. An operation that
// fails because the team has given up is recorded like one whose own wait fails: nobody looks at
// the status of a stream's operation. The threads may have read different things: the ways begin
// with a barrier by which they agree, or have none.
GPSH_DEV void gpsh_dev_coll_start(struct gpsh_dev_coll *c, bool goes_on)
{
    c->epoch = (gpsh_dev_load64_relaxed_gpu(c->epoch_word) & ~GPSH_DEV_UNDER_WAY) + 1;
    c->status =
        c->flags & GPUSHMEM_DEV_TEAM_LOST ? +GPUSHMEM_ERR_PE_FAILED : gpsh_dev_coll_poisoned(*c);
    if (c->status)
        gpsh_dev_fail(c->dev, c->status, -1, nullptr, 0);
    if (c->flags & GPUSHMEM_DEV_TEAM_CHECKED && !goes_on) {
        c->status = gpsh_dev_group_agree(c->group, c->status);
        if (!c->status)
            c->status = gpsh_dev_coll_claim(c->dev, c->group, c->epoch_word);
    }
    if (!(uint32_t)c->epoch) {
        c->status = gpsh_dev_group_agree(c->group, c->status);
        if (!c->status)
            gpsh_dev_coll_round(c);
    }
}

// For kernels. False: there is no such team or channel, and c->status says so.
GPSH_DEV bool gpsh_dev_coll_begin(struct gpsh_dev_coll *c, const struct gpsh_dev_teams &teams,
                                  int handle)
{
    gpsh_dev_group_sync(c->group);
    int channel = gpsh_dev_handle_channel(handle);
    struct gpushmem_dev_team team = {};
    const struct gpushmem_dev_team *entry = gpsh_dev_teams_at(teams, handle);
    if (entry)
        team = gpsh_dev_team_read(entry);
    int channels = team.flags & GPUSHMEM_DEV_TEAM_STREAM ? (int)GPUSHMEM_TEAM_CHANNELS : 1;
    if (!entry || !gpsh_dev_team_is(team, handle) || channel >= channels) {
        gpsh_dev_coll_refuse(c, GPUSHMEM_FAULT_TEAM, 0, (uint64_t)handle, 0);
        return false;
    }
    gpsh_dev_coll_take(c, team);
    gpsh_dev_coll_take_channel(c, team, channel);
    gpsh_dev_coll_start(c, false);
    return true;
}

// All threads of the group: 0 or a negative status, the same for all.
GPSH_DEV int gpsh_dev_coll_end(struct gpsh_dev_coll *c)
{
    bool alone = c->group.scope == gpsh_dev_group::thread;
    gpsh_dev_coll_finish(c, c->status || alone ? c->status : gpsh_dev_coll_poisoned(*c));
    gpsh_dev_group_sync(c->group); // the next operation's number is there
    return c->status;
}

#endif
