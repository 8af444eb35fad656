// SPDX-License-Identifier: BSD-3-Clause
#include "comm/collective.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/context.h"
#include "comm/team_exchange.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/team_name.h"
#include "core/text.h"
#include "gpushmem/gpushmem.h"
#include "job/job.h"
#include "memory/control.h"

enum { CALL_TEXT = 128 };

// "gpushmem_align(256, 1000)"
static void call_print(const struct gpsh_collective *call, char *text, size_t bytes)
{
    static const struct {
        const char *name;
        int arguments;
        const char *no_block; // what GPSH_NO_BLOCK means, if the first one is a block; else NULL
    } calls[] = {
        [GPSH_CALL_SYNC_ALL] = {"sync_all", 0, NULL},
        [GPSH_CALL_BARRIER_ALL] = {"barrier_all", 0, NULL},
        [GPSH_CALL_MALLOC] = {"malloc", 1, NULL},
        [GPSH_CALL_CALLOC] = {"calloc", 2, NULL},
        [GPSH_CALL_ALIGN] = {"align", 2, NULL},
        [GPSH_CALL_FREE] = {"free", 1, "an address outside the heap"},
        [GPSH_CALL_FINALIZE] = {"finalize", 0, NULL},
        [GPSH_CALL_REALLOC] = {"realloc", 2, "no block of the heap"},
        [GPSH_CALL_MALLOC_WITH_HINTS] = {"malloc_with_hints", 2, NULL},
        [GPSH_CALL_LAUNCH] = {"launch_collective", 2, NULL},
        [GPSH_CALL_REGISTER] = {"buffer_register_symmetric", 1, NULL},
        [GPSH_CALL_UNREGISTER] = {"buffer_unregister_symmetric", 1, "no registered buffer"}};
    const uint64_t a = call->arguments[0], b = call->arguments[1];
    if (call->kind >= sizeof calls / sizeof calls[0]) {
        snprintf(text, bytes, "something else");
        return;
    }
    if (call->kind == GPSH_CALL_LAUNCH) {
        snprintf(text, bytes,
                 "GPUSHMEM_LAUNCH_COLLECTIVE(grid %u x %u x %u, block %u x %u x %u, %u bytes)",
                 (unsigned)a, (unsigned)(a >> 32) & 0xffff, (unsigned)(a >> 48),
                 (unsigned)b & 0xfff, (unsigned)(b >> 12) & 0xfff, (unsigned)(b >> 24) & 0xff,
                 (unsigned)(b >> 32));
        return;
    }
    const char *no_block = calls[call->kind].no_block;
    struct gpsh_text t = {text, bytes, 0};
    gpsh_text_add(&t, "gpushmem_%s(", calls[call->kind].name);
    if (no_block && a == GPSH_NO_BLOCK)
        gpsh_text_add(&t, "%s", no_block);
    else if (no_block && a == GPSH_NULL_BLOCK)
        gpsh_text_add(&t, "NULL");
    else if (no_block)
        gpsh_text_add(&t, "%s offset %" PRIu64, a & GPSH_HOST_BLOCK ? "host memory" : "heap",
                      a & ~GPSH_HOST_BLOCK);
    else if (calls[call->kind].arguments > 0)
        gpsh_text_add(&t, "%" PRIu64, a);
    if (calls[call->kind].arguments > 1)
        gpsh_text_add(&t, ", %" PRIu64, b);
    gpsh_text_add(&t, ")");
}

// "at heap offset 4096"
static void place_print(const struct gpsh_collective *call, char *text, size_t bytes)
{
    if (call->place == GPSH_NO_BLOCK)
        snprintf(text, bytes, "nowhere");
    else
        snprintf(text, bytes, "at %s offset %" PRIu64,
                 call->place & GPSH_HOST_BLOCK ? "host memory" : "heap",
                 call->place & ~GPSH_HOST_BLOCK);
}

// The same call, but PEs have handed out different blocks before.
static int place_refuse(const struct gpsh_collective *first, int first_pe,
                        const struct gpsh_collective *other, int pe)
{
    char what[CALL_TEXT], theirs[CALL_TEXT], firsts[CALL_TEXT];
    call_print(first, what, sizeof what);
    place_print(other, theirs, sizeof theirs);
    place_print(first, firsts, sizeof firsts);
    return gpsh_fail(GPUSHMEM_ERR_ASYMMETRY,
                     "collective call %" PRIu64 " of this job: %s would have its block %s on PE "
                     "%d, and %s on PE %d: an earlier call was given up by some PEs only, and "
                     "since then their heaps differ. Nothing that was allocated has changed; end "
                     "the job to allocate again",
                     first->number, what, theirs, pe, firsts, first_pe);
}

static int call_refuse(const struct gpsh_collective *first, int first_pe,
                       const struct gpsh_collective *other, int pe)
{
    char theirs[CALL_TEXT], firsts[CALL_TEXT];
    if (memcmp(first, other, offsetof(struct gpsh_collective, place)) == 0)
        return place_refuse(first, first_pe, other, pe);
    call_print(other, theirs, sizeof theirs);
    call_print(first, firsts, sizeof firsts);
    return gpsh_fail(GPUSHMEM_ERR_ASYMMETRY,
                     "collective call %" PRIu64 " of this job: PE %d calls %s, PE %d %s; all PEs "
                     "must make the same collective calls, with the same arguments and in the same "
                     "order",
                     first->number, pe, theirs, first_pe, firsts);
}

