// SPDX-License-Identifier: BSD-3-Clause
// Collectives between nodes: how many messages and bytes they take, and their results around the
// sizes and teams from which they go from node to node.
#include "coll.h"
#include "gpushmem/counters.h"

// ---- Messages between nodes ----

// What this PE has sent through transports.
struct sent {
    int64_t operations, bytes;
};

static struct sent sent(void)
{
    struct gpushmem_counters row;
    uint64_t position = 0;
    struct sent sum = {0, 0};
    while (gpushmem_counters_next(&position, &row) == 1)
        if (row.kind == GPUSHMEM_COUNTERS_FLOW) {
            sum.operations += (int64_t)row.operations;
            sum.bytes += (int64_t)row.bytes;
        }
    return sum;
}

static uint64_t operations(void)
{
    return (uint64_t)sent().operations;
}

static void call_small(gpushmem_team_t team, int which)
{
    switch (which) {
    case 0: CHECK_OK(gpushmem_team_sync(team)); break;
    case 1: CHECK_OK(gpushmem_barrier(team)); break;
    case 2: CHECK_OK(gpushmem_broadcastmem(team, dest, source, 200, n_pes - 1)); break;
    case 3: CHECK_OK(gpushmem_fcollectmem(team, dest, source, 100)); break;
    default: CHECK_OK(gpushmem_int64_sum_reduce(team, (void *)dest, (void *)source, 3));
    }
}

static int64_t sum_of(gpushmem_team_t team, int64_t value)
{
    int64_t *mine = (void *)source, *sum = (void *)dest;
    *mine = value;
    CHECK_OK(gpushmem_int64_sum_reduce(team, sum, mine, 1));
    return *sum;
}

static void call_large(gpushmem_team_t team, int which, size_t bytes)
{
    switch (which) {
    case 0: CHECK_OK(gpushmem_fcollectmem(team, dest, source, bytes)); break;
    case 1: CHECK_OK(gpushmem_broadcastmem(team, dest, source, bytes, n_pes / 2)); break;
    case 2:
        CHECK_OK(gpushmem_uint32_sum_reduce(team, (uint32_t *)dest, (uint32_t *)source, bytes / 4));
        break;
    case 3: CHECK_OK(gpushmem_collectmem(team, dest, source, me ? bytes : 0)); break;
    case 4:
        CHECK_OK(gpushmem_double_sum_reduce(team, (double *)dest, (double *)source, bytes / 8));
        break;
    case 5:
        CHECK_OK(gpushmem_half_sum_reduce(team, (void *)dest, (void *)source, bytes / 2));
        break;
    case 6:
        CHECK_OK(gpushmem_double_sum_inscan(team, (double *)dest, (double *)source, bytes / 8));
        break;
    default: CHECK_OK(gpushmem_int_sum_exscan(team, (int *)dest, (int *)source, bytes / 4));
    }
}

// Each block of a large one goes once to each other node: all members' operations and bytes, less
// those of the meetings; a word comes after each block. `follow`: the nodes follow each other in
// the team, so that sums of floating-point numbers go as those of integers do.
static void check_large(gpushmem_team_t team, int64_t nodes, int64_t meeting, bool follow)
{
    enum { BYTES = 70000 }; // each member has a part of a broadcast
    const int64_t n = n_pes, others = nodes - 1;
    // of gets of other nodes' sources, and a share's most bytes
    const int64_t gets = n * n - sum_of(team, gpushmem_team_n_pes(GPUSHMEM_TEAM_NODE));
    const int64_t share = (BYTES / n + 63) / 64 * 64 + 64;
    typedef struct {
        int64_t meetings, operations, bytes, more;
    } row;
    const row both_ways = {2, 4 * n * others, 2 * others * BYTES, 0};
    const row floats = {2, 6 * n * others, 3 * others * BYTES, 0}; // in two parts on their way up
    // every source to each share, results once to each node
    const row gathered = {2, gets + 2 * n * others, others * BYTES, gets * share};
    // one way, or every source to each share and back
    const row scan = {2, follow ? 2 * n * others : 2 * gets, follow ? others * BYTES : 0,
                      follow ? 0 : 2 * gets * share};
    const row rows[] = {{2, 2 * n * others, n * others * BYTES, 0},
                        {2, 2 * n * others, others * BYTES, 0},
                        both_ways,
                        {3, 2 * (n - 1) * others, (n - 1) * others * BYTES, 0},
                        follow ? both_ways : gathered,
                        follow && n >= 4 * nodes ? floats : gathered,
                        scan,
                        scan};
    for (int which = 0; which < (int)(sizeof rows / sizeof *rows); which++) {
        CHECK_OK(gpushmem_team_sync(team));
        struct sent before = sent();
        call_large(team, which, BYTES);
        struct sent after = sent();
        int64_t sum = sum_of(team, after.operations - before.operations);
        int64_t bytes = sum_of(team, after.bytes - before.bytes);
        CHECK_THAT(sum == rows[which].operations + rows[which].meetings * meeting,
                   "large operation %d: %lld messages", which, (long long)sum);
        // a collect's counts are 8 bytes of each member
        CHECK_THAT(bytes >= rows[which].bytes &&
                       bytes < rows[which].bytes + rows[which].more + 8 * n * nodes + 1,
                   "large operation %d: %lld bytes", which, (long long)bytes);
    }
}

