// SPDX-License-Identifier: BSD-3-Clause
#include "comm/sync.h"

#include <stdio.h>

#include "api/argument.h"
#include "comm/context.h"
#include "memory/word.h"
#include "progress/waiter.h"
#include "proxy/device_side.h"

// How many barriers this PE has entered. It never goes back: a PE may enter the next barrier while
// others are still in this one, so flags that are reset would be lost.
static uint64_t entered;

void gpsh_sync_init(void)
{
    entered = 0;
}

static int announce(int pe, int round, uint64_t sequence)
{
    char *mapped = gpsh.mapped[GPSH_CONTROL][pe];
    if (mapped != NULL) {
        struct gpsh_control *control = (struct gpsh_control *)(void *)mapped;
        // Row "sync": what this PE stored before is visible to who sees the number (acquire load in
        // await).
        atomic_store_explicit(&control->arrived[round].sequence, sequence, memory_order_release);
        return 0;
    }
    const struct gpsh_op op = {
        .kind = GPSH_OP_PUT,
        .flags = GPSH_OP_CAPTURE,
        .region = GPSH_CONTROL,
        .pe = pe,
        .local = (char *)&sequence,
        .remote = (uint64_t)((char *)&gpsh.control->arrived[round].sequence - (char *)gpsh.control),
        .bytes = sizeof sequence,
    };
    return gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_SOURCE);
}

// Who has not entered: in round 0 each PE tells the one behind it. Those whose word lies on another
// node are not known.
static void missing(const void *unused, char *text, size_t bytes)
{
    enum { MOST_NAMED = 8 };
    int n = gpsh.n_pes, found = 0, unknown = 0;
    size_t used = 0;
    text[0] = '\0';
    for (int pe = 0; pe < n; pe++) {
        const char *mapped = gpsh.mapped[GPSH_CONTROL][(pe + 1) % n];
        const struct gpsh_control *control = (const struct gpsh_control *)(const void *)mapped;
        if (pe == gpsh.my_pe)
            continue;
        if (!mapped)
            unknown++;
        else if (atomic_load_explicit(&control->arrived[0].sequence, memory_order_relaxed) <
                     entered &&
                 ++found <= MOST_NAMED)
            used += (size_t)snprintf(text + used, bytes - used, "%s%d",
                                     found == 1 ? " for PE " : ", ", pe);
    }
    if (found > MOST_NAMED)
        snprintf(text + used, bytes - used, " and %d more", found - MOST_NAMED);
    else if (!found && unknown)
        snprintf(text, bytes, " for PEs of other nodes");
}

static int await(int round, uint64_t sequence, const char *what)
{
    struct gpsh_waiter waiter = GPSH_WAITER(what);
    waiter.for_all = true;
    waiter.about = missing;
    while (atomic_load_explicit(&gpsh.control->arrived[round].sequence, memory_order_acquire) <
           sequence) {
        int status = gpsh_waiter_step(&waiter);
        if (status < 0)
            return status;
    }
    return 0;
}

// Dissemination barrier: D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier
// synchronization", 1988. After round r a PE knows of the 2^(r+1) PEs up to and including itself.
static int sync_as(const char *what)
{
    uint64_t sequence = ++entered;
    int n = gpsh.n_pes;
    for (int round = 0, distance = 1; distance < n; ++round, distance *= 2) {
        int status = announce((gpsh.my_pe + distance) % n, round, sequence);
        if (status == 0)
            status = await(round, sequence, what);
        if (status < 0)
            return status;
    }
    gpsh_acquire_remote();
    return 0;
}

int gpsh_sync_all(void)
{
    return sync_as("gpushmem_sync_all");
}

int gpsh_barrier_all(void)
{
    int status = gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES);
    int device = gpsh_device_side_quiet();
    status = status < 0 ? status : device;
    int arrived = sync_as("gpushmem_barrier_all");
    return status < 0 ? status : arrived;
}

int gpushmem_sync_all(void)
{
    int status = gpsh_check_ready("gpushmem_sync_all");
    return status < 0 ? status : gpsh_sync_all();
}

int gpushmem_barrier_all(void)
{
    int status = gpsh_check_ready("gpushmem_barrier_all");
    return status < 0 ? status : gpsh_barrier_all();
}
