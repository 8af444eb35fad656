// SPDX-License-Identifier: BSD-3-Clause
#include "collectives.h"

#include <stdio.h>

#include "core/error.h"
#include "info_settings.h"
#include "say.h"
#include "stream/coll_choice.h"

enum { SMALLEST = 8, DOUBLINGS = 27 }; // to 1 GiB

static struct gpsh_coll_choice choice_of(int kind, uint64_t bytes, int pes)
{
    const struct gpushmem_dev_team team = {.n = pes, .flags = GPUSHMEM_DEV_TEAM_DIRECT};
    const struct gpushmem_coll_op op = {.kind = (uint8_t)kind, .n = bytes, .width = 1};
    return gpsh_coll_choose(&op, &team, true, &gpsh_coll_limits);
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
        printf("%-14s %4d %12llu %12llu  %-8s %6u x %u\n", gpsh_coll_kind_name(kind), pes,
               (unsigned long long)first, (unsigned long long)bytes, gpsh_coll_way_name(now.way),
               now.blocks, now.threads);
        first = 2 * bytes;
    }
}

static void print_nodes(unsigned nodes)
{
    printf(
        "Teams of several nodes, %s: small operations of the host %s; large ones send %s.\n\n",
        nodes ? "nodes=1" : "nodes=0",
        nodes ? "meet on each node first, then one member of each node"
              : "send messages from member to member, whatever their nodes",
        nodes
            ? "a block of fcollect, collect and broadcast once to each other node, and those of a "
              "reduce from node to node and back; those of the rest to each member"
            : "each block to each member");
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
    if (status) {
        gpsh_cli_say("info", "%s", gpsh_last_error());
        return 1;
    }
    puts(
        "Collectives of streams where all members are mapped; bytes of a block, dest and source "
        "apart.\nKernels send blocks of up to 512 bytes in packets, up to some KiB through staging "
        "memory, and more directly.\n");
    print_nodes(gpsh_coll_limits.nodes);
    printf("%-14s %4s %12s %12s  %-8s %s\n", "operation", "PEs", "from bytes", "to bytes", "way",
           "blocks x threads");
    for (int kind = GPUSHMEM_COLL_BROADCAST; kind < GPUSHMEM_COLL_KINDS; kind++)
        for (int pes = 2; pes <= 8; pes *= 2)
            print_kind(kind, pes);
    return 0;
}
