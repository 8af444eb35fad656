// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <stdlib.h>

#include "comm/team_nodes.h"
#include "job/job.h"

enum { PES = 8 };

// Nodes of the PEs, and the team's PEs, as digits. `first`: the ranks that begin a node, and the
// team's size.
static const struct {
    const char *of, *team;
    int my_rank;
    bool alone;
    int n, mine, held;
    const char *first;
} rows[] = {
    // on the second node: two of the first one's shares, and its own
    {"00011", "01234", 3, false, 2, 1, 3, "035"},
    {"00011", "43210", 3, false, 2, 1, 3, "025"},
    {"00011", "03142", 0, false, 0, 0, 0, ""}, // a node that comes again
    {"00011", "0341", 0, false, 0, 0, 0, ""},
    {"00011", "012", 0, false, 0, 0, 0, ""}, // one node
    {"00011", "4", 0, false, 0, 0, 0, ""},
    {"00011", "03142", 2, true, 5, 2, 5, "012345"},
};

Test(team_nodes, gpsh_team_nodes_of_kernels__teams__have_the_nodes_of_the_table)
{
    static struct gpsh_peer peers[PES];
    gpsh_job_state.peers = peers;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int pes[PES], n = 0;
        for (int pe = 0; rows[i].of[pe]; pe++)
            peers[pe].node = rows[i].of[pe] - '0';
        for (; rows[i].team[n]; n++)
            pes[n] = rows[i].team[n] - '0';
        struct gpsh_team_nodes *groups =
            gpsh_team_nodes_new(pes, n, rows[i].my_rank, rows[i].alone);
        cr_assert(groups);
        const struct gpsh_device_nodes nodes = gpsh_team_nodes_of_kernels(groups);
        cr_expect_eq(nodes.n, rows[i].n, "row %zu: %d nodes", i, nodes.n);
        if (rows[i].n)
            cr_expect(nodes.mine == rows[i].mine && nodes.held == rows[i].held, "row %zu", i);
        for (int k = 0; rows[i].first[k]; k++)
            cr_expect_eq(nodes.starts[k], rows[i].first[k] - '0', "row %zu, start %d", i, k);
        free(groups);
    }
}