// Small blocks of an alltoall, which all cross to other nodes: with those of the same node for the
// same rank in one message, if the nodes follow each other; large ones alone.
static void check_packed(gpushmem_team_t team, int64_t nodes, int64_t meeting, bool follow)
{
    enum { SMALL = 3000, LARGE = 16385 };
    const int64_t n = n_pes, blocks = n * n - sum_of(team, gpushmem_team_n_pes(GPUSHMEM_TEAM_NODE));
    for (int64_t bytes = SMALL; bytes <= LARGE; bytes += LARGE - SMALL) {
        int64_t messages = follow && bytes == SMALL ? n * (nodes - 1) : blocks;
        CHECK_OK(gpushmem_team_sync(team));
        struct sent before = sent();
        CHECK_OK(gpushmem_alltoallmem(team, dest, source, (size_t)bytes));
        struct sent after = sent();
        CHECK(sum_of(team, after.operations - before.operations) == messages + 2 * meeting);
        CHECK(sum_of(team, after.bytes - before.bytes) == blocks * bytes);
    }
}

// A reducescatter's part waits in its rank's dest: each node before the rank's, but the first, and
// each one after it gets it there and puts it back, and tells the next, or the rank at the end.
static void check_scattered(gpushmem_team_t team, bool leads, int64_t nodes, int64_t meeting)
{
    enum { BYTES = 60000 };
    int64_t *mine = (void *)source, *number = (void *)dest;
    *mine = leads;
    CHECK_OK(gpushmem_int64_sum_inscan(team, number, mine, 1));
    bool first = *number == 1, last = *number == nodes;
    int64_t twice = first ? nodes - 1 : nodes - 2;
    int64_t messages = 3 * twice + (first ? 1 : 2 + !last), crossings = 2 * twice + !first;
    CHECK_OK(gpushmem_team_sync(team));
    struct sent before = sent();
    CHECK_OK(gpushmem_double_sum_reducescatter(team, (double *)dest, (double *)source, BYTES / 8));
    struct sent after = sent();
    CHECK(sum_of(team, after.operations - before.operations) ==
          sum_of(team, messages) + 2 * meeting);
    CHECK(sum_of(team, after.bytes - before.bytes) == sum_of(team, crossings) * BYTES);
}

// Of each node the first member sends one message per round, the others none.
static void check_messages(gpushmem_team_t team, bool leads, bool follow)
{
    int64_t nodes = sum_of(team, leads), rounds_of_nodes = 0;
    while (1 << rounds_of_nodes < nodes)
        rounds_of_nodes++;
    CHECK(nodes < n_pes && nodes > 1);
    check_large(team, nodes, nodes * rounds_of_nodes, follow);
    check_packed(team, nodes, nodes * rounds_of_nodes, follow);
    if (follow)
        check_scattered(team, leads, nodes, nodes * rounds_of_nodes);
    for (int which = 0; which < 5; which++) {
        uint64_t before = operations();
        for (int i = 0; i < 10; i++)
            call_small(team, which);
        uint64_t sent = operations() - before;
        CHECK_THAT(sent == (leads ? 10 * (uint64_t)rounds_of_nodes : 0),
                   "operation %d: %llu messages in 10 calls", which, (unsigned long long)sent);
    }
}

// Each rank from i % n on has a NaN of its own in element i: the first one wins, as in a fold from
// the left.
static void check_nans(gpushmem_team_t team, size_t nelems)
{
    const uint64_t nan_bits = UINT64_C(0x7ff8) << 48;
    int n = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team);
    uint64_t *from = (void *)source, *to = (void *)dest;
    for (int i = 0; i < (int)nelems; i++) {
        double value = i - rank;
        memcpy(from + i, &value, sizeof value);
        from[i] = rank >= i % n ? nan_bits | (unsigned)(rank + 1) : from[i];
    }
    prepare(nelems * sizeof *to);
    CHECK_OK(gpushmem_double_max_reduce(team, (double *)to, (double *)from, nelems));
    for (int i = 0; i < (int)nelems; i++)
        CHECK_THAT(to[i] == (nan_bits | (unsigned)(i % n + 1)), "element %d: %llx", i,
                   (unsigned long long)to[i]);
}

