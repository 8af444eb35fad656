// SPDX-License-Identifier: BSD-3-Clause
#include "comm/sync.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "comm/context.h"
#include "core/cpu.h"
#include "core/text.h"
#include "job/job.h"
#include "memory/control.h"
#include "memory/heap.h"
#include "memory/team_scratch.h"
#include "observe/call.h"
#include "observe/trace.h"
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
#define WORD_DIGEST  (WORD_DIFFERS - 1)

// Of a round: two for barriers, and one for comparing calls.
enum { COMPARE_WORD = 2 };

static inline uint32_t number_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

// Where PEs share cores and are all on one node: PE 0's, and each looks at the words of all others,
// so that every PE has to be scheduled once and not once for each round. Else NULL.
static struct gpsh_bell *bell;
static struct gpsh_control_entry
    *entries; // of all PEs, at PE 0; NULL: they are not mapped, or none

static struct gpsh_control_entry *find_entries(void)
{
    char *first = gpsh_heap()->mapped[GPSH_CONTROL][0];
    int n = gpsh_job()->n_pes;
    return first && n <= GPSH_ENTRIES_MOST ? (void *)(first + gpsh_control_entries(n)) : NULL;
}

// Every word as if the barriers up to this number were over: 32 bits of it may be about to wrap.
void gpsh_sync_init(uint64_t number)
{
    struct gpsh_control *control = gpsh_heap()->control;
    entered = number;
    bell = NULL;
    for (int round = 0; round < GPSH_SYNC_ROUNDS; round++)
        for (int word = 0; word < 3; word++)
            atomic_init(&control->arrived[round].words[word],
                        (word == COMPARE_WORD ? number * 2 : number) << 32);
    entries = find_entries();
    for (int word = 0; entries && word < 2; word++)
        atomic_init(&entries[gpsh_job()->my_pe].words[word], number << 32);
}

void gpsh_sync_share(void)
{
    bool mapped = entries && gpsh_waiter_shares();
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++)
        mapped = mapped && gpsh_heap()->mapped[GPSH_CONTROL][pe];
    if (mapped)
        bell = &((struct gpsh_team_words *)(void *)(gpsh_heap()->mapped[GPSH_CONTROL][0] +
                                                    gpsh_control_team(gpsh_job()->n_pes,
                                                                      GPUSHMEM_TEAM_WORLD)))
                    ->bell;
}

static __attribute__((noinline)) int announce_far(int pe, const _Atomic uint64_t *here,
                                                  uint64_t word, uint8_t flags)
{
    // A signal: where the network keeps no order of its own, it still cannot land before, and then
    // be overwritten by, the number of an earlier barrier.
    const struct gpsh_op op = {
        .kind = GPSH_OP_PUT_SIGNAL,
        .flags = flags,
        .region = GPSH_CONTROL,
        .pe = pe,
        .signal = (uint64_t)((const char *)here - (const char *)gpsh_heap()->control),
        .operand = word,
    };
    return gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_SOURCE);
}

// Writes the word `which` of the round. `flags`: of enum gpsh_op_flag, for a PE of another node.
static inline int announce(int pe, int round, unsigned which, uint64_t word, uint8_t flags)
{
    char *mapped = gpsh_heap()->mapped[GPSH_CONTROL][pe];
    if (GPSH_UNLIKELY(mapped == NULL))
        return announce_far(pe, &gpsh_heap()->control->arrived[round].words[which], word, flags);
    struct gpsh_control *control = (struct gpsh_control *)(void *)mapped;
    // Row "sync": what this PE stored before is visible to the PE that sees the number (acquire
    // load in await).
    atomic_store_explicit(&control->arrived[round].words[which], word, memory_order_release);
    return 0;
}

// The number of a word is `number` or a later one.
static bool has_come(uint64_t word, uint32_t number)
{
    return (int32_t)(number_of(word) - number) >= 0;
}

