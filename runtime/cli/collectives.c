// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>

#include "commands.h"
#include "info_settings.h"
#include "page.h"
#include "say.h"
#include "stream/coll_choice.h"

enum { SMALLEST = 8, DOUBLINGS = 27 }; // to 1 GiB
enum { TABLE = 74 };                   // columns of the table

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

static void print_range(int kind, int pes, uint64_t first, uint64_t last,
                        const struct gpsh_coll_choice *choice)
{
    int columns = gpsh_page_columns();
    if (columns && columns < TABLE) {
        char text[256];
        snprintf(text, sizeof text, "%s, %d PEs: %llu to %llu bytes, %s, %u x %u",
                 gpsh_coll_kind_name(kind), pes, (unsigned long long)first,
                 (unsigned long long)last, gpsh_coll_way_name(choice->way), choice->blocks,
                 choice->threads);
        gpsh_page_wrap(text, 0, 4);
        return;
    }
    printf("%-14s %4d %12llu %12llu  %-8s %6u x %u\n", gpsh_coll_kind_name(kind), pes,
           (unsigned long long)first, (unsigned long long)last, gpsh_coll_way_name(choice->way),
           choice->blocks, choice->threads);
}

// One line for each range of sizes with the same way; the blocks are those of its last size.
static void print_kind(int kind, int pes)
{
    uint64_t first = SMALLEST;
    for (int i = 0; i <= DOUBLINGS; i++) {
        uint64_t bytes = (uint64_t)SMALLEST << i;
        struct gpsh_coll_choice now = choice_of(kind, bytes, pes),
                                next = choice_of(kind, 2 * bytes, pes);
        if (i < DOUBLINGS && next.way == now.way)
            continue;
        print_range(kind, pes, first, bytes, &now);
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

static void print_heading(void)
{
    int columns = gpsh_page_columns();
    if (columns && columns < TABLE)
        gpsh_page_paragraph("Operation, PEs: sizes, way, blocks x threads");
    else
        printf("%-14s %4s %12s %12s  %-8s %s\n", "operation", "PEs", "from bytes", "to bytes",
               "way", "blocks x threads");
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
        "Collectives of streams where all members are mapped; bytes of a block, dest "
        "and source apart.");
    gpsh_page_paragraph("Kernels send blocks of up to 1 KiB in packets (of more than four members "
                        "3 KiB divided by the others), two members up to 64 KiB in dense ones, "
                        "more up to some KiB through staging memory, and the "
                        "rest directly.");
    putchar('\n');
    print_nodes(gpsh_coll_limits.nodes);
    print_heading();
    for (int kind = GPUSHMEM_COLL_BROADCAST; kind < GPUSHMEM_COLL_KINDS; kind++)
        for (int pes = 2; pes <= 8; pes *= 2)
            print_kind(kind, pes);
    return 0;
}
