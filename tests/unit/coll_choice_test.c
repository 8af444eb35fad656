// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>

#include "stream/coll_choice.h"

static const struct gpsh_device_nodes one_node;

static struct gpushmem_coll_op reduce_of(uint64_t n, uint32_t width)
{
    return (struct gpushmem_coll_op){.kind = GPUSHMEM_COLL_REDUCE, .n = n, .width = width};
}

Test(coll_choice, gpsh_coll_choose__large_broadcasts__are_relayed)
{
    const struct gpsh_coll_limits limits = {192 << 10, 1 << 20, 64 << 20, 64, 1, 0};
    const struct {
        int n;
        uint64_t bytes;
        int way;
    } rows[] = {{2, 4 << 20, GPUSHMEM_COLL_RELAY},
                {2, 64 << 20, GPUSHMEM_COLL_RELAY},
                {4, 64 << 10, GPUSHMEM_COLL_LL},
                {4, 4 << 20, GPUSHMEM_COLL_RELAY},
                {4, 64 << 20, GPUSHMEM_COLL_RELAY}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct gpushmem_dev_team team = {.n = rows[i].n, .flags = GPUSHMEM_DEV_TEAM_DIRECT};
        const struct gpushmem_coll_op op = {
            .kind = GPUSHMEM_COLL_BROADCAST, .n = rows[i].bytes, .width = 1};
        int way = gpsh_coll_choose(&op, &team, &one_node, true, &limits).way;
        cr_expect_eq(way, rows[i].way, "row %zu: %d", i, way);
    }
}

// Of two members with memory for them: from where packets end to the limit.
Test(coll_choice, gpsh_coll_choose__two_members_with_room__send_dense_packets)
{
    const struct gpsh_coll_limits limits = {192 << 10, 4 << 20, 8 << 20, 64, 1, 0};
    const unsigned maps = GPUSHMEM_DEV_TEAM_DIRECT, streams = maps | GPUSHMEM_DEV_TEAM_STREAM,
                   shift = GPUSHMEM_DEV_TEAM_ROOM_SHIFT;
    const struct {
        int n;
        unsigned flags;
        uint64_t bytes;
        int way;
        unsigned blocks, threads;
    } rows[] = {
        {2, streams | 2u << shift, 192 << 10, GPUSHMEM_COLL_LL, 64, 384},
        {2, streams | 2u << shift, (192 << 10) + 4, GPUSHMEM_COLL_DENSE, 17, 256},
        {2, streams | 2u << shift, 384 << 10, GPUSHMEM_COLL_DENSE, 32, 256},
        {2, streams | 2u << shift, 4 << 20, GPUSHMEM_COLL_DENSE, 32, 256},
        {2, streams | 2u << shift, (4 << 20) + 4, GPUSHMEM_COLL_DIRECT, 64, 512},
        {2, streams | 3u << shift, 400 << 10, GPUSHMEM_COLL_DIRECT, 25, 512}, // no memory for them
        {3, streams | 3u << shift, 400 << 10, GPUSHMEM_COLL_DIRECT, 25, 512},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct gpushmem_dev_team team = {.n = rows[i].n, .flags = rows[i].flags};
        const struct gpushmem_coll_op op = reduce_of(rows[i].bytes / 4, 4);
        struct gpsh_coll_choice choice = gpsh_coll_choose(&op, &team, &one_node, true, &limits);
        cr_expect_eq(choice.way, rows[i].way, "row %zu: %d", i, choice.way);
        cr_expect(choice.blocks == rows[i].blocks && choice.threads == rows[i].threads,
                  "row %zu: %u x %u", i, choice.blocks, choice.threads);
    }
}

// ---- By nodes ----

static int32_t starts[] = {0, 3, 5};
static const struct gpsh_device_nodes two_nodes = {2, 0, 3, starts};