// Where the PE says that it has entered: in round 0 it tells the one after it. NULL: on another
// node, so that nothing is known.
static const _Atomic uint64_t *entry_words(int pe)
{
    if (bell)
        return entries[pe].words;
    const char *mapped = gpsh_heap()->mapped[GPSH_CONTROL][(pe + 1) % gpsh_job()->n_pes];
    const struct gpsh_control *control = (const struct gpsh_control *)(const void *)mapped;
    return control ? control->arrived[0].words : NULL;
}

// A wait for the words of `pe`, which come after it has heard of others itself.
struct missed {
    const uint64_t *word;
    int pe;
};

enum { MOST_NAMED = 8 };

// " for PE 3", " for PEs 3 and 5", " for PEs 0, 1, 2, 3, 4, 5, 6, 7 and 4 more".
static void name_missing(const int *pes, int n, char *text, size_t bytes)
{
    int named = n < MOST_NAMED ? n : MOST_NAMED;
    struct gpsh_text t = {text, bytes, 0};
    gpsh_text_add(&t, n == 1 ? " for PE %d" : " for PEs %d", pes[0]);
    for (int i = 1; i < named; i++)
        gpsh_text_add(&t, i == n - 1 ? " and %d" : ", %d", pes[i]);
    if (n > named)
        gpsh_text_add(&t, " and %d more", n - named);
}

// Lists the PEs that have not entered, or else the one that is silent.
static void missing(const void *subject, char *text, size_t bytes)
{
    const struct missed *missed = subject;
    const uint32_t number = number_of(*missed->word);
    int n = gpsh_job()->n_pes, found = 0, unknown = 0, pes[MOST_NAMED];
    for (int pe = 0; pe < n; pe++) {
        const _Atomic uint64_t *words = entry_words(pe);
        if (pe == gpsh_job()->my_pe)
            continue;
        if (!words)
            unknown++;
        else if (!has_come(atomic_load_explicit(&words[number % 2], memory_order_relaxed),
                           number) &&
                 found++ < MOST_NAMED)
            pes[found - 1] = pe;
    }
    if (found)
        name_missing(pes, found, text, bytes);
    else
        snprintf(text, bytes, " for PE %d%s", missed->pe,
                 unknown ? " or a PE that it waits for"
                         : ", which has come and has not heard of all others");
}

// Adds what the neighbour of this round knows to what this PE knows.
static uint64_t learn(uint64_t word, uint64_t theirs)
{
    bool differs = (theirs & WORD_DIFFERS) != 0 || ((theirs ^ word) & WORD_DIGEST) != 0;
    return differs ? word | WORD_DIFFERS : word;
}

// A PE whose wait was given up may never have sent the word of this barrier, but only that of the
// next. Then nothing is known about its call.
static bool has_passed(const _Atomic uint64_t *words, uint32_t number)
{
    return has_come(atomic_load_explicit(&words[(number + 1) % 2], memory_order_acquire),
                    number + 1) &&
           !has_come(atomic_load_explicit(&words[number % 2], memory_order_acquire), number);
}

// The PE that writes these words has come, and *word has what it knows; or it has passed.
static bool hear(const _Atomic uint64_t *words, uint64_t *word, unsigned look)
{
    enum { LOOKS = 16 };
    uint32_t number = number_of(*word);
    uint64_t theirs = atomic_load_explicit(&words[number % 2], memory_order_acquire);
    // Of a later barrier if that PE's waits were given up: it says nothing of this.
    if (number_of(theirs) == number)
        *word = learn(*word, theirs);
    return has_come(theirs, number) || (look % LOOKS == 0 && has_passed(words, number));
}

static __attribute__((noinline)) int await_slow(int pe, const _Atomic uint64_t *words,
                                                uint64_t *word, const char *what)
{
    const struct missed missed = {word, pe};
    GPSH_WAIT(waiter, what);
    waiter.for_all = true;
    waiter.about = missing;
    waiter.subject = &missed;
    waiter.bell = bell;
    waiter.awaited = GPSH_AWAITED_BARRIER;
    waiter.number = number_of(*word);
    int status = 0;
    for (unsigned look = 1; status == 0 && !hear(words, word, look); ++look)
        status = gpsh_waiter_step(&waiter);
    return status;
}

