// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // cpu_set_t
#include <criterion/criterion.h>
#include <sched.h>

#include "core/bell.h"
#include "progress/cores.h"

static cpu_set_t cpus(int first, int n)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < n; i++)
        CPU_SET(first + i, &set);
    return set;
}

Test(cores, are_few__free_pes__are_counted_against_all_cpus)
{
    const cpu_set_t masks[3] = {cpus(0, 2), cpus(0, 2), cpus(0, 2)};
    cr_expect_not(gpsh_cores_are_few(masks, 1));
    cr_expect_not(gpsh_cores_are_few(masks, 2));
    cr_expect(gpsh_cores_are_few(masks, 3));
}

Test(cores, are_few__pes_bound_to_a_core_each__have_enough)
{
    const cpu_set_t masks[3] = {cpus(5, 1), cpus(0, 1), cpus(7, 1)};
    cr_expect_not(gpsh_cores_are_few(masks, 3));
}

Test(cores, are_few__two_bound_to_one_core__share_it)
{
    const cpu_set_t masks[3] = {cpus(0, 1), cpus(1, 8), cpus(0, 1)};
    cr_expect(gpsh_cores_are_few(masks, 3));
}

Test(cores, are_few__a_socket_with_one_too_many__is_found)
{
    const cpu_set_t masks[4] = {cpus(0, 2), cpus(0, 16), cpus(0, 2), cpus(1, 1)};
    cr_expect(gpsh_cores_are_few(masks, 4));
    cr_expect_not(gpsh_cores_are_few(masks, 3));
}

Test(bell, ring__nobody_listens__rings_not)
{
    struct gpsh_bell bell = {0};
    gpsh_bell_ring(&bell);
    cr_expect_eq(atomic_load(&bell.rung), 0);
}

Test(bell, ring__after_listen_and_before_sleep__ends_the_sleep)
{
    struct gpsh_bell bell = {0};
    uint32_t heard = gpsh_bell_listen(&bell);
    gpsh_bell_ring(&bell);
    cr_expect_neq(atomic_load(&bell.rung), heard, "the kernel compares these two");
    gpsh_bell_sleep(&bell, heard, 5);
    gpsh_bell_leave(&bell);
    gpsh_bell_ring(&bell);
    cr_expect_eq(atomic_load(&bell.rung), heard + 1, "nobody listens any more");
}

// What no ring tells of is found by a look: about every 50 ms in what headers and pages promise.
Test(bell, sleep_ms__many_sleeps__become_longer_up_to_what_is_promised)
{
    const bool soon = true, at_leisure = false;
    cr_expect_eq(gpsh_bell_sleep_ms(0, soon), gpsh_bell_sleep_ms(0, at_leisure));
    cr_expect_lt(gpsh_bell_sleep_ms(0, soon), gpsh_bell_sleep_ms(1, soon));
    cr_expect_leq(gpsh_bell_sleep_ms(~0u, soon), 50);
    cr_expect_gt(gpsh_bell_sleep_ms(~0u, at_leisure), 50);
}
