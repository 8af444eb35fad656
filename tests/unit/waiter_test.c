// SPDX-License-Identifier: BSD-3-Clause
// How often a wait does what costs something: with a core of its own, whether the hooks serve peers
// (then they run eight times as often) or not.
#include <criterion/criterion.h>
#include <stdbool.h>
#include <time.h>

#include "progress/cores.h"
#include "progress/waiter.h"

enum { STEPS = 4096 };

static int hook_runs, moves, naps;

void __wrap_gpsh_cores_part(void);
void __wrap_gpsh_cores_part(void)
{
    moves++;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)time, (void)left;
    naps++;
    return 0;
}

static bool idle_hook(void)
{
    hook_runs++;
    return false;
}

// One that has lasted for long already by the clock, so that it may doze.
static void wait_for(int steps, bool serves_peers)
{
    struct gpsh_waiter waiter = {.what = "the test", .began_ns = 1};
    gpsh_waiter_serve(serves_peers);
    gpsh_waiter_share(false);
    gpsh_waiter_drive(idle_hook);
    for (int i = 0; i < steps; i++)
        cr_assert_eq(gpsh_waiter_step(&waiter), 0);
}

Test(waiter, core_of_its_own__hooks_every_64_steps_one_move_a_nap_every_1024)
{
    wait_for(STEPS, false);
    cr_expect_eq(hook_runs, STEPS / 64);
    cr_expect_eq(moves, 1);
    cr_expect_eq(naps, STEPS / 1024);
}

Test(waiter, hooks_serve_peers__run_every_8_steps_and_all_else_is_as_often)
{
    wait_for(STEPS, true);
    cr_expect_eq(hook_runs, STEPS / 8);
    cr_expect_eq(moves, 1, "looked %d times for another core", moves);
    cr_expect_eq(naps, STEPS / 1024);
}
