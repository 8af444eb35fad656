// SPDX-License-Identifier: BSD-3-Clause
#include "comm/sync.h"

#include <stdio.h>

#include "comm/context.h"
#include "memory/word.h"
#include "progress/waiter.h"
#include "proxy/device_side.h"

// How many barriers this PE has entered. It never goes back: a PE may enter the next barrier while
// others are still in this one, so flags that are reset would be lost.
static uint64_t entered;

// What the word of a round says: the number of the barrier, whether the sender has already heard of
// calls that differ, and the digest of its own call. Each PE hears of every other one, directly or
// through others; so if any two calls differ, all PEs know it when the barrier ends.
//   number (32..63) | differs (31) | digest (0..30)
#define WORD_DIFFERS ((uint64_t)1 << 31)

struct meeting {
    uint32_t number; // of the barrier, modulo 2^32
    uint32_t digest;
    bool differs;
};

void gpsh_sync_init(void)
{
    entered = 0;
}

static int announce(int pe, int round, const struct meeting *meeting)
{
    uint64_t word = (uint64_t)meeting->number << 32 | meeting->digest;
    word |= meeting->differs ? WORD_DIFFERS : 0;
    unsigned side = meeting->number % 2;
    char *mapped = gpsh.mapped[GPSH_CONTROL][pe];
    if (mapped != NULL) {
        struct gpsh_control *control = (struct gpsh_control *)(void *)mapped;
        // Row "sync": what this PE stored before is visible to the PE that sees the number (acquire
        // load in arrival).
        atomic_store_explicit(&control->arrived[round].words[side], word, memory_order_release);
        return 0;
    }
    // A signal: where the network keeps no order of its own, it still cannot land before, and then
    // be overwritten by, the number of an earlier barrier.
    const struct gpsh_op op = {
        .kind = GPSH_OP_PUT_SIGNAL,
        .region = GPSH_CONTROL,
        .pe = pe,
        .signal =
            (uint64_t)((char *)&gpsh.control->arrived[round].words[side] - (char *)gpsh.control),
        .operand = word,
    };
    return gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_SOURCE);
}

// The number of a word is `number` or a later one.
static bool has_come(uint64_t word, uint32_t number)
{
    return (int32_t)((uint32_t)(word >> 32) - number) >= 0;
}

// Who has not entered: in round 0 each PE tells the one after it. Those whose word lies on another
// node are not known.
static void missing(const void *subject, char *text, size_t bytes)
{
    enum { MOST_NAMED = 8 };
    const struct meeting *meeting = subject;
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
        else if (!has_come(atomic_load_explicit(&control->arrived[0].words[meeting->number % 2],
                                                memory_order_relaxed),
                           meeting->number) &&
                 ++found <= MOST_NAMED)
            used += (size_t)snprintf(text + used, bytes - used, "%s%d",
                                     found == 1 ? " for PE " : ", ", pe);
    }
    if (found > MOST_NAMED)
        snprintf(text + used, bytes - used, " and %d more", found - MOST_NAMED);
    else if (!found && unknown)
        snprintf(text, bytes, " for PEs of other nodes");
}

// Whether the word of this barrier is there, or that of the next: a PE whose wait was given up may
// never have sent the one of this. Then nothing is known about its call.
static bool arrival(int round, struct meeting *meeting)
{
    _Atomic uint64_t *words = gpsh.control->arrived[round].words;
    uint32_t number = meeting->number;
    uint64_t word = atomic_load_explicit(&words[number % 2], memory_order_acquire);
    if (!has_come(word, number)) {
        uint64_t later = atomic_load_explicit(&words[(number + 1) % 2], memory_order_acquire);
        if (!has_come(later, number + 1))
            return false;
        word = atomic_load_explicit(&words[number % 2], memory_order_acquire);
        if (!has_come(word, number))
            return true;
    }
    meeting->differs |=
        (word & WORD_DIFFERS) != 0 || (word & (WORD_DIFFERS - 1)) != meeting->digest;
    return true;
}

static int await(int round, struct meeting *meeting, const char *what)
{
    struct gpsh_waiter waiter = GPSH_WAITER(what);
    waiter.for_all = true;
    waiter.about = missing;
    waiter.subject = meeting;
    while (!arrival(round, meeting)) {
        int status = gpsh_waiter_step(&waiter);
        if (status < 0)
            return status;
    }
    return 0;
}

// Dissemination barrier: D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier
// synchronization", 1988. After round r a PE knows of the 2^(r+1) PEs up to and including itself.
// *differs: some PEs are in another call, or have other arguments.
static int meet(enum gpsh_collective_kind kind, uint64_t a, uint64_t b, const char *what,
                bool *differs)
{
    struct gpsh_collective call = {.number = ++entered, .kind = kind, .arguments = {a, b}};
    struct meeting meeting = {.number = (uint32_t)entered, .digest = gpsh_collective_digest(&call)};
    int n = gpsh.n_pes;
    if (kind != GPSH_CALL_COMPARE) // which wants to see the calls that differ
        gpsh.control->collective = call;
    for (int round = 0, distance = 1; distance < n; ++round, distance *= 2) {
        int status = announce((gpsh.my_pe + distance) % n, round, &meeting);
        if (status == 0)
            status = await(round, &meeting, what);
        if (status < 0)
            return status;
    }
    gpsh_acquire_remote();
    *differs = meeting.differs;
    return 0;
}

// Every PE has found a difference, and comes here. None overwrites its call before all have looked.
static int tell_difference(void)
{
    bool ignored;
    char sentence[512];
    int status = gpsh_collective_compare();
    snprintf(sentence, sizeof sentence, "%s", gpsh_last_error());
    int left = meet(GPSH_CALL_COMPARE, 0, 0, "comparing collective calls", &ignored);
    if (left < 0)
        return left;
    return gpsh_fail(status < 0 ? status : GPUSHMEM_ERR_ASYMMETRY, "%s", sentence);
}

int gpsh_sync_as(enum gpsh_collective_kind kind, uint64_t a, uint64_t b, const char *what)
{
    bool differs = false;
    int status = meet(kind, a, b, what, &differs);
    return GPSH_UNLIKELY(status == 0 && differs) ? tell_difference() : status;
}

int gpsh_barrier_as(enum gpsh_collective_kind kind, uint64_t a, uint64_t b, const char *what)
{
    int status = gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES);
    int device = gpsh_device_side_quiet();
    status = status < 0 ? status : device;
    int arrived = gpsh_sync_as(kind, a, b, what);
    // That the PEs do different things explains whatever else went wrong.
    return status < 0 && arrived != GPUSHMEM_ERR_ASYMMETRY ? status : arrived;
}
