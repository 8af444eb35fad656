// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>

#include "stream/coll_choice.h"

static int way_of(uint64_t bytes, unsigned blocks)
{
    const struct gpsh_coll_limits limits = {192 << 10, 8 << 20, blocks, 1};
    const struct gpushmem_dev_team team = {.n = 2, .flags = GPUSHMEM_DEV_TEAM_DIRECT};
    const struct gpushmem_coll_op op = {.kind = GPUSHMEM_COLL_REDUCE, .n = bytes, .width = 1};
    return gpsh_coll_choose(&op, &team, true, &limits).way;
}

// A block numbers the pieces that it pushes, of at most 256 KiB, in 20 bits; of two blocks one
// folds.
Test(coll_choice, gpsh_coll_choose__more_pieces_than_a_flag_counts__is_direct)
{
    const uint64_t most = ((uint64_t)1 << 20) * GPUSHMEM_COLL_PUSH_MOST;
    cr_expect_eq(way_of(most / 2, 1), GPUSHMEM_COLL_PUSH);
    cr_expect_eq(way_of(most, 1), GPUSHMEM_COLL_DIRECT);
    cr_expect_eq(way_of(most, 2), GPUSHMEM_COLL_DIRECT);
    cr_expect_eq(way_of(most, 4), GPUSHMEM_COLL_PUSH);
    cr_expect_eq(way_of(2 * most, 4), GPUSHMEM_COLL_DIRECT);
}
