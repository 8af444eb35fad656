// SPDX-License-Identifier: BSD-3-Clause
// PE 3 of 5, on nodes of three and two PEs, in WORLD: whom a kernel there waits for.
#include <criterion/criterion.h>
#include <string.h>

#include "core/config.h"
#include "gpu/device_memory.h"
#include "job/job.h"
#include "memory/team_scratch.h"
#include "proxy/device_teams.h"
#include "proxy/kernel_report.h"

// KERNELS, STREAMS: where its scratch is in what is reserved.
enum { PES = 5, ME = 3, KERNELS = 2 << 20, STREAMS = 4 << 20 };

static void begin(bool direct)
{
    static const int32_t pes[PES] = {0, 1, 2, 3, 4};
    static int32_t starts[] = {0, 3, 5};
    const struct gpsh_device_team world = {
        .my_rank = ME,
        .n = PES,
        .direct = direct,
        .checked = true,
        .scratch = {KERNELS, STREAMS, PES},
        .pes = pes,
        .nodes = {.n = direct ? 0 : 2, .mine = 1, .held = 3, .starts = starts}};
    gpsh_job_state.n_pes = gpsh_job_state.boot->n_pes = PES;
    gpsh_settings_state.teams = 4;
    gpsh_settings_state.team_memory = 16 << 20;
    gpsh_device_teams_init();
    cr_assert_eq(gpsh_device_teams_set(0, &world), 0);
    cr_assert_eq(gpsh_device_teams_make(&gpsh_device_memory_host), 0);
}

static void expect(uint64_t at, const char *whom)
{
    char text[384];
    gpsh_kernel_awaited(at, &(struct gpsh_text){text, sizeof text, 0});
    const char *found = strstr(text, ", for PE ");
    cr_expect_str_eq(found ? found : "", whom, "%s", text);
}

// In what streams have of the team.
static uint64_t flag(int kind, int block, int rank)
{
    int row = kind * GPUSHMEM_COLL_STREAM_BLOCKS + block;
    return STREAMS + GPUSHMEM_COLL_FLAGS_AT +
           sizeof(uint64_t) * ((uint64_t)row * gpushmem_coll_row(PES) + (uint64_t)rank);
}

Test(kernel_awaited, flags_of_a_team__the_rank_of_the_row)
{
    begin(true);
    expect(flag(GPUSHMEM_COLL_ENTRY, 0, 4), ", for PE 4, rank 4 of 5");
    expect(flag(GPUSHMEM_COLL_EXIT, 63, 0), ", for PE 0, rank 0 of 5");
    expect(flag(GPUSHMEM_COLL_PROGRESS, 1, 2), ", for PE 2, rank 2 of 5");
    gpsh_device_teams_unmake();
}

// Those of rank 1's share come from the node before, from its holder there, or from behind.
Test(kernel_awaited, pieces_by_nodes__nobody_is_named)
{
    begin(false);
    expect(flag(GPUSHMEM_COLL_PROGRESS, 1, 1), "");
    expect(flag(GPUSHMEM_COLL_PROGRESS, GPUSHMEM_COLL_NODE_BLOCKS, ME), "");
    expect(flag(GPUSHMEM_COLL_EXIT, 1, 4), ", for PE 4, rank 4 of 5");
    gpsh_device_teams_unmake();
}

Test(kernel_awaited, rounds_of_a_team_over_nodes__the_member_before_or_another)
{
    begin(false);
    uint64_t word = STREAMS + GPUSHMEM_COLL_SYNC_AT + 2 * sizeof(uint64_t);
    expect(word, ", for PE 4, rank 4 of 5, or a member that it waits for");
    gpsh_device_teams_unmake();
}

Test(kernel_awaited, calls_that_are_compared__the_rank_of_the_call)
{
    begin(true);
    const size_t size = sizeof(struct gpushmem_coll_call);
    uint64_t calls = KERNELS + gpushmem_coll_calls_at(PES);
    for (int odd = 0; odd < 2; odd++) {
        expect(calls + (size_t)(odd * PES) * size + size - 8, ", for PE 0, rank 0 of 5");
        expect(calls + (size_t)(odd * PES + 4) * size + size - 8, ", for PE 4, rank 4 of 5");
    }
    gpsh_device_teams_unmake();
}
