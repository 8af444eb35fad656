// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>

#include "job/job.h"
#include "proxy/device_teams.h"

enum { PES = 8 };

static int32_t starts[PES + 1];

// Nodes of the PEs, and the team's PEs, as digits. `first`: the ranks that begin a node, and the
// team's size.
static const struct {
    const char *of, *team;
    int my_rank;
    enum gpsh_kernels_map map;
    int n, mine, held;
    const char *first;
} rows[] = {
    // on the second node: two of the first one's shares, and its own
    {"00011", "01234", 3, GPSH_KERNELS_MAP_NODE, 2, 1, 3, "035"},
    {"00011", "43210", 3, GPSH_KERNELS_MAP_NODE, 2, 1, 3, "025"},
    {"00011", "03142", 0, GPSH_KERNELS_MAP_NODE, 0, 0, 0, ""}, // a node that comes again
    {"00011", "0341", 0, GPSH_KERNELS_MAP_NODE, 0, 0, 0, ""},
    {"00011", "012", 0, GPSH_KERNELS_MAP_NODE, 0, 0, 0, ""}, // one node
    {"00011", "4", 0, GPSH_KERNELS_MAP_NODE, 0, 0, 0, ""},
    {"00011", "03142", 2, GPSH_KERNELS_MAP_ALONE, 5, 2, 5, "012345"},
    // some map more than others: no node is one for all
    {"00011", "01234", 0, GPSH_KERNELS_MAP_SOME, 0, 0, 0, ""},
};

Test(device_teams, gpsh_device_nodes_find__teams__have_the_nodes_of_the_table)
{
    static struct gpsh_peer peers[PES];
    gpsh_job_state.peers = peers;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int pes[PES], n = 0;
        for (int pe = 0; rows[i].of[pe]; pe++)
            peers[pe].node = rows[i].of[pe] - '0';
        for (; rows[i].team[n]; n++)
            pes[n] = rows[i].team[n] - '0';
        struct gpsh_device_nodes nodes = {.starts = starts};
        gpsh_device_nodes_find(&nodes, pes, n, rows[i].my_rank, rows[i].map);
        cr_expect_eq(nodes.n, rows[i].n, "row %zu: %d nodes", i, nodes.n);
        if (!rows[i].n)
            continue;
        cr_expect(nodes.mine == rows[i].mine && nodes.held == rows[i].held, "row %zu", i);
        for (int k = 0; rows[i].first[k]; k++)
            cr_expect_eq(starts[k], rows[i].first[k] - '0', "row %zu, start %d", i, k);
    }
}
