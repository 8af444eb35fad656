// SPDX-License-Identifier: BSD-3-Clause
// PEs connect with the members of teams while others do the same, or communicate; and what is no
// team, or none of this PE's.
#include "../pes/check.h"

enum { ROUNDS = 5 };

static void check_refused(gpushmem_team_t pair)
{
    CHECK(gpushmem_connect(GPUSHMEM_TEAM_INVALID) == GPUSHMEM_ERR_INVALID);
    CHECK(strstr(gpushmem_last_error(), "gpushmem_connect"));
    CHECK(gpushmem_connect((gpushmem_team_t)12345) == GPUSHMEM_ERR_INVALID);
    if (gpushmem_team_my_pe(pair) < 0)
        CHECK(gpushmem_connect(pair) == GPUSHMEM_ERR_INVALID);
}

int main(void)
{
    gpushmem_team_t pair;
    CHECK(gpushmem_connect(GPUSHMEM_TEAM_WORLD) == GPUSHMEM_ERR_STATE);
    CHECK_OK(gpushmem_init());
    int me = gpushmem_my_pe(), n = gpushmem_n_pes();
    uint64_t *words = gpushmem_calloc((size_t)n, sizeof *words);
    CHECK(words);
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 1, 1, 2, NULL, 0, &pair));
    check_refused(pair);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        if (gpushmem_team_my_pe(pair) >= 0)
            CHECK_OK(gpushmem_connect(pair));
        CHECK_OK(gpushmem_connect(GPUSHMEM_TEAM_WORLD));
        for (int pe = 0; pe < n; pe++)
            CHECK_OK(gpushmem_uint64_atomic_add(&words[me], round, pe));
    }
    CHECK_OK(gpushmem_barrier_all());
    for (int pe = 0; pe < n; pe++)
        CHECK(words[pe] == ROUNDS * (ROUNDS + 1) / 2);
    CHECK_OK(gpushmem_team_destroy(pair));
    gpushmem_free(words);
    return gpushmem_finalize();
}