// `words`: those of `pe`. *word: what this PE has announced; then also what it has heard.
static inline int await(int pe, const _Atomic uint64_t *words, uint64_t *word, const char *what)
{
    uint64_t theirs = atomic_load_explicit(&words[number_of(*word) % 2], memory_order_acquire);
    return GPSH_LIKELY(theirs == *word) ? 0 : await_slow(pe, words, word, what);
}

// Dissemination barrier: D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier
// synchronization", 1988. After round r a PE knows of the 2^(r+1) PEs up to and including itself.
static int meet_in_rounds(uint64_t *word, uint8_t flags, const char *what)
{
    int n = gpsh_job()->n_pes;
    for (int round = 0, distance = 1; distance < n; ++round, distance *= 2) {
        int pe = gpsh_job()->my_pe + distance, other = gpsh_job()->my_pe - distance;
        int status = announce(pe < n ? pe : pe - n, round, entered % 2, *word, flags);
        if (status == 0)
            status = await(other < 0 ? other + n : other,
                           gpsh_heap()->control->arrived[round].words, word, what);
        if (status < 0)
            return status;
    }
    gpsh_acquire_remote();
    return 0;
}

// Words that are shown say nothing of what their PE has heard, but each PE sees all of them.
static int meet_by_bell(uint64_t *word, const char *what)
{
    // As in announce: what this PE stored before is visible to who sees the number.
    atomic_store_explicit(&entries[gpsh_job()->my_pe].words[entered % 2], *word,
                          memory_order_release);
    for (int i = 1; i < gpsh_job()->n_pes; i++) {
        int pe = gpsh_job()->my_pe + i;
        pe = pe < gpsh_job()->n_pes ? pe : pe - gpsh_job()->n_pes;
        int status = await(pe, entries[pe].words, word, what);
        if (status < 0)
            return status;
    }
    gpsh_bell_ring(bell);
    return 0;
}

// *differs: some PEs are in another call, or have other arguments.
static int meet(struct gpsh_collective *call, const char *what, bool *differs)
{
    call->number = ++entered;
    uint64_t word = entered << 32 | gpsh_collective_digest(call);
    if (GPSH_UNLIKELY(call->status < 0))
        word |= WORD_DIFFERS; // so that all compare
    // Who is in finalize has nothing more to say, and who hears it leaves.
    uint8_t flags = call->kind == GPSH_CALL_FINALIZE ? GPSH_OP_LAST : 0;
    int status = bell ? meet_by_bell(&word, what) : meet_in_rounds(&word, flags, what);
    *differs = status == 0 && (word & WORD_DIFFERS) != 0;
    return status;
}

// ---- After a difference was found ----

// PEs that compare their calls meet at words of their own, numbered by twice the call's number. If
// waits were given up, some PEs may not have heard of the difference: they do not come, and are
// already in the next call, or wait for others there. All stay in step because comparing counts no
// calls.
enum { SHOWN = 0, SEEN = 1 };

// The neighbour of this round has come to `stage` of the comparison, or never will.
static bool has_compared(int round, uint32_t stage, uint32_t number)
{
    const _Atomic uint64_t *words = gpsh_heap()->control->arrived[round].words;
    uint64_t compare = atomic_load_explicit(&words[COMPARE_WORD], memory_order_acquire),
             next = atomic_load_explicit(&words[(number + 1) % 2], memory_order_acquire);
    return has_come(compare, stage) || has_come(next, number + 1);
}

