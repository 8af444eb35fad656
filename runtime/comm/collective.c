// SPDX-License-Identifier: BSD-3-Clause
#include "comm/collective.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/context.h"
#include "comm/team_exchange.h"
#include "core/error.h"
#include "core/team_name.h"
#include "gpushmem/gpushmem.h"
#include "job/job.h"
#include "memory/control.h"

enum { CALL_TEXT = 128 };

static const char *block_where(uint64_t number)
{
    return number & GPSH_HOST_BLOCK ? "host memory" : "heap";
}

// "gpushmem_align(256, 1000)"
static void call_print(const struct gpsh_collective *call, char *text, size_t bytes)
{
    static const struct {
        const char *name;
        int arguments;
    } calls[] = {[GPSH_CALL_SYNC_ALL] = {"sync_all", 0},
                 [GPSH_CALL_BARRIER_ALL] = {"barrier_all", 0},
                 [GPSH_CALL_MALLOC] = {"malloc", 1},
                 [GPSH_CALL_CALLOC] = {"calloc", 2},
                 [GPSH_CALL_ALIGN] = {"align", 2},
                 [GPSH_CALL_FREE] = {"free", 1},
                 [GPSH_CALL_FINALIZE] = {"finalize", 0},
                 [GPSH_CALL_REALLOC] = {"realloc", 2},
                 [GPSH_CALL_MALLOC_WITH_HINTS] = {"malloc_with_hints", 2},
                 [GPSH_CALL_LAUNCH] = {"launch_collective", 2},
                 [GPSH_CALL_REGISTER] = {"buffer_register_symmetric", 1},
                 [GPSH_CALL_UNREGISTER] = {"buffer_unregister_symmetric", 1}};
    const uint64_t *arguments = call->arguments;
    if (call->kind >= sizeof calls / sizeof calls[0])
        snprintf(text, bytes, "something else");
    else if (call->kind == GPSH_CALL_FREE && arguments[0] == GPSH_NO_BLOCK)
        snprintf(text, bytes, "gpushmem_free(an address outside the heap)");
    else if (call->kind == GPSH_CALL_FREE)
        snprintf(text, bytes, "gpushmem_free(%s offset %" PRIu64 ")", block_where(arguments[0]),
                 arguments[0] & ~GPSH_HOST_BLOCK);
    else if (call->kind == GPSH_CALL_UNREGISTER && arguments[0] == GPSH_NO_BLOCK)
        snprintf(text, bytes, "gpushmem_buffer_unregister_symmetric(no registered buffer)");
    else if (call->kind == GPSH_CALL_UNREGISTER)
        snprintf(text, bytes, "gpushmem_buffer_unregister_symmetric(at %s offset %" PRIu64 ")",
                 block_where(arguments[0]), arguments[0] & ~GPSH_HOST_BLOCK);
    else if (call->kind == GPSH_CALL_LAUNCH)
        snprintf(text, bytes,
                 "GPUSHMEM_LAUNCH_COLLECTIVE(grid %u x %u x %u, block %u x %u x %u, %u bytes)",
                 (unsigned)arguments[0], (unsigned)(arguments[0] >> 32) & 0xffff,
                 (unsigned)(arguments[0] >> 48), (unsigned)arguments[1] & 0xfff,
                 (unsigned)(arguments[1] >> 12) & 0xfff, (unsigned)(arguments[1] >> 24) & 0xff,
                 (unsigned)(arguments[1] >> 32));
    else if (call->kind == GPSH_CALL_REALLOC && arguments[0] == GPSH_NO_BLOCK)
        snprintf(text, bytes, "gpushmem_realloc(no block of the heap, %" PRIu64 ")", arguments[1]);
    else if (call->kind == GPSH_CALL_REALLOC && arguments[0] == GPSH_NULL_BLOCK)
        snprintf(text, bytes, "gpushmem_realloc(NULL, %" PRIu64 ")", arguments[1]);
    else if (call->kind == GPSH_CALL_REALLOC)
        snprintf(text, bytes, "gpushmem_realloc(%s offset %" PRIu64 ", %" PRIu64 ")",
                 block_where(arguments[0]), arguments[0] & ~GPSH_HOST_BLOCK, arguments[1]);
    else if (calls[call->kind].arguments == 0)
        snprintf(text, bytes, "gpushmem_%s()", calls[call->kind].name);
    else if (calls[call->kind].arguments == 1)
        snprintf(text, bytes, "gpushmem_%s(%" PRIu64 ")", calls[call->kind].name, arguments[0]);
    else
        snprintf(text, bytes, "gpushmem_%s(%" PRIu64 ", %" PRIu64 ")", calls[call->kind].name,
                 arguments[0], arguments[1]);
}

static int read_control(int pe, size_t at, void *to, size_t bytes)
{
    const struct gpsh_op op = {.kind = GPSH_OP_GET,
                               .region = GPSH_CONTROL,
                               .pe = pe,
                               .local = to,
                               .bytes = bytes,
                               .remote = at};
    return gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_FETCH);
}

static int call_refuse(const struct gpsh_collective *first, int first_pe,
                       const struct gpsh_collective *other, int pe)
{
    char theirs[CALL_TEXT], firsts[CALL_TEXT];
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
    int status = read_control(pe, offsetof(struct gpsh_control, failure), why, sizeof why);
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
            read_control(pe, offsetof(struct gpsh_control, collective), &other, sizeof other);
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

// FNV-1a: G. Fowler, L. C. Noll, K.-P. Vo, D. Eastlake, "The FNV Non-Cryptographic Hash Algorithm".
static uint64_t digest_of(const struct gpsh_team_call *call)
{
    const unsigned char *bytes = (const unsigned char *)call;
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof *call; i++)
        digest = (digest ^ bytes[i]) * UINT64_C(0x100000001b3);
    return digest;
}

// In rounds, so that calls are gathered only where some differ, or all are wrong. 1: all are alike.
static int are_alike(struct gpsh_team *team, const struct gpsh_team_call *call)
{
    const struct gpsh_team_fold fold = {join_digests, NULL};
    const struct digest mine = {.of = digest_of(call)};
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
