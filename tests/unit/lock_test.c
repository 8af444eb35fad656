// SPDX-License-Identifier: BSD-3-Clause
// A wait for a lock that ends in the moment in which the turn comes.
#define _POSIX_C_SOURCE 200809L
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "api/wait.h"
#include "core/error.h"
#include "gpushmem/gpushmem.h"

enum { TAIL, NODE }; // the words of a lock

static bool turn_comes;

int __wrap_gpsh_wait_int32_ge(const struct gpsh_wait_reason *reason, const int32_t *word,
                              int32_t value);

int __wrap_gpsh_wait_int32_ge(const struct gpsh_wait_reason *reason, const int32_t *word,
                              int32_t value)
{
    cr_assert_lt(*word, value, "there is nothing to wait for");
    if (turn_comes)
        __atomic_fetch_and((uint32_t *)(uintptr_t)word, ~(UINT32_C(1) << 31), __ATOMIC_SEQ_CST);
    return gpsh_fail(GPUSHMEM_ERR_TIMEOUT, "the wait was given up");
}

// As if this PE, the only one, stood behind another.
static int set_lock_behind(uint32_t pe, long **lock)
{
    setenv("GPUSHMEM_BOOTSTRAP", "single", 1);
    setenv("GPUSHMEM_HEAP_SIZE", "1M", 1);
    cr_assert_eq(gpushmem_init(), 0, "%s", gpushmem_last_error());
    *lock = gpushmem_calloc(1, sizeof **lock);
    cr_assert_not_null(*lock);
    ((uint32_t *)(void *)*lock)[TAIL] = pe + 1;
    return gpushmem_set_lock(*lock);
}

Test(lock, gpushmem_set_lock__turn_comes_as_the_wait_ends__has_the_lock)
{
    long *lock;
    turn_comes = true;
    cr_assert_eq(set_lock_behind(0, &lock), 0, "%s", gpushmem_last_error());
    cr_assert_eq(gpushmem_set_lock(lock), GPUSHMEM_ERR_STATE, "it has it already");
}

Test(lock, gpushmem_set_lock__wait_ends__keeps_its_place)
{
    long *lock;
    cr_assert_eq(set_lock_behind(0, &lock), GPUSHMEM_ERR_TIMEOUT);
    cr_assert(strstr(gpushmem_last_error(), "keeps its place in the queue"));
    cr_assert_eq(gpushmem_clear_lock(lock), GPUSHMEM_ERR_STATE, "it does not have it");
    turn_comes = true;
    cr_assert_eq(gpushmem_set_lock(lock), 0, "%s", gpushmem_last_error());
}

Test(lock, gpushmem_set_lock__pe_in_front_cannot_be_told__keeps_its_place)
{
    long *lock;
    cr_assert_eq(set_lock_behind(7, &lock), GPUSHMEM_ERR_PE);
    cr_assert(strstr(gpushmem_last_error(), "keeps its place in the queue"), "%s",
              gpushmem_last_error());
    cr_assert_eq(gpushmem_set_lock(lock), GPUSHMEM_ERR_TIMEOUT, "%s", gpushmem_last_error());
    turn_comes = true;
    cr_assert_eq(gpushmem_set_lock(lock), 0, "%s", gpushmem_last_error());
}
