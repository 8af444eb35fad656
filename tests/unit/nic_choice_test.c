// SPDX-License-Identifier: BSD-3-Clause
// Which of a host's NICs a PE takes: the lists of users, and how near they are.
#include <criterion/criterion.h>
#include <string.h>

#include "core/error.h"
#include "core/nic_choice.h"

Test(nic_filter, parse__lists__as_written)
{
    struct gpsh_nic_filter filter;
    cr_assert_eq(gpsh_nic_filter_parse("mlx5_0,mlx5_1:2", &filter), 0);
    cr_assert_eq(gpsh_nic_filter_rank(&filter, "mlx5_0", 1), 0);
    cr_assert_eq(gpsh_nic_filter_rank(&filter, "mlx5_1", 2), 1);
    cr_assert_eq(gpsh_nic_filter_rank(&filter, "mlx5_1", 1), -1);
    cr_assert_eq(gpsh_nic_filter_rank(&filter, "mlx5_2", 1), -1);
    cr_assert_eq(gpsh_nic_filter_parse("^mlx5_0,mlx5_1", &filter), 0);
    cr_assert_eq(gpsh_nic_filter_rank(&filter, "mlx5_1", 1), -1);
    cr_assert_eq(gpsh_nic_filter_rank(&filter, "mlx5_2", 1), 0);
    cr_assert_eq(gpsh_nic_filter_parse("", &filter), 0);
    cr_assert_eq(gpsh_nic_filter_rank(&filter, "mlx5_2", 1), 0);
}

Test(nic_filter, parse__malformed__is_a_setting_error)
{
    static const char *const texts[] = {
        ",", "a,", ",a", "^", "a,^b", "a:", "a:0", "a:256", "a:x", ":1", "^a,,b"};
    struct gpsh_nic_filter filter = {.n = 99};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cr_assert_eq(gpsh_nic_filter_parse(texts[i], &filter), GPUSHMEM_ERR_SETTING, "'%s'",
                     texts[i]);
        cr_assert_eq(filter.n, 99, "'%s' changed the output", texts[i]);
    }
}

#define PORT(r, d, i)                                                                              \
    {                                                                                              \
        .rank = r, .distance = d, .index = i                                                       \
    }

Test(nic_choice, nearest__pes_spread_over_the_equally_near)
{
    int chosen[2];
    for (int pe = 0; pe < 4; pe++) {
        struct gpsh_nic_candidate ports[] = {PORT(0, 4, 0), PORT(0, 1, 1), PORT(0, 4, 2),
                                             PORT(0, 1, 3)};
        cr_assert_eq(gpsh_nic_choose(ports, 4, false, 1, pe, chosen), 1);
        cr_assert_eq(chosen[0], pe % 2 ? 3 : 1);
    }
}

Test(nic_choice, two_rails__each_rail_stays_on_its_cable)
{
    int chosen[2];
    for (int pe = 0; pe < 2; pe++) {
        struct gpsh_nic_candidate ports[] = {PORT(0, 5, 0), PORT(0, 5, 1), PORT(0, 5, 2),
                                             PORT(0, 5, 3)};
        cr_assert_eq(gpsh_nic_choose(ports, 4, false, 2, pe, chosen), 2);
        cr_assert(chosen[0] == pe && chosen[1] == 2 + pe);
    }
}

Test(nic_choice, listed__order_of_the_list_before_distance)
{
    int chosen[2];
    struct gpsh_nic_candidate ports[] = {PORT(1, 0, 0), PORT(0, 4, 1)};
    cr_assert_eq(gpsh_nic_choose(ports, 2, true, 2, 0, chosen), 2);
    cr_assert(chosen[0] == 1 && chosen[1] == 0);
}

Test(nic_choice, fewer_ports_than_rails__all_there_are)
{
    int chosen[8];
    struct gpsh_nic_candidate ports[] = {PORT(0, 0, 0), PORT(0, 4, 1), PORT(0, 4, 2)};
    cr_assert_eq(gpsh_nic_choose(ports, 3, false, 8, 5, chosen), 3);
}

Test(nic_choice, rate__a_slow_port_that_is_nearer__not_taken)
{
    int chosen[2];
    struct gpsh_nic_candidate ports[] = {
        {.distance = 1, .index = 0, .rate = 25000, .ethernet = true},
        {.distance = 3, .index = 1, .rate = 400000}};
    cr_assert_eq(gpsh_nic_choose(ports, 2, false, 1, 0, chosen), 1);
    cr_assert_eq(chosen[0], 1);
}

Test(nic_choice, network__one_for_all_pes_and_rails)
{
    for (int pe = 0; pe < 2; pe++) {
        int chosen[2];
        struct gpsh_nic_candidate ports[] = {
            {.distance = 2, .index = 0, .rate = 200000, .ethernet = true},
            {.distance = 2, .index = 1, .rate = 200000}};
        cr_assert_eq(gpsh_nic_choose(ports, 2, false, 2, pe, chosen), 1);
        cr_assert_eq(chosen[0], 1, "InfiniBand before Ethernet of the same rate");
    }
}

Test(nic_choice, rate__from_the_codes_of_a_port)
{
    cr_assert_eq(gpsh_nic_rate(128, 2), 400000, "NDR, four lanes");
    cr_assert_eq(gpsh_nic_rate(32, 2), 100000);
    cr_assert_eq(gpsh_nic_rate(0, 2), 0);
}
