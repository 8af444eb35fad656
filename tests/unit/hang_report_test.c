// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>

#include "core/team_name.h"
#include "observe/hang_report.h"

enum { PES = 6, BYTES = 640 };

static char said[BYTES];

static struct gpsh_pe_view waits(enum gpsh_awaited awaited, uint64_t number, int pe)
{
    struct gpsh_pe_view view = {GPSH_PE_WAITS,
                                {.since_ns = 5,
                                 .awaited = (int)awaited,
                                 .number = number,
                                 .team = 2,
                                 .pe = pe,
                                 .what = "call",
                                 .text = " for a reason"}};
    return view;
}

static const char *hang_report(const struct gpsh_pe_view views[PES])
{
    return gpsh_hang_report(views, PES, said, sizeof said) ? said : "nothing";
}

Test(hang_report, gpsh_hang_report__nobody_waits__says_nothing)
{
    struct gpsh_pe_view views[PES] = {{GPSH_PE_BUSY, {0}}, {GPSH_PE_ENDED, {0}}};
    cr_assert_str_eq(hang_report(views), "nothing");
    cr_assert_str_eq(said, "");
}

Test(hang_report, gpsh_hang_report__pes_before_a_barrier__names_them_and_what_one_does)
{
    struct gpsh_pe_view views[PES];
    for (int pe = 0; pe < PES; pe++)
        views[pe] = waits(GPSH_AWAITED_BARRIER, 17, -1);
    views[1] = waits(GPSH_AWAITED_UNKNOWN, 0, -1);
    views[4] = waits(GPSH_AWAITED_BARRIER, 16, -1);
    cr_assert_str_eq(hang_report(views),
                     "PEs 1,4 have not reached barrier 17 (call); PEs 0,2-3,5 wait "
                     "for them. PE 1 is in call, waiting for a reason");
}

Test(hang_report, gpsh_hang_report__pe_of_another_host__is_not_called_late)
{
    struct gpsh_pe_view views[PES];
    for (int pe = 0; pe < PES; pe++)
        views[pe] = waits(GPSH_AWAITED_BARRIER, 3, -1);
    views[5].state = GPSH_PE_UNSEEN;
    cr_assert_str_eq(hang_report(views),
                     "PEs 0-4 have all reached barrier 3 (call), and wait; of PE 5 "
                     "nothing is known on this host: look there");
}

Test(hang_report, gpsh_hang_report__all_in_the_barrier__an_operation_is_stuck)
{
    struct gpsh_pe_view views[PES];
    for (int pe = 0; pe < PES; pe++)
        views[pe] = waits(GPSH_AWAITED_BARRIER, 3, -1);
    cr_assert_str_eq(hang_report(views),
                     "PEs 0-5 have all reached barrier 3 (call), and still wait for "
                     "each other: an operation between them is lost or stuck");
}

Test(hang_report, gpsh_hang_report__pe_in_a_kernel__is_late_and_waits_for_nobody)
{
    struct gpsh_pe_view views[PES];
    for (int pe = 0; pe < PES; pe++)
        views[pe] = waits(GPSH_AWAITED_BARRIER, 17, -1);
    views[2] = waits(GPSH_AWAITED_KERNEL, 0, -1);
    views[2].state = GPSH_PE_KERNEL;
    cr_assert_str_eq(hang_report(views),
                     "PE 2 has not reached barrier 17 (call); PEs 0-1,3-5 wait for "
                     "it. PE 2 is in call, waiting for a reason");
    for (int pe = 0; pe < PES; pe++)
        views[pe].state = GPSH_PE_KERNEL;
    cr_assert_str_eq(hang_report(views), "nothing");
}

// In rounds PE 0 waits for PE 5, which waits for PE 4 itself.
Test(hang_report, gpsh_hang_report__team__names_who_is_awaited_and_is_not_there)
{
    struct gpsh_pe_view views[PES] = {waits(GPSH_AWAITED_TEAM, 9, 5)};
    views[5] = waits(GPSH_AWAITED_TEAM, 9, 4);
    views[4].state = GPSH_PE_ENDED;
    cr_assert_str_eq(
        hang_report(views),
        "PE 4 has not reached operation 9 of GPUSHMEM_TEAM_NODE (call); PEs 0,5 wait for it. PE 4 "
        "has ended without gpushmem_finalize");
}