static double addend(int rank, size_t i)
{
    return (double)((size_t)rank * 7 + i * 3 % 11) / 3;
}

// Folded from the left, bit by bit, in place or not.
static void check_folded_sum(gpushmem_team_t team, double *to, double *from, size_t nelems)
{
    int ranks = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team);
    if (to != from)
        memset(to, 0xa5, nelems * sizeof *to);
    for (size_t i = 0; i < nelems; i++)
        from[i] = addend(rank, i);
    skew();
    CHECK_OK(gpushmem_double_sum_reduce(team, to, from, nelems));
    for (size_t i = 0; i < nelems; i++) {
        double sum = addend(0, i);
        for (int r = 1; r < ranks; r++)
            sum += addend(r, i);
        const void *want = &sum, *got = to + i; // the same bits
        CHECK_THAT(memcmp(want, got, sizeof sum) == 0, "element %zu of %zu%s: %.17g, not %.17g", i,
                   nelems, to == from ? " in place" : "", to[i], sum);
    }
}

// Around where it begins to go from node to node, where shares have several pieces, and where it is
// done in segments in place.
static void check_folded_sums(gpushmem_team_t team)
{
    enum { SWITCH = 16384 / 8, PIECE = 32768 / 8, SEGMENT = (8 << 20) / 8 };
    const size_t sizes[] = {SWITCH - 1, SWITCH, (size_t)n_pes * PIECE - 9,
                            (size_t)n_pes * PIECE * 2 + 11};
    double *to = (void *)dest, *from = (void *)source;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_folded_sum(team, to, from, sizes[i]);
        check_folded_sum(team, from, from, sizes[i]);
    }
    double *longest = gpushmem_malloc((SEGMENT + 5) * sizeof *longest);
    CHECK(longest);
    check_folded_sum(team, longest, longest, SEGMENT + 5);
    CHECK_OK(gpushmem_free(longest));
}

static uint16_t summand(int rank, size_t i)
{
    return (uint16_t)((unsigned)(rank + 1) * 4099u * (unsigned)(i + 3));
}

// Maxima of floating-point numbers go by rounds too, where sums of them may not.
static void check_in_pairs(gpushmem_team_t team, size_t nelems, int64_t messages)
{
    struct sent before = sent();
    CHECK_OK(gpushmem_double_min_reduce(team, (double *)dest, (double *)source, nelems));
    struct sent after = sent();
    CHECK(sum_of(team, after.operations - before.operations) == messages);
    check_nans(team, nelems);
}

// Sums of integers that are too large to be gathered in the teams' words, and small enough for
// rounds in which groups have the sums of twice as many: how many messages, and the results. Twice
// as many bytes go in two such parts.
static void check_doubling(gpushmem_team_t team, int64_t groups)
{
    enum { ROOM = 4032 };
    int ranks = gpushmem_team_n_pes(team), rank = gpushmem_team_my_pe(team), rounds = 0;
    while (2 << rounds <= groups)
        rounds++;
    int64_t half = 1 << rounds, messages = half * rounds + 2 * (groups - half);
    size_t least = ROOM / (size_t)ranks + 1, most = ROOM / (size_t)(rounds + 3);
    uint16_t *to = (void *)dest, *from = (void *)source;
    CHECK(least < most);
    for (size_t bytes = (least + 1) / 2 * 2; bytes <= 2 * most; bytes += 38) {
        size_t n = bytes / 2;
        for (size_t i = 0; i < n; i++)
            from[i] = summand(rank, i);
        prepare(bytes);
        struct sent before = sent();
        CHECK_OK(gpushmem_uint16_sum_reduce(team, to, from, n));
        struct sent after = sent();
        CHECK_OK(gpushmem_uint16_max_reduce(team, from, from, n)); // in place
        for (size_t i = 0; i < n; i++) {
            unsigned sum = 0, max = 0;
            for (int r = 0; r < ranks; r++) {
                sum += summand(r, i);
                max = summand(r, i) > max ? summand(r, i) : max;
            }
            CHECK_THAT(to[i] == (uint16_t)sum && from[i] == max, "element %zu of %zu: %u, %u", i, n,
                       to[i], from[i]);
        }
        int64_t all = sum_of(team, after.operations - before.operations);
        CHECK_THAT(all == messages || (bytes > most && all == 2 * messages),
                   "%zu bytes: %lld messages, not %lld", bytes, (long long)all,
                   (long long)messages);
        if ((bytes + 7) / 8 * 8 <= most)
            check_in_pairs(team, (bytes + 7) / 8, messages);
    }
}

