// SPDX-License-Identifier: BSD-3-Clause
// Locks of the job: queues of PEs, first come, first served.
//
// J. M. Mellor-Crummey, M. L. Scott, "Algorithms for scalable synchronization on shared-memory
// multiprocessors", 1991: the list-based queue lock. Each PE waits for a word of its own, so that
// waiting costs the others nothing, and a release tells one PE.
//
// A lock is a long on every PE. Half of it is the tail of the queue, which is in use on one PE
// alone, chosen by the lock's place so that locks spread; the other half is this PE's place in the
// queue. Both are changed by atomics only.
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "api/argument.h"
#include "api/wait.h"
#include "gpushmem/gpushmem.h"
#include "job/job.h"
#include "memory/place.h"

struct lock {
    uint32_t tail; // on the home PE: the last PE of the queue + 1; 0: the lock is free
    uint32_t node;
};
_Static_assert(sizeof(struct lock) == sizeof(long), "a lock is a long");

// The bits of a node; the rest is the next PE of the queue + 1. 0: this PE is not in the queue.
#define NODE_WAITS    (UINT32_C(1) << 31) // cleared by the PE before this one
#define NODE_ENTERED  (UINT32_C(1) << 30)
#define NODE_GIVEN_UP (UINT32_C(1) << 29) // set_lock has failed while it waited
#define NODE_NEXT     (NODE_GIVEN_UP - 1)

static int lock_check(const char *function, const long *lock)
{
    return gpsh_check_words(function, lock, 1, sizeof *lock, GPUSHMEM_CMP_EQ);
}

static int lock_home(const struct lock *lock)
{
    return (int)(gpsh_place_offset(lock) / sizeof *lock % (uint64_t)gpsh_job()->n_pes);
}

// For sentences; `text` has 64 characters.
static const char *lock_name(const void *lock, char *text)
{
    gpsh_place_name(lock, text, 64);
    return text;
}

// ---- This PE's node ----

static int node_swap(struct lock *lock, uint32_t cond, uint32_t value, uint32_t *before)
{
    return gpushmem_uint32_atomic_compare_swap_status(&lock->node, cond, value, gpsh_job()->my_pe,
                                                      before);
}

static int node_set_bits(struct lock *lock, uint32_t bits, uint32_t *before)
{
    return gpushmem_uint32_atomic_fetch_or_status(&lock->node, bits, gpsh_job()->my_pe, before);
}

static int node_clear_bits(struct lock *lock, uint32_t bits)
{
    uint32_t before; // fetched, so that the change is complete
    return gpushmem_uint32_atomic_fetch_and_status(&lock->node, ~bits, gpsh_job()->my_pe, &before);
}

static int node_leave(struct lock *lock)
{
    uint32_t before;
    return gpushmem_uint32_atomic_swap_status(&lock->node, 0, gpsh_job()->my_pe, &before);
}

// ---- set ----

static bool is_lost(int pe)
{
    return pe >= 0 && pe < gpsh_job()->n_pes && atomic_load(&gpsh_job()->peers[pe].error) != 0;
}

// The PE stays in the queue if the wait is given up, behind `front` (-1: not known any more). Its
// turn may have come at that moment.
static int lock_give_up(const char *function, struct lock *lock, int front, int why)
{
    char sentence[512];
    uint32_t before = 0;
    snprintf(sentence, sizeof sentence, "%s", gpushmem_last_error());
    int status = node_set_bits(lock, NODE_GIVEN_UP, &before);
    if (status == 0 && !(before & NODE_WAITS))
        return node_clear_bits(lock, NODE_GIVEN_UP);
    return gpsh_fail(why, "%s: gave up waiting for the lock at %s; %s (%s)", function,
                     lock_name(lock, (char[64]){0}),
                     is_lost(front)
                         ? "the PE in front of this one is lost, and nobody behind it gets it"
                         : "this PE keeps its place in the queue: call it again to wait on",
                     sentence);
}

// A place in the queue, for what is said of a wait.
struct turn {
    const struct lock *lock;
    int before; // the PE in front; -1: not known any more
};

static void turn_about(const void *subject, char *text, size_t bytes)
{
    const struct turn *turn = subject;
    char name[64], before[64] = "";
    if (turn->before >= 0)
        snprintf(before, sizeof before, ", which PE %d has or gets before this PE", turn->before);
    snprintf(text, bytes, " for the lock at %s%s", lock_name(turn->lock, name), before);
}

static int lock_await(const char *function, struct lock *lock, int before)
{
    const struct turn turn = {lock, before};
    const struct gpsh_wait_reason reason = {function, turn_about, &turn, before};
    // the word is negative as long as NODE_WAITS is set
    int status = gpsh_wait_int32_ge(&reason, (const int32_t *)&lock->node, 0);
    return status < 0 ? lock_give_up(function, lock, before, status) : 0;
}

