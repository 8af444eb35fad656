// SPDX-License-Identifier: BSD-3-Clause
// The kernels' table of teams, in memory that counts what it gives.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "job/job.h"
#include "proxy/device_teams.h"

enum { PES = 131072, SLOT = 7, NODE = 8 };

static size_t given, most_given;
static struct gpsh_device_memory memory;
static int32_t pes[PES], starts[PES / NODE + 1];

static void *give(size_t bytes)
{
    if (given + bytes > most_given)
        return NULL;
    given += bytes;
    return calloc(1, bytes);
}

static void take(void *block, size_t bytes)
{
    given -= bytes;
    free(block);
}

static int write_there(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return 0;
}

static void begin(void)
{
    memory = (struct gpsh_device_memory){.host_alloc = give,
                                         .host_free = take,
                                         .device_alloc = give,
                                         .device_free = take,
                                         .device_write = write_there};
    most_given = SIZE_MAX / 2;
    gpsh_job_state.n_pes = PES;
    gpsh_settings_state.teams = GPUSHMEM_TEAM_SLOTS;
    gpsh_settings_state.team_memory = 32 << 20;
    gpsh_device_teams_init();
    cr_assert_eq(gpsh_device_teams_make(&memory), 0);
    for (int i = 0; i < PES; i++)
        pes[i] = PES - 1 - i;
    for (int i = 0; i <= PES / NODE; i++)
        starts[i] = NODE * i;
}

static void end(void)
{
    gpsh_device_teams_unmake();
    cr_assert_eq(given, 0);
}

TestSuite(device_teams, .init = begin, .fini = end);

static int set(int n, int nodes)
{
    const struct gpsh_device_team team = {
        .team = SLOT, .n = n, .pes = pes, .nodes = {.n = nodes, .starts = starts}};
    return gpsh_device_teams_set(SLOT, &team);
}

static void expect(int n, int nodes)
{
    const struct gpushmem_dev_team *entry = &gpsh_device_teams_table()[SLOT];
    cr_assert(entry->team == SLOT && entry->n == n);
    cr_assert_eq(memcmp(entry->pes, pes, (size_t)n * sizeof *pes), 0);
    cr_assert_eq(entry->nodes != NULL, nodes > 0);
    if (nodes)
        cr_assert_eq(memcmp(entry->nodes->starts, starts, ((size_t)nodes + 1) * sizeof *starts), 0);
}

Test(device_teams, make__of_many_pes__takes_what_few_take)
{
    cr_assert_leq(given, 1 << 20);
}

Test(device_teams, set__more_and_more_members__their_lists_are_there)
{
    static const int sizes[][2] = {{2, 0}, {64, 64}, {65, 63}, {65, 64}, {4000, 500}, {3, 2}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        cr_assert_eq(set(sizes[i][0], sizes[i][1]), 0);
        expect(sizes[i][0], sizes[i][1]);
        cr_assert_eq(gpsh_device_teams_set(SLOT, NULL), 0);
    }
}

Test(device_teams, set__again_and_again__takes_no_more)
{
    cr_assert_eq(set(PES, PES / NODE), 0);
    expect(PES, PES / NODE);
    size_t before = given;
    for (int n = 1; n <= PES; n *= 2) {
        cr_assert_eq(gpsh_device_teams_set(SLOT, NULL), 0);
        cr_assert_eq(set(n, n / NODE), 0);
        expect(n, n / NODE);
    }
    cr_assert_eq(given, before);
}

Test(device_teams, set__no_memory__fails_and_a_smaller_one_does_not)
{
    struct gpsh_device_team_view view;
    most_given = given + 1000;
    cr_assert_eq(set(PES, 0), GPUSHMEM_ERR_NO_MEMORY);
    cr_assert(gpsh_device_teams_view(SLOT, &view) && !view.entry.pes);
    cr_assert_eq(gpsh_device_teams_set(SLOT, NULL), 0);
    cr_assert_eq(set(64, 8), 0);
    expect(64, 8);
}
