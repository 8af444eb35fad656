// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <limits.h>

#include "comm/team_split.h"
#include "core/error.h"

static int strided(int n, int start, int stride, int size)
{
    return gpsh_team_check_strided("f", n, start, stride, size);
}

Test(team_split, strided__ranks_of_the_parent__are_accepted)
{
    cr_expect_eq(strided(1, 0, 0, 1), 0);
    cr_expect_eq(strided(8, 0, 1, 8), 0);
    cr_expect_eq(strided(8, 1, 2, 4), 0);
    cr_expect_eq(strided(8, 7, -1, 8), 0);
    cr_expect_eq(strided(8, 6, -3, 3), 0);
    cr_expect_eq(strided(8, 5, 100, 1), 0, "a team of one needs no stride");
}

Test(team_split, strided__others__are_refused)
{
    cr_expect_eq(strided(8, 0, 1, 9), GPUSHMEM_ERR_INVALID);
    cr_expect_eq(strided(8, 1, 1, 8), GPUSHMEM_ERR_INVALID);
    cr_expect_eq(strided(8, 6, -3, 4), GPUSHMEM_ERR_INVALID);
    cr_expect_eq(strided(8, -1, 1, 1), GPUSHMEM_ERR_INVALID);
    cr_expect_eq(strided(8, 8, 1, 1), GPUSHMEM_ERR_INVALID);
    cr_expect_eq(strided(8, 0, 1, 0), GPUSHMEM_ERR_INVALID);
    cr_expect_eq(strided(8, 0, 0, 2), GPUSHMEM_ERR_INVALID);
}

Test(team_split, strided__products_beyond_int__do_not_wrap)
{
    cr_expect_eq(strided(8, 4, INT_MAX, INT_MAX), GPUSHMEM_ERR_INVALID);
    cr_expect_eq(strided(8, 4, INT_MIN, 3), GPUSHMEM_ERR_INVALID);
    cr_expect_eq(strided(INT_MAX, 0, 1 << 16, (1 << 16) + 1), GPUSHMEM_ERR_INVALID);
}

Test(team_split, list__each_rank_once__is_accepted)
{
    const int ranks[] = {3, 0, 2};
    cr_expect_eq(gpsh_team_check_list("f", 4, ranks, 3), 0);
}

Test(team_split, list__others__are_refused_by_name)
{
    const int twice[] = {1, 2, 1}, outside[] = {0, 4};
    cr_expect_eq(gpsh_team_check_list("f", 4, twice, 3), GPUSHMEM_ERR_INVALID);
    cr_expect(strstr(gpsh_last_error(), "rank 1 is in the list twice"), "%s", gpsh_last_error());
    cr_expect_eq(gpsh_team_check_list("f", 4, outside, 2), GPUSHMEM_ERR_INVALID);
    cr_expect(strstr(gpsh_last_error(), "has rank 4"), "%s", gpsh_last_error());
    cr_expect_eq(gpsh_team_check_list("f", 4, NULL, 2), GPUSHMEM_ERR_INVALID);
    cr_expect_eq(gpsh_team_check_list("f", 4, twice, 0), GPUSHMEM_ERR_INVALID);
    cr_expect_eq(gpsh_team_check_list("f", 2, twice, 3), GPUSHMEM_ERR_INVALID);
}

Test(team_split, digest__order_and_length__matter)
{
    const int a[] = {1, 2}, b[] = {2, 1};
    cr_expect_neq(gpsh_team_digest(0, a, sizeof a), gpsh_team_digest(0, b, sizeof b));
    cr_expect_neq(gpsh_team_digest(0, a, sizeof a), gpsh_team_digest(0, a, sizeof *a));
    cr_expect_neq(gpsh_team_digest(0, a, sizeof a), gpsh_team_digest(1, a, sizeof a));
}

static const char *difference(struct gpsh_team_arguments a, struct gpsh_team_arguments b)
{
    static char text[160];
    gpsh_team_tell_difference(&a, 3, &b, 5, text, sizeof text);
    return text;
}

Test(team_split, difference__says_what_and_both_values)
{
    const struct gpsh_team_arguments strided = {GPSH_SPLIT_STRIDED, {0, 2, 4}};
    const struct gpsh_team_arguments rows = {GPSH_SPLIT_ROWS, {3}};
    cr_expect_str_eq(
        difference(strided, (struct gpsh_team_arguments){GPSH_SPLIT_STRIDED, {0, 1, 3}}),
        "PE 3 passes stride 2 and PE 5 stride 1");
    cr_expect_str_eq(
        difference(strided, (struct gpsh_team_arguments){GPSH_SPLIT_STRIDED, {0, 2, 3}}),
        "PE 3 passes size 4 and PE 5 size 3");
    cr_expect_str_eq(difference(rows, (struct gpsh_team_arguments){GPSH_SPLIT_ROWS, {4}}),
                     "PE 3 passes xrange 3 and PE 5 xrange 4");
    cr_expect_str_eq(difference(strided, rows),
                     "PE 3 calls gpushmem_team_split_strided and PE 5 gpushmem_team_split_2d");
}