Test(hang_report, gpsh_team_name__handles__predefined_ones_by_name_others_by_number)
{
    static const struct {
        gpushmem_team_t team;
        const char *name;
    } rows[] = {{GPUSHMEM_TEAM_WORLD, "GPUSHMEM_TEAM_WORLD"},
                {GPUSHMEM_TEAM_SHARED, "GPUSHMEM_TEAM_SHARED"},
                {GPUSHMEM_TEAM_NODE, "GPUSHMEM_TEAM_NODE"},
                {GPUSHMEM_TEAM_SAME_RANK, "GPUSHMEM_TEAM_SAME_RANK"},
                {GPUSHMEM_TEAM_GPU_LEADERS + 1, "team 6"},
                {GPUSHMEM_TEAM_INVALID, "team -1"},
                {INT32_MIN, "team -2147483648"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect_str_eq(gpsh_team_name(rows[i].team).text, rows[i].name);
}

Test(hang_report, gpsh_hang_report__words_only__tells_the_longest)
{
    struct gpsh_pe_view views[PES] = {{GPSH_PE_BUSY, {0}}};
    views[2] = waits(GPSH_AWAITED_UNKNOWN, 0, -1);
    views[3] = waits(GPSH_AWAITED_UNKNOWN, 0, -1);
    views[3].wait.since_ns = 4;
    cr_assert_str_eq(hang_report(views),
                     "PE 3 is in call, waiting for a reason; PEs 2-3 are in waits that do not end, "
                     "this is the longest; PE 0 is in no wait of the library");
}

Test(hang_report, gpsh_hang_report__pes_before_init__are_named_before_others)
{
    struct gpsh_pe_view views[PES] = {{GPSH_PE_BUSY, {0}}, {GPSH_PE_ENDED, {0}}};
    for (int pe = 2; pe < PES; pe++)
        views[pe] = waits(GPSH_AWAITED_INIT, 0, -1);
    cr_expect_str_eq(hang_report(views),
                     "PE 1 has ended without gpushmem_init; PEs 2-5 wait for it in there");
    views[4].state = views[5].state = GPSH_PE_ABSENT;
    cr_expect_str_eq(hang_report(views),
                     "PEs 4-5 have not called gpushmem_init; PEs 2-3 wait for them in there");
    views[1].state = GPSH_PE_UNSEEN;
    cr_expect_str_eq(hang_report(views),
                     "PEs 4-5 have not called gpushmem_init; PEs 2-3 wait for them in there; of PE "
                     "1 nothing is known on this host: look there");
    views[4].state = views[5].state = GPSH_PE_UNSEEN;
    cr_expect_str_eq(hang_report(views),
                     "PE 0 is at work in gpushmem_init; PEs 2-3 wait for it in "
                     "there; of PEs 1,4-5 nothing is known on this host: look there");
    views[0].state = GPSH_PE_UNSEEN;
    cr_expect_str_eq(hang_report(views),
                     "PEs 2-3 wait in gpushmem_init; of PEs 0-1,4-5 nothing is known "
                     "on this host: look there");
    for (int pe = 0; pe < PES; pe++)
        views[pe] = waits(GPSH_AWAITED_INIT, 0, -1);
    cr_expect_str_eq(hang_report(views),
                     "PEs 0-5 wait in gpushmem_init for each other: the launcher does "
                     "not bring them together");
}

Test(hang_report, gpsh_hang_report__little_room__is_cut)
{
    struct gpsh_pe_view views[PES] = {waits(GPSH_AWAITED_PE, 0, 1)};
    char small[12];
    cr_assert(gpsh_hang_report(views, PES, small, sizeof small));
    cr_assert_str_eq(small, "PE 0 is in ");
}