// Ends as every wait does: if GPUSHMEM_WAIT_TIMEOUT_MS runs out, or once a PE has failed. There is
// no other reason for which a wait for the call itself could have been given up.
static int meet_to_compare(uint32_t number, uint32_t what)
{
    const uint32_t stage = number * 2 + what;
    int n = gpsh_job()->n_pes, status = 0;
    for (int round = 0, distance = 1; distance < n && status == 0; ++round, distance *= 2) {
        int pe = gpsh_job()->my_pe + distance;
        GPSH_WAIT(waiter, "comparing collective calls");
        waiter.for_all = true;
        status = announce(pe < n ? pe : pe - n, round, COMPARE_WORD, (uint64_t)stage << 32, 0);
        while (status == 0 && !has_compared(round, stage, number))
            status = gpsh_waiter_step(&waiter);
    }
    gpsh_acquire_remote();
    return status;
}

// PEs that have found a difference show their calls, look at the others', and go on when all have
// looked.
static int tell_difference(const struct gpsh_collective *call)
{
    char sentence[512];
    gpsh_heap()->control->collective = *call;
    int status = meet_to_compare((uint32_t)call->number, SHOWN);
    if (status < 0)
        return status;
    status = gpsh_collective_compare(call->number);
    snprintf(sentence, sizeof sentence, "%s", gpsh_last_error());
    int left = meet_to_compare((uint32_t)call->number, SEEN);
    return left < 0 ? left : gpsh_fail(status, "%s", sentence);
}

static inline int sync_as(struct gpsh_collective *call, const char *what)
{
    bool differs = false;
    int status = meet(call, what, &differs);
    return GPSH_UNLIKELY(status == 0 && differs) ? tell_difference(call) : status;
}

// With the times at which this PE came and went, which tell how far nodes' clocks are apart.
static __attribute__((noinline)) int sync_watched(struct gpsh_collective *call, const char *what,
                                                  const char *slice)
{
    GPSH_CALL(slice, -1, 0);
    uint64_t began_ns = gpsh_clock_ns();
    int status = sync_as(call, what);
    if (status == 0)
        gpsh_trace_mark(entered, began_ns, gpsh_clock_ns());
    return status;
}

int gpsh_sync_at(enum gpsh_collective_kind kind, uint64_t a, uint64_t b, uint64_t place,
                 const char *what)
{
    struct gpsh_collective call = {.kind = kind, .arguments = {a, b}, .place = place};
    return gpsh_calls_are_watched() ? sync_watched(&call, what, what) : sync_as(&call, what);
}

int gpsh_sync_as(enum gpsh_collective_kind kind, uint64_t a, uint64_t b, const char *what)
{
    return gpsh_sync_at(kind, a, b, 0, what);
}

static int barrier(struct gpsh_collective *call, const char *what)
{
    GPSH_CALL(what, -1, 0);
    int status = gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES);
    int device = gpsh_device_side_quiet(GPSH_CONTEXT_DEFAULT);
    status = status < 0 ? status : device;
    int arrived =
        gpsh_calls_are_watched() ? sync_watched(call, what, "all PEs meet") : sync_as(call, what);
    // That the PEs do different things explains whatever else went wrong.
    return status < 0 && arrived != GPUSHMEM_ERR_ASYMMETRY ? status : arrived;
}

int gpsh_barrier_at(enum gpsh_collective_kind kind, uint64_t a, uint64_t b, uint64_t place,
                    const char *what)
{
    struct gpsh_collective call = {.kind = kind, .arguments = {a, b}, .place = place};
    return barrier(&call, what);
}

int gpsh_barrier_as(enum gpsh_collective_kind kind, uint64_t a, uint64_t b, const char *what)
{
    return gpsh_barrier_at(kind, a, b, 0, what);
}

int gpsh_barrier_agree(const char *what, enum gpsh_collective_kind kind, uint64_t a, uint64_t b,
                       int here)
{
    struct gpsh_collective call = {.kind = kind, .arguments = {a, b}, .status = here};
    char *why = gpsh_heap()->control->failure;
    if (here)
        snprintf(why, sizeof gpsh_heap()->control->failure, "%s", gpsh_last_error());
    return barrier(&call, what);
}