static int tell_failure(int code, int pe)
{
    char why[sizeof gpsh_heap()->control->failure];
    int status = gpsh_control_read(pe, offsetof(struct gpsh_control, failure), why, sizeof why);
    if (status < 0)
        return status;
    return pe == gpsh_job()->my_pe ? gpsh_fail(code, "%s", why)
                                   : gpsh_fail(code, "PE %d: %.*s", pe, (int)sizeof why - 1, why);
}

int gpsh_collective_compare(uint64_t number)
{
    const int me = gpsh_job()->my_pe;
    struct gpsh_collective first, other;
    int first_pe = -1, code = (int)gpsh_heap()->control->collective.status,
        failed_pe = code < 0 ? me : -1;
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++) {
        int status =
            gpsh_control_read(pe, offsetof(struct gpsh_control, collective), &other, sizeof other);
        if (status < 0)
            return status;
        if (other.number != number) // it gave up a wait, and never came here
            continue;
        if (first_pe >= 0 && memcmp(&first, &other, offsetof(struct gpsh_collective, status)) != 0)
            return call_refuse(&first, first_pe, &other, pe);
        if (first_pe < 0) {
            first = other;
            first_pe = pe;
        }
        if (failed_pe < 0 && other.status < 0) {
            code = (int)other.status;
            failed_pe = pe;
        }
    }
    if (failed_pe >= 0)
        return tell_failure(code, failed_pe);
    return gpsh_fail(GPUSHMEM_ERR_ASYMMETRY,
                     "collective call %" PRIu64 " of this job: PEs call different functions; a PE "
                     "that gave up waiting for it does not say what it calls",
                     number);
}

// ---- Of a team ----

static int team_refuse(const struct gpsh_team *team, const struct gpsh_team_call *first,
                       const struct gpsh_team_call *other, const char *const *names)
{
    int pe = team->pes[other - first], first_pe = team->pes[0];
    const struct gpsh_team_name name = gpsh_team_name(team->handle);
    if (strcmp(first->function, other->function) != 0)
        return gpsh_fail(GPUSHMEM_ERR_ASYMMETRY,
                         "%s: PE %d calls %s, PE %d calls %s; all members make the same call",
                         name.text, pe, other->function, first_pe, first->function);
    int i = 0;
    while (i < GPSH_CALL_ARGUMENTS - 1 && first->arguments[i] == other->arguments[i])
        i++;
    return gpsh_fail(GPUSHMEM_ERR_ASYMMETRY,
                     "%s, %s: PE %d passes %s %" PRId64 ", PE %d passes %" PRId64
                     "; all members make the same call",
                     first->function, name.text, pe, names[i], other->arguments[i], first_pe,
                     first->arguments[i]);
}

static int compare_calls(const struct gpsh_team *team, const struct gpsh_team_call *calls,
                         const char *const *names, bool wrong_first)
{
    const size_t said = offsetof(struct gpsh_team_call, function), bytes = sizeof *calls - said;
    const struct gpsh_team_call *wrong = NULL, *differs = NULL;
    for (int rank = team->n - 1; rank >= 0; rank--) {
        wrong = calls[rank].status ? &calls[rank] : wrong;
        if (memcmp(calls[0].function, calls[rank].function, bytes) != 0)
            differs = &calls[rank];
    }
    if (differs && !(wrong && wrong_first))
        return team_refuse(team, calls, differs, names);
    if (!wrong)
        return 0;
    return gpsh_fail((int)wrong->status, "%s: PE %d passes a bad argument: %s", wrong->function,
                     team->pes[wrong - calls], gpushmem_strerror((int)wrong->status));
}

struct digest {
    uint64_t of, differs;
};

static void join_digests(const void *unused, void *to, const void *left, const void *right)
{
    const struct digest *a = left, *b = right;
    (void)unused;
    *(struct digest *)to = (struct digest){a->of, a->differs | b->differs | (a->of ^ b->of)};
}

// In rounds, so that calls are gathered only where some differ, or all are wrong. 1: all are alike.
static int are_alike(struct gpsh_team *team, const struct gpsh_team_call *call)
{
    const struct gpsh_team_fold fold = {join_digests, NULL};
    const struct digest mine = {.of = gpsh_hash_more(GPSH_HASH_START, call, sizeof *call)};
    struct digest all;
    if (sizeof mine > gpsh_team_allreduce_most(team))
        return 0;
    int status = gpsh_team_allreduce(team, &mine, sizeof mine, &fold, call->function);
    if (status)
        return status;
    memcpy(&all, team->views[0], sizeof all);
    return !all.differs && !call->status;
}

int gpsh_team_compare(struct gpsh_team *team, const struct gpsh_team_call *call,
                      const char *const *names, bool wrong_first)
{
    int alike = are_alike(team, call);
    if (alike)
        return alike < 0 ? alike : 0;
    struct gpsh_team_call *calls = calloc((size_t)team->n, sizeof *calls);
    char why[512];
    snprintf(why, sizeof why, "%s", call->status ? gpsh_last_error() : "");
    if (!calls)
        return gpsh_team_break(team,
                               gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %d calls",
                                         call->function, team->n));
    int status = gpsh_team_allgather_any(team, call, sizeof *call, calls, call->function);
    if (!status)
        status = compare_calls(team, calls, names, wrong_first);
    free(calls);
    return call->status && status != GPUSHMEM_ERR_ASYMMETRY
               ? gpsh_fail((int)call->status, "%s", why)
               : status;
}
