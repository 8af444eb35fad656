// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>

#include "bootstrap/tcp_tree.h"

Test(tcp_end, nothing_ordered__nothing_due)
{
    struct gpsh_tcp_end end = {.ordered = false};
    cr_assert_eq(gpsh_tcp_end_step(&end), -1);
}

Test(tcp_end, failure_then_exit__ends_by_exit)
{
    struct gpsh_tcp_end end = {.ordered = false};
    cr_assert(gpsh_tcp_end_order(&end, false, 1));
    cr_assert(gpsh_tcp_end_order(&end, true, 17), "the failure was the exit of that PE");
    cr_assert(end.by_exit && end.status == 17);
    cr_assert_not(gpsh_tcp_end_order(&end, true, 18));
    cr_assert_not(gpsh_tcp_end_order(&end, false, 1));
    cr_assert(end.by_exit && end.status == 17);
    cr_assert_gt(gpsh_tcp_end_step(&end), 0, "others are told first");
}

// The program is on its way out by the signal.
Test(tcp_end, exit_after_the_signal__has_no_effect)
{
    struct gpsh_tcp_end end = {.ordered = true, .steps = 1};
    cr_assert_not(gpsh_tcp_end_order(&end, true, 17));
    cr_assert_not(end.by_exit);
}