static struct gpsh_coll_choice by_nodes(const struct gpushmem_coll_op *op,
                                        const struct gpsh_device_nodes *nodes)
{
    const struct gpsh_coll_limits limits = {192 << 10, 0, 8 << 20, 64, 1, 0};
    const struct gpushmem_dev_team team = {.n = 5};
    return gpsh_coll_choose(op, &team, nodes, true, &limits);
}

Test(coll_choice, gpsh_coll_choose__large_of_several_nodes__goes_by_nodes)
{
    const struct {
        uint8_t kind, type, fold;
        uint64_t n;
        int way;
    } rows[] = {
        {GPUSHMEM_COLL_REDUCE, GPUSHMEM_COLL_FLOAT, GPUSHMEM_COLL_SUM, 8192, GPUSHMEM_COLL_NODES},
        {GPUSHMEM_COLL_REDUCE, GPUSHMEM_COLL_FLOAT, GPUSHMEM_COLL_SUM, 64, GPUSHMEM_COLL_ROUNDS},
        // partial results would be floats
        {GPUSHMEM_COLL_REDUCE, GPUSHMEM_COLL_HALF, GPUSHMEM_COLL_SUM, 8192, GPUSHMEM_COLL_DIRECT},
        {GPUSHMEM_COLL_REDUCE, GPUSHMEM_COLL_HALF, GPUSHMEM_COLL_MAX, 8192, GPUSHMEM_COLL_NODES},
        {GPUSHMEM_COLL_FCOLLECT, 0, 0, 24576, GPUSHMEM_COLL_NODES}, // twice 96 KiB are saved
        {GPUSHMEM_COLL_FCOLLECT, 0, 0, 24575, GPUSHMEM_COLL_DIRECT},
        {GPUSHMEM_COLL_FCOLLECT, 0, 0, 64, GPUSHMEM_COLL_ROUNDS},
        {GPUSHMEM_COLL_BROADCAST, 0, 0, 24576, GPUSHMEM_COLL_NODES},
        {GPUSHMEM_COLL_ALLTOALL, 0, 0, 8192, GPUSHMEM_COLL_DIRECT}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct gpushmem_coll_op op = {.kind = rows[i].kind,
                                            .type = rows[i].type,
                                            .fold = rows[i].fold,
                                            .n = rows[i].n,
                                            .width = 4};
        cr_expect_eq(by_nodes(&op, &two_nodes).way, rows[i].way, "row %zu", i);
        cr_expect_neq(by_nodes(&op, &one_node).way, GPUSHMEM_COLL_NODES, "row %zu", i);
    }
}

// Copies are as short without nodes if each has one member; a fold has a hop for each node.
Test(coll_choice, gpsh_coll_choose__nodes_of_one_member__fold_by_nodes_alone)
{
    const struct gpsh_device_nodes alone = {5, 0, 5, NULL};
    struct gpushmem_coll_op op = {.kind = GPUSHMEM_COLL_FCOLLECT, .n = 1 << 20, .width = 4};
    cr_expect_eq(by_nodes(&op, &alone).way, GPUSHMEM_COLL_DIRECT);
    op = reduce_of(3 * (96 << 10) / 4, 4);
    cr_expect_eq(by_nodes(&op, &alone).way, GPUSHMEM_COLL_NODES);
    op.n--;
    cr_expect_eq(by_nodes(&op, &alone).way, GPUSHMEM_COLL_DIRECT);
}

Test(coll_choice, gpsh_coll_choose__rounded_halves__go_by_nodes)
{
    const struct gpsh_coll_limits limits = {192 << 10, 0, 8 << 20, 64, 1, 1};
    const struct gpushmem_dev_team team = {.n = 5};
    struct gpushmem_coll_op op = reduce_of(1 << 20, 2);
    op.type = GPUSHMEM_COLL_BFLOAT16;
    op.fold = GPUSHMEM_COLL_SUM;
    cr_expect_eq(gpsh_coll_choose(&op, &team, &two_nodes, true, &limits).way, GPUSHMEM_COLL_NODES);
    cr_expect_eq(by_nodes(&op, &two_nodes).way, GPUSHMEM_COLL_DIRECT);
}

