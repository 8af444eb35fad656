// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>

#include "job/job.h"
#include "proxy/device_nodes.h"

enum { PES = 8 };

static int32_t starts[PES + 1];

// The PEs' nodes as digits, and the team's PEs likewise.
static struct gpsh_device_nodes find(const char *of, const char *team, int my_rank,
                                     enum gpsh_kernels_map map)
{
    static struct gpsh_peer peers[PES];
    int pes[PES], n = 0;
    for (int pe = 0; of[pe]; pe++)
        peers[pe].node = of[pe] - '0';
    for (; team[n]; n++)
        pes[n] = team[n] - '0';
    gpsh_job_state.peers = peers;
    struct gpsh_device_nodes nodes = {.starts = starts};
    gpsh_device_nodes_find(&nodes, pes, n, my_rank, map);
    return nodes;
}

Test(device_nodes, gpsh_device_nodes_find__ranks_in_order__are_nodes)
{
    struct gpsh_device_nodes nodes = find("00011", "01234", 3, GPSH_KERNELS_MAP_NODE);
    cr_assert_eq(nodes.n, 2);
    cr_expect_eq(nodes.mine, 1);
    cr_expect(starts[0] == 0 && starts[1] == 3 && starts[2] == 5);
    cr_expect_eq(nodes.held, 3); // on the second node: two of the first one's shares, and its own
}

Test(device_nodes, gpsh_device_nodes_find__backwards__are_nodes)
{
    struct gpsh_device_nodes nodes = find("00011", "43210", 3, GPSH_KERNELS_MAP_NODE);
    cr_assert_eq(nodes.n, 2);
    cr_expect_eq(nodes.mine, 1);
    cr_expect(starts[1] == 2 && starts[2] == 5);
}

Test(device_nodes, gpsh_device_nodes_find__a_node_that_comes_again__has_none)
{
    cr_expect_eq(find("00011", "03142", 0, GPSH_KERNELS_MAP_NODE).n, 0);
    cr_expect_eq(find("00011", "0341", 0, GPSH_KERNELS_MAP_NODE).n, 0);
}

Test(device_nodes, gpsh_device_nodes_find__one_node__has_none)
{
    cr_expect_eq(find("00011", "012", 0, GPSH_KERNELS_MAP_NODE).n, 0);
    cr_expect_eq(find("00011", "4", 0, GPSH_KERNELS_MAP_NODE).n, 0);
}

Test(device_nodes, gpsh_device_nodes_find__kernels_that_map_nobody__are_alone)
{
    struct gpsh_device_nodes nodes = find("00011", "03142", 2, GPSH_KERNELS_MAP_ALONE);
    cr_assert_eq(nodes.n, 5);
    cr_expect_eq(nodes.mine, 2);
    cr_expect_eq(nodes.held, 5);
    cr_expect_eq(starts[5], 5);
}

// Some map more than others: no node is one for all.
Test(device_nodes, gpsh_device_nodes_find__anything_else__has_none)
{
    cr_expect_eq(find("00011", "01234", 0, GPSH_KERNELS_MAP_SOME).n, 0);
}
