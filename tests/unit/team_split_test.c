// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <limits.h>

#include "comm/team_split.h"
#include "core/config.h"
#include "core/error.h"
#include "job/job.h"
#include "memory/team_scratch.h"

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

// ---- Where new teams are ----

static struct gpsh_team_free everything(void)
{
    struct gpsh_team_free all;
    gpsh_settings_state.team_memory = 64 << 20;
    gpsh_settings_state.teams = GPUSHMEM_TEAM_SLOTS;
    memset(&all, 0xff, sizeof all);
    return all;
}

static void take(struct gpsh_team_free *free, int first, int n)
{
    for (int i = first; i < first + n; i++)
        free->units[i / 64] &= ~((uint64_t)1 << i % 64);
}

Test(team_split, place__the_lowest_slot_and_units__that_are_free)
{
    struct gpsh_team_free all = everything();
    all.slots[0] = 0;
    all.slots[1] = 32;
    take(&all, 0, 3);
    take(&all, 10, 1); // what is between is too short
    struct gpsh_team_place place = gpsh_team_place(&all, 8);
    cr_expect_eq(place.slot, 69);
    cr_expect_eq(place.has, GPSH_TEAM_KERNELS | GPSH_TEAM_STREAMS);
    cr_expect_eq(place.first, 11);
    cr_expect_eq(place.units, 27);
}

Test(team_split, place__little_is_left__kernels_only_and_then_nothing)
{
    struct gpsh_team_free all = everything();
    int streams = 0, kernels = 0;
    struct gpsh_team_place place = gpsh_team_place(&all, 8);
    for (; place.has; place = gpsh_team_place(&all, 8)) {
        cr_assert(place.first >= 0 && place.first + place.units <= GPSH_SCRATCH_UNITS);
        take(&all, place.first, place.units);
        streams += (place.has & GPSH_TEAM_STREAMS) != 0;
        kernels += place.has == GPSH_TEAM_KERNELS;
    }
    cr_expect_eq(streams, 16);
    cr_expect_eq(kernels, GPSH_SCRATCH_UNITS - 16 * 27);
    cr_expect(place.slot == 0 && place.units == 0, "a team of the host's, in slot %d", place.slot);
}

Test(team_split, place__no_slot__is_told)
{
    struct gpsh_team_free all = everything();
    memset(all.slots, 0, sizeof all.slots);
    cr_expect_eq(gpsh_team_place(&all, 8).slot, -1);
}

// What is reserved does not depend on the number of PEs.
Test(team_split, place__131072_members__ten_such_teams_for_kernels)
{
    struct gpsh_team_free all = everything();
    gpsh_job_state.n_pes = 131072;
    cr_expect_leq(gpsh_heap_reserved(gpsh_settings()), 64 << 20);
    cr_expect_leq(gpsh_control_total(131072, gpsh_settings()), 33 << 20);
    int teams = 0;
    for (struct gpsh_team_place place; (place = gpsh_team_place(&all, 131072)).units; teams++) {
        cr_expect(place.has == GPSH_TEAM_KERNELS && place.units == 49, "%d", place.units);
        take(&all, place.first, place.units);
        if (teams < 5)
            cr_expect_eq(gpsh_team_place(&all, 8).has, GPSH_TEAM_KERNELS | GPSH_TEAM_STREAMS);
    }
    cr_expect_eq(teams, 10);
}

Test(team_split, join__what_is_free_on_all)
{
    struct gpsh_team_free all = everything(), one = everything();
    one.slots[2] = 6;
    take(&one, 100, 2);
    gpsh_team_free_join(&all, &one);
    cr_expect(all.slots[2] == 6 && all.slots[1] == UINT64_MAX);
    cr_expect_eq(all.units[1], ~((uint64_t)3 << 36));
}

// A large one has the room of several slots, which follow each other.
Test(team_split, place__slots__as_many_as_have_room_for_two_counters_of_each)
{
    static const struct {
        int pes, n, slots;
    } rows[] = {{8, 8, 1},         {252, 252, 1},     {1000, 252, 1},
                {1000, 253, 2},    {1000, 1000, 4},   {16384, 8192, 33},
                {131072, 2044, 1}, {131072, 2045, 2}, {131072, 131072, GPSH_TEAM_MOST_SLOTS}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gpsh_team_free all = everything();
        gpsh_job_state.n_pes = rows[i].pes;
        all.slots[0] = 0xf0; // four, and then none
        all.slots[1] = 0;
        struct gpsh_team_place place = gpsh_team_place(&all, rows[i].n);
        cr_expect_eq(place.slots, rows[i].slots, "row %zu: %d", i, place.slots);
        cr_expect_eq(place.slot, rows[i].slots <= 4 ? 4 : 128, "row %zu: %d", i, place.slot);
        cr_expect_geq((size_t)place.slots * gpsh_slot_pages(rows[i].pes),
                      sizeof(struct gpsh_team_shown) + 16 * (size_t)rows[i].n);
    }
}

// What a slot shows is in pages that nobody else has, each half a page further.
Test(team_split, control_region__pages_of_slots__follow_the_words_of_all)
{
    const int sizes[] = {1, 8, 473, 16384, 131072};
    struct gpsh_settings settings = {.teams = 12};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int n = sizes[i];
        uint64_t at = gpsh_control_shown(n, &settings, 0);
        cr_expect_geq(at, gpsh_control_team(n, 12));
        cr_expect_eq((at + sizeof(struct gpsh_team_shown)) % 4096, 2048);
        for (int slot = 0; slot < 12; slot++) {
            size_t pages =
                slot < GPUSHMEM_TEAM_PREDEFINED ? gpsh_team_pages(n) : gpsh_slot_pages(n);
            at += 2 * pages;
            cr_expect_eq(gpsh_control_shown(n, &settings, slot + 1), at, "%d PEs, slot %d", n,
                         slot);
        }
        cr_expect_eq(gpsh_control_vote(n, &settings), at);
    }
}