// In place each segment has all hops: of 30 PEs alone it has 2 MiB, which take less without nodes.
Test(coll_choice, gpsh_coll_choose__short_segments_of_many_nodes__go_without_nodes)
{
    const struct gpsh_coll_limits limits = {192 << 10, 0, 8 << 20, 64, 1, 0};
    const struct gpushmem_dev_team team = {.n = 30};
    const struct gpsh_device_nodes alone = {30, 0, 30, NULL};
    const struct gpushmem_coll_op op = reduce_of(64 << 20, 4);
    cr_expect_eq(gpsh_coll_choose(&op, &team, &alone, true, &limits).way, GPUSHMEM_COLL_NODES);
    cr_expect_eq(gpsh_coll_choose(&op, &team, &alone, false, &limits).way, GPUSHMEM_COLL_DIRECT);
}

// Half of the blocks: the others' flags are counters.
Test(coll_choice, gpsh_coll_choose__huge_by_nodes__has_half_of_the_blocks)
{
    const struct gpushmem_coll_op op = reduce_of((uint64_t)1 << 30, 4);
    cr_expect_eq(by_nodes(&op, &two_nodes).blocks, GPUSHMEM_COLL_NODE_BLOCKS);
}

// What a PE keeps of a segment: as many shares as a member holds at most.
Test(coll_choice, gpsh_coll_segment__of_any_width__fits_what_is_kept)
{
    for (uint32_t width = 1; width <= 16; width *= 2) {
        const struct gpushmem_coll_op op = reduce_of(1, width);
        uint64_t bytes = gpsh_coll_segment(&op, 5, &two_nodes) * width, share = (bytes + 4) / 5;
        cr_expect_leq((share + 127) / 128 * 128 * 3, GPUSHMEM_COLL_KEPT);
        cr_expect_gt(bytes, GPUSHMEM_COLL_KEPT);
    }
}

// ---- Kernels, which have the rows compiled in ----

extern int kernel_way(const struct gpushmem_coll_op *op, int n, unsigned flags, bool stream);

// As a table: the first row that holds.
static int expected_way(const struct gpushmem_coll_op *op, int n, unsigned flags, bool stream)
{
    const uint64_t bytes = op->n * op->width;
    const bool nics = !(flags & GPUSHMEM_DEV_TEAM_DIRECT),
               gathers = op->kind == GPUSHMEM_COLL_COLLECT,
               packets = bytes <= gpushmem_coll_ll_most(n, stream) &&
                         bytes <= gpushmem_coll_kernel_packets(op->kind, n, flags) &&
                         !gpushmem_coll_is_wide(op->kind, op->type, op->fold);
    const struct {
        bool holds;
        int way;
    } rows[] = {
        {nics && gpushmem_coll_in_rounds(op->kind, bytes, n, stream), GPUSHMEM_COLL_ROUNDS},
        {nics, GPUSHMEM_COLL_DIRECT},
        {packets && !gathers, GPUSHMEM_COLL_LL},
        {gpushmem_coll_may_be_dense(op->kind, n, flags) && bytes <= 64 << 10, GPUSHMEM_COLL_DENSE},
        {bytes <= gpushmem_coll_stage_most(n) && !gathers && op->kind != GPUSHMEM_COLL_ALLTOALLS,
         GPUSHMEM_COLL_STAGED},
        {true, GPUSHMEM_COLL_DIRECT}};
    int i = 0;
    while (!rows[i].holds)
        i++;
    return rows[i].way;
}

