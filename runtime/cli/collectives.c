// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>

#include "commands.h"
#include "core/team_name.h"
#include "info_settings.h"
#include "page.h"
#include "say.h"
#include "stream/coll_choice.h"
#include "table.h"

enum { SMALLEST = 8, DOUBLINGS = 27 }; // to 1 GiB

static struct gpsh_coll_choice choice_of(int kind, uint64_t bytes, int pes)
{
    const struct gpushmem_dev_team team = {.n = pes,
                                           .flags = GPUSHMEM_DEV_TEAM_DIRECT |
                                                    GPUSHMEM_DEV_TEAM_STREAM |
                                                    (uint32_t)pes << GPUSHMEM_DEV_TEAM_ROOM_SHIFT};
    const struct gpushmem_coll_op op = {.kind = (uint8_t)kind, .n = bytes, .width = 1};
    const struct gpsh_device_nodes none = {0};
    return gpsh_coll_choose(&op, &team, &none, true, &gpsh_coll_limits);
}

// One line for each range of sizes with the same way; the blocks are those of its last size.
static void add_kind(struct gpsh_table *table, int kind, int pes)
{
    uint64_t first = SMALLEST;
    for (int i = 0; i <= DOUBLINGS; i++) {
        uint64_t bytes = (uint64_t)SMALLEST << i;
        struct gpsh_coll_choice now = choice_of(kind, bytes, pes),
                                next = choice_of(kind, 2 * bytes, pes);
        if (i < DOUBLINGS && next.way == now.way)
            continue;
        gpsh_table_add(table, "%s of %d PEs", gpsh_coll_kind_name(kind), pes);
        gpsh_table_add(table, "%llu to %llu", (unsigned long long)first, (unsigned long long)bytes);
        gpsh_table_add_words(table, gpsh_coll_way_name(now.way));
        gpsh_table_add(table, "%u x %u", now.blocks, now.threads);
        first = 2 * bytes;
    }
}

static void print_nodes(unsigned nodes)
{
    gpsh_page_paragraph(
        nodes
            ? "Teams of several nodes, nodes=1: small operations of the host meet on each node "
              "first, then one member of each node; large ones send a block of fcollect, collect "
              "and broadcast once to each other node, and of a reduce, reducescatter or scan from "
              "node to node where the order of the team allows it, else a reduce's results once "
              "to each node; those of the rest to each member. Large operations of streams send a "
              "block of fcollect and broadcast once to each other node, and a reduce's sums from "
              "node to node, if the ranks of each node follow each other."
            : "Teams of several nodes, nodes=0: small operations of the host send messages from "
              "member to member, whatever their nodes; large ones, and those of streams, send each "
              "block to each member.");
    putchar('\n');
}

int gpsh_cli_print_collectives(void)
{
    struct gpsh_settings settings;
    int status = gpsh_info_settings_read(GPSH_FOR_GPUSHMEM, &settings);
    if (status)
        return status;
    status =
        gpsh_setting_fail_at("GPUSHMEM_COLLECTIVES", gpsh_coll_limits_read(settings.collectives));
    gpsh_settings_clear(&settings);
    if (status)
        return gpsh_cli_fail("info");
    gpsh_page_paragraph(
        "Collectives of streams where all members are mapped, dest and source apart.");
    gpsh_page_paragraph("Kernels send blocks of up to 1 KiB in packets (of more than four members "
                        "3 KiB divided by the others), two members up to 64 KiB in dense ones, "
                        "more up to some KiB through staging memory, and the "
                        "rest directly.");
    putchar('\n');
    print_nodes(gpsh_coll_limits.nodes);
    struct gpsh_table table = {.columns = 4};
    gpsh_table_add_words(&table, "operation|bytes of a block|way|blocks x threads");
    for (int kind = GPUSHMEM_COLL_BROADCAST; kind < GPUSHMEM_COLL_KINDS; kind++)
        for (int pes = 2; pes <= 8; pes *= 2)
            add_kind(&table, kind, pes);
    gpsh_table_print(&table);
    return 0;
}