// This PE has a place already.
static int lock_wait_on(const char *function, struct lock *lock, uint32_t node)
{
    if (!(node & NODE_GIVEN_UP))
        return gpsh_fail(GPUSHMEM_ERR_STATE,
                         "%s: this PE has the lock at %s"
                         " already, or another of its threads waits for it; a lock belongs to a "
                         "PE, not to a thread",
                         function, lock_name(lock, (char[64]){0}));
    int status = node_clear_bits(lock, NODE_GIVEN_UP);
    return status < 0 ? status : lock_await(function, lock, -1);
}

static int lock_queue_up(const char *function, struct lock *lock)
{
    uint32_t before, last, me = (uint32_t)gpsh_job()->my_pe;
    int status = gpushmem_uint32_atomic_swap_status(&lock->tail, me + 1, lock_home(lock), &last);
    if (status < 0)
        (void)node_leave(lock); // nobody else can reach that queue through this PE either
    if (status < 0 || last == 0)
        return status;
    // before the last PE can learn whose turn is next
    status = node_set_bits(lock, NODE_WAITS, &before);
    if (status == 0)
        status = gpushmem_uint32_atomic_or(&lock->node, me + 1, (int)last - 1);
    // The PE in front may be lost. This one is in the queue, and others may be behind it already.
    return status < 0 ? lock_give_up(function, lock, (int)last - 1, status)
                      : lock_await(function, lock, (int)last - 1);
}

int gpushmem_set_lock(long *word)
{
    struct lock *lock = (struct lock *)(void *)word;
    uint32_t node = 0;
    int status = lock_check(__func__, word);
    if (status == 0)
        status = node_swap(lock, 0, NODE_ENTERED, &node);
    if (status < 0)
        return status;
    return node == 0 ? lock_queue_up(__func__, lock) : lock_wait_on(__func__, lock, node);
}

// ---- test ----

// The lock may have come to this PE after it gave up waiting.
static int lock_take_late(struct lock *lock, uint32_t node)
{
    if (!(node & NODE_GIVEN_UP) || (node & NODE_WAITS))
        return 1;
    return node_clear_bits(lock, NODE_GIVEN_UP);
}

int gpushmem_test_lock(long *word)
{
    struct lock *lock = (struct lock *)(void *)word;
    uint32_t node = 0, last = 0;
    int status = lock_check(__func__, word);
    if (status == 0)
        status = node_swap(lock, 0, NODE_ENTERED, &node);
    if (status < 0)
        return status;
    if (node != 0)
        return lock_take_late(lock, node);
    status = gpushmem_uint32_atomic_compare_swap_status(
        &lock->tail, 0, (uint32_t)gpsh_job()->my_pe + 1, lock_home(lock), &last);
    if (status == 0 && last == 0)
        return 0;
    int left = node_leave(lock);
    status = status < 0 ? status : left;
    return status < 0 ? status : 1;
}

// ---- clear ----

// *node: with the PE that is next, which may be about to say so; 0: there is none, and the lock is
// free.
static int lock_find_next(struct lock *lock, uint32_t *node)
{
    uint32_t me = (uint32_t)gpsh_job()->my_pe, last = 0;
    if (*node & NODE_NEXT)
        return 0;
    int status =
        gpushmem_uint32_atomic_compare_swap_status(&lock->tail, me + 1, 0, lock_home(lock), &last);
    if (status == 0 && last == me + 1)
        *node = 0;
    if (status < 0 || *node == 0)
        return status;
    status = gpushmem_uint32_wait_until(&lock->node, GPUSHMEM_CMP_NE, *node);
    return status < 0 ? status
                      : gpushmem_uint32_atomic_fetch_status(&lock->node, gpsh_job()->my_pe, node);
}

static int lock_release(struct lock *lock, uint32_t node)
{
    int status = lock_find_next(lock, &node);
    if (status == 0)
        status = node_leave(lock);
    if (status < 0 || !(node & NODE_NEXT))
        return status;
    return gpushmem_uint32_atomic_and(&lock->node, ~NODE_WAITS, (int)(node & NODE_NEXT) - 1);
}

int gpushmem_clear_lock(long *word)
{
    struct lock *lock = (struct lock *)(void *)word;
    uint32_t node = 0;
    int status = lock_check(__func__, word);
    if (status == 0)
        status = gpushmem_uint32_atomic_fetch_status(&lock->node, gpsh_job()->my_pe, &node);
    if (status < 0)
        return status;
    if ((node & (NODE_ENTERED | NODE_WAITS | NODE_GIVEN_UP)) != NODE_ENTERED)
        return gpsh_fail(GPUSHMEM_ERR_STATE, "%s: this PE does not have the lock at %s", __func__,
                         lock_name(lock, (char[64]){0}));
    int quiet = gpushmem_quiet();
    status = lock_release(lock, node); // also if operations were lost: the others go on
    return status < 0 ? status : quiet;
}