Test(coll_choice, gpsh_dev_coll_way__any__the_first_row_that_holds)
{
    struct gpushmem_coll_op op = {.type = GPUSHMEM_COLL_COMPLEXD, .width = 8};
    int ways = 0;
    for (int kind = GPUSHMEM_COLL_BROADCAST; kind < GPUSHMEM_COLL_KINDS; kind++)
        for (int n = 2; n < 20; n += 3)
            for (op.n = 1; op.n < 1 << 14; op.n = op.n * 3 / 2 + 1)
                for (int bits = 0; bits < 16; bits++) {
                    const unsigned flags = (bits & 1 ? GPUSHMEM_DEV_TEAM_DIRECT : 0u) |
                                           (bits & 8 ? GPUSHMEM_DEV_TEAM_STREAM : 0u) |
                                           (unsigned)n << GPUSHMEM_DEV_TEAM_ROOM_SHIFT;
                    op.kind = (uint8_t)kind;
                    op.fold = bits & 4 ? GPUSHMEM_COLL_PROD : GPUSHMEM_COLL_SUM;
                    int way = kernel_way(&op, n, flags, bits & 2);
                    cr_assert_eq(way, expected_way(&op, n, flags, bits & 2), "kind %d of %d: %d",
                                 kind, (int)op.n, way);
                    ways |= 1 << way;
                }
    cr_expect_eq(ways, 1 << GPUSHMEM_COLL_LL | 1 << GPUSHMEM_COLL_STAGED |
                           1 << GPUSHMEM_COLL_DIRECT | 1 << GPUSHMEM_COLL_ROUNDS |
                           1 << GPUSHMEM_COLL_DENSE);
}

// ---- The host ----