// A node with one member, last and first, and nodes that do not follow each other.
static void check_uneven(void)
{
    static const int pes[][4] = {{0, 1, 2, 3}, {6, 1, 0, 2}, {0, 3, 1, 4}};
    for (size_t i = 0; i < sizeof pes / sizeof *pes; i++) {
        gpushmem_team_t team;
        CHECK_OK(gpushmem_team_split_list(GPUSHMEM_TEAM_WORLD, pes[i], 4, NULL, 0, &team));
        if (team == GPUSHMEM_TEAM_INVALID)
            continue;
        check_folded_sum(team, (void *)dest, (void *)source, 9000);
        check_folded_sum(team, (void *)dest, (void *)dest, 20000);
        check_bytes(team, 30000, (unsigned)i);
        check_nans(team, 5000);
        if (i == 0)
            check_types(&team, 1);
        CHECK_OK(gpushmem_team_destroy(team));
    }
}

// A team whose nodes' ranks do not follow each other: every third PE, then those after them.
static void run_mixed(void)
{
    gpushmem_team_t mixed;
    int pes[MOST_PES], n = 0;
    bool leads = true;
    for (int first = 0; first < 3; first++)
        for (int pe = first; pe < n_pes; pe += 3)
            pes[n++] = pe;
    for (int i = 0; pes[i] != me; i++)
        leads = leads &&
                gpushmem_team_translate_pe(GPUSHMEM_TEAM_WORLD, pes[i], GPUSHMEM_TEAM_NODE) < 0;
    CHECK_OK(gpushmem_team_split_list(GPUSHMEM_TEAM_WORLD, pes, n, NULL, 0, &mixed));
    check_messages(mixed, leads, false);
    check_bytes(mixed, 4033, 4);
    check_bytes(mixed, 20000, 5);
    check_folded_sum(mixed, (void *)dest, (void *)source, 9000);
    check_nans(mixed, 5000);
    check_nans(mixed, 60);
    check_nans(GPUSHMEM_TEAM_WORLD, 5000);
    CHECK_OK(gpushmem_team_destroy(mixed));
}

// Ranks in the order of the PEs, and backwards, and neither.
void run_messages(void)
{
    gpushmem_team_t back;
    int n = gpushmem_team_n_pes(GPUSHMEM_TEAM_NODE), rank = gpushmem_team_my_pe(GPUSHMEM_TEAM_NODE);
    CHECK_OK(
        gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, NULL, 0, &back));
    check_messages(GPUSHMEM_TEAM_WORLD, rank == 0, true);
    check_messages(back, rank == n - 1, true);
    check_folded_sums(GPUSHMEM_TEAM_WORLD);
    check_folded_sum(back, (void *)dest, (void *)source, 70001);
    check_uneven();
    // parts of several pieces
    check_sums(GPUSHMEM_TEAM_WORLD, 9001, 1);
    check_products(back, 40001, 2);
    check_in_place(back, 40001);
    CHECK_OK(gpushmem_team_destroy(back));
    run_mixed();
}

// Of all PEs, and of all but the first.
void run_doubling(void)
{
    int leads = gpushmem_team_my_pe(GPUSHMEM_TEAM_NODE) == 0;
    int64_t nodes = sum_of(GPUSHMEM_TEAM_WORLD, leads);
    for (int i = 0; i < 3; i++)
        check_doubling(GPUSHMEM_TEAM_WORLD, nodes);
    gpushmem_team_t back;
    CHECK_OK(
        gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, NULL, 0, &back));
    check_doubling(back, nodes);
    CHECK_OK(gpushmem_team_destroy(back));
}

void run_counts(void)
{
    check_messages(GPUSHMEM_TEAM_WORLD, gpushmem_team_my_pe(GPUSHMEM_TEAM_NODE) == 0, true);
}

// Those in which a PE that got data tells its node, and no meeting of all does.
void run_late(void)
{
    for (unsigned i = 0; i < 6; i++) {
        size_t bytes = 20000 + i * 7000;
        check_broadcast(GPUSHMEM_TEAM_WORLD, bytes, i);
        check_fcollect(GPUSHMEM_TEAM_WORLD, bytes, i);
        check_collect(GPUSHMEM_TEAM_WORLD, bytes, i);
        check_folded_sum(GPUSHMEM_TEAM_WORLD, (void *)dest, (void *)source, bytes);
        check_sums(GPUSHMEM_TEAM_WORLD, bytes / 4, i);
    }
}