Test(coll_choice, gpsh_coll_choose_host__teams_of_nodes__take_the_first_row_that_holds)
{
    const unsigned nodes = GPSH_COLL_NODE_TEAM, chain = nodes | GPSH_COLL_CHAIN_TEAM,
                   order = chain | GPSH_COLL_IN_ORDER, near = order | GPSH_COLL_NEIGHBORS;
    const struct {
        int kind, n, nodes;
        unsigned is;
        uint64_t kib;
        bool exact, wide;
        int schedule;
    } rows[] = {
        {GPUSHMEM_COLL_REDUCE, 16, 4, order, 32, false, false, GPSH_COLL_CHAIN},
        {GPUSHMEM_COLL_REDUCE, 16, 4, order, 31, false, false, GPSH_COLL_BY_NODES}, // too many hops
        {GPUSHMEM_COLL_REDUCE, 16, 4, chain, 32, false, false, GPSH_COLL_BY_NODES}, // order shows
        {GPUSHMEM_COLL_REDUCE, 16, 4, chain, 32, true, false, GPSH_COLL_CHAIN},
        {GPUSHMEM_COLL_REDUCE, 16, 4, nodes, 32, true, false, GPSH_COLL_BY_NODES}, // no counters
        {GPUSHMEM_COLL_REDUCE, 8, 4, nodes, 32, true, false, GPSH_COLL_BY_MEMBERS},
        {GPUSHMEM_COLL_REDUCE, 8, 2, near, 4, false, true, GPSH_COLL_CHAIN_WIDE},
        {GPUSHMEM_COLL_REDUCE, 8, 2, near, 3, false, true, GPSH_COLL_BY_NODES},
        {GPUSHMEM_COLL_REDUCE, 7, 2, near, 4, false, true, GPSH_COLL_BY_NODES},
        {GPUSHMEM_COLL_REDUCE, 8, 2, order, 4, false, true, GPSH_COLL_BY_NODES},
        {GPUSHMEM_COLL_REDUCESCATTER, 9, 3, order, 16, false, false, GPSH_COLL_CHAIN},
        {GPUSHMEM_COLL_REDUCESCATTER, 6, 3, order, 16, false, false, GPSH_COLL_BY_MEMBERS},
        {GPUSHMEM_COLL_INSCAN, 8, 4, order, 4, true, false, GPSH_COLL_CHAIN},
        {GPUSHMEM_COLL_EXSCAN, 8, 4, order, 3, true, false, GPSH_COLL_BY_MEMBERS},
        {GPUSHMEM_COLL_EXSCAN, 8, 4, chain, 4, true, false, GPSH_COLL_BY_MEMBERS},
        {GPUSHMEM_COLL_INSCAN, 8, 2, near, 4, false, true, GPSH_COLL_BY_MEMBERS},
        {GPUSHMEM_COLL_BROADCAST, 5, 2, nodes, 4, true, false, GPSH_COLL_BY_NODES},
        {GPUSHMEM_COLL_FCOLLECT, 5, 2, nodes, 4, true, false, GPSH_COLL_BY_NODES},
        {GPUSHMEM_COLL_ALLTOALL, 5, 2, near, 4, true, false, GPSH_COLL_BY_MEMBERS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct gpsh_coll_team_facts team = {rows[i].n, rows[i].nodes, rows[i].is};
        int schedule = gpsh_coll_choose_host(rows[i].kind, &team, rows[i].kib << 10, rows[i].exact,
                                             rows[i].wide);
        cr_expect_eq(schedule, rows[i].schedule, "row %zu: %d", i, schedule);
    }
}

// Small ones of members that do not see each other's words.
Test(coll_choice, gpsh_coll_choose_host__small__is_gathered_or_doubled)
{
    const unsigned words = GPSH_COLL_FITS_WORDS, doubling = GPSH_COLL_FITS_DOUBLING;
    const struct {
        int kind, n;
        unsigned is;
        uint64_t bytes;
        bool exact;
        int schedule;
    } rows[] = {
        {GPUSHMEM_COLL_REDUCE, 64, words | doubling, 8, true, GPSH_COLL_SMALL},
        {GPUSHMEM_COLL_REDUCE, 64, doubling, 200, true, GPSH_COLL_DOUBLING},
        {GPUSHMEM_COLL_REDUCE, 64, doubling, 200, false, GPSH_COLL_BY_MEMBERS}, // order shows
        {GPUSHMEM_COLL_REDUCE, 64, doubling | GPSH_COLL_IN_PAIRS, 200, false, GPSH_COLL_DOUBLING},
        {GPUSHMEM_COLL_REDUCE, 64, 0, 1000, true, GPSH_COLL_BY_MEMBERS},
        {GPUSHMEM_COLL_REDUCE, 2048, words | doubling, 8, true, GPSH_COLL_SMALL},
        {GPUSHMEM_COLL_REDUCE, 2049, words | doubling, 8, true, GPSH_COLL_DOUBLING},
        {GPUSHMEM_COLL_REDUCE, 2049, words | doubling, 8, false, GPSH_COLL_SMALL},
        {GPUSHMEM_COLL_INSCAN, 64, doubling, 200, true, GPSH_COLL_BY_MEMBERS},
        {GPUSHMEM_COLL_FCOLLECT, 64, words | doubling, 8, true, GPSH_COLL_SMALL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct gpsh_coll_team_facts team = {rows[i].n, 0, rows[i].is};
        int schedule =
            gpsh_coll_choose_host(rows[i].kind, &team, rows[i].bytes, rows[i].exact, false);
        cr_expect_eq(schedule, rows[i].schedule, "row %zu: %d", i, schedule);
    }
}

Test(coll_choice, gpsh_coll_limits_read__each_word__sets_its_own_limit_alone)
{
    const char *words[] = {"packets=1K", "dense=3K", "copies=2K", "blocks=3", "nodes=0", "round=1"};
    const char *read[] = {
        "packets=1024,dense=1048576,copies=268435456,blocks=64,nodes=1,round=0",
        "packets=786432,dense=3072,copies=268435456,blocks=64,nodes=1,round=0",
        "packets=786432,dense=1048576,copies=2048,blocks=64,nodes=1,round=0",
        "packets=786432,dense=1048576,copies=268435456,blocks=3,nodes=1,round=0",
        "packets=786432,dense=1048576,copies=268435456,blocks=64,nodes=0,round=0",
        "packets=786432,dense=1048576,copies=268435456,blocks=64,nodes=1,round=1",
    };
    char text[128];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        cr_assert_eq(gpsh_coll_limits_read(words[i]), 0);
        gpsh_coll_limits_print(text, sizeof text);
        cr_expect_str_eq(text, read[i]);
    }
}
