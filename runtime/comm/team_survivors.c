// SPDX-License-Identifier: BSD-3-Clause
// Each PE shows its vote in its own control region, where the others read it: by loads, or by a
// get. One that is read while it changes is told by its digest.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/context.h"
#include "comm/team_split.h"
#include "comm/vote.h"
#include "connect/ways.h"
#include "core/config.h"
#include "core/team_name.h"
#include "gpushmem/gpushmem.h"
#include "job/failure.h"
#include "job/job.h"
#include "memory/heap.h"
#include "progress/waiter.h"
#include "proxy/device_side.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // a PE shows one vote at a time

struct survivors {
    struct gpsh_team *parent;
    struct gpsh_poll poll;
    struct gpsh_team *team;
    int *pes; // [parent->n]
    const char *what;
    char why[256]; // goes with poll.status
    int unread;    // why a vote could not be read
};

// ---- Votes ----

static uint64_t place_of_vote(void)
{
    return gpsh_control_vote(gpsh_job()->n_pes, gpsh_settings());
}

static void copy_words(_Atomic uint64_t *to, const _Atomic uint64_t *from, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *to; i++)
        atomic_store_explicit(&to[i], atomic_load_explicit(&from[i], memory_order_acquire),
                              memory_order_release);
}

static void show(const struct gpsh_poll *poll)
{
    char *to = (char *)gpsh_heap()->control + place_of_vote();
    copy_words((_Atomic uint64_t *)(void *)to, (const _Atomic uint64_t *)(const void *)poll->mine,
               poll->bytes);
}

// A PE that is in finalize will not come.
static bool is_lost(void *arg, int rank)
{
    const struct survivors *s = arg;
    int pe = s->parent->pes[rank];
    return atomic_load_explicit(&gpsh_job()->peers[pe].error, memory_order_acquire) ||
           atomic_load_explicit(&gpsh_heap()->control->departed[pe], memory_order_acquire);
}

// What cannot be read is no vote.
static void read_vote(void *arg, int rank, struct gpsh_vote *out)
{
    struct survivors *s = arg;
    int pe = s->parent->pes[rank];
    const char *control = gpsh_heap()->mapped[GPSH_CONTROL][pe];
    if (control) {
        const char *from = control + place_of_vote();
        copy_words((_Atomic uint64_t *)(void *)out, (const _Atomic uint64_t *)(const void *)from,
                   s->poll.bytes);
        return;
    }
    int status = gpsh_control_read(pe, place_of_vote(), out, s->poll.bytes);
    if (!status)
        return;
    out->digest = 0;
    if (!s->unread && !is_lost(s, rank))
        s->unread = status;
}

static void found_lost(void *arg, int rank, int by)
{
    const struct survivors *s = arg;
    char why[64];
    int pe = s->parent->pes[rank];
    snprintf(why, sizeof why, "PE %d found it lost", s->parent->pes[by]);
    gpsh_peer_failed(pe, gpsh_peer_lives(pe) ? GPUSHMEM_ERR_TRANSPORT : GPUSHMEM_ERR_PE_FAILED,
                     why);
}

// ---- What this PE offers ----

static int living(struct survivors *s, const struct gpsh_vote *vote)
{
    int n = 0;
    for (int rank = 0; rank < s->parent->n; rank++)
        if (!gpsh_vote_is_lost(vote, rank))
            s->pes[n++] = s->parent->pes[rank];
    return n;
}

static void refuse(struct survivors *s, int status)
{
    s->poll.status = status;
    snprintf(s->why, sizeof s->why, "%s", gpsh_last_error());
}

// The team is made already here, so that little is left that could fail on one PE alone.
static int make_team(struct survivors *s, struct gpsh_vote *mine)
{
    int n = living(s, mine);
    gpsh_team_delete(s->team);
    s->team = NULL;
    return gpsh_team_propose(&mine->place, s->pes, n, &s->team, &mine->terms);
}

static void offer(void *arg, struct gpsh_vote *mine)
{
    struct survivors *s = arg;
    mine->terms.status = make_team(s, mine);
    if (mine->terms.status)
        refuse(s, mine->terms.status);
}

static const struct gpsh_poll_ops poll_ops = {
    .read = read_vote, .is_lost = is_lost, .found_lost = found_lost, .offer = offer};

// ---- The call ----

// That a PE which lives cannot be reached is told to the others. `unread` of one that is lost says
// nothing new.
static int look_at_unread(struct survivors *s)
{
    int status = s->unread;
    s->unread = 0;
    if (status == GPUSHMEM_ERR_TIMEOUT)
        return status;
    if (status && status != GPUSHMEM_ERR_PE_FAILED && !s->poll.status) {
        refuse(s, status);
        gpsh_poll_refuse(&s->poll, status);
        show(&s->poll);
    }
    gpsh_clear_error();
    return 0;
}

static void about_poll(const void *subject, char *text, size_t bytes)
{
    const struct survivors *s = subject;
    snprintf(text, bytes, " for PE %d, rank %d of %d in %s, to call it as well",
             s->parent->pes[s->poll.awaited], s->poll.awaited, s->parent->n,
             gpsh_team_name(s->parent->handle).text);
}

// The result is certain once this PE is DONE: what is left is to stay until the others have seen
// it.
static int settle(const struct survivors *s, int step)
{
    if (step == GPUSHMEM_ERR_TIMEOUT && s->poll.mine->phase == GPSH_VOTE_DONE) {
        gpsh_clear_error();
        return 0;
    }
    if (step == GPUSHMEM_ERR_PE_FAILED)
        return gpsh_fail(step, "%s: other members take PE %d for lost", s->what, gpsh_job()->my_pe);
    return step < 0 ? step : 0;
}

static int hold_poll(struct survivors *s)
{
    GPSH_WAIT(waiter, s->what);
    int step = GPSH_POLL_SHOWS;
    waiter.looks = true;
    waiter.about = about_poll;
    waiter.subject = s;
    while (step != GPSH_POLL_ENDED && step >= 0) {
        if (step == GPSH_POLL_SHOWS)
            show(&s->poll);
        step = gpsh_poll_step(&s->poll);
        if (s->unread && step >= 0) {
            int status = look_at_unread(s);
            step = status < 0 ? status : step;
        }
        int status = step == GPSH_POLL_WAITS ? gpsh_waiter_step(&waiter) : 0;
        step = status < 0 ? status : step;
    }
    return settle(s, step);
}

static int judge(const struct survivors *s)
{
    const struct gpsh_vote *result = s->poll.mine;
    if (!result->terms.status)
        return 0;
    if (s->poll.status)
        return gpsh_fail(s->poll.status, "%s", s->why);
    if (result->place.slot < 0)
        return gpsh_team_no_slot(s->what, s->parent->n);
    return gpsh_team_cannot(s->what, &result->terms);
}

// The team that this PE offered, unless it has taken over a result for other ranks.
static bool is_offered(const struct survivors *s, const struct gpsh_team_place *place, int n)
{
    return s->team && memcmp(&s->team->place, place, sizeof *place) == 0 && s->team->n == n &&
           memcmp(s->team->pes, s->pes, (size_t)n * sizeof *s->pes) == 0;
}

static int enter(struct survivors *s, const struct gpushmem_team_config *config)
{
    const struct gpsh_vote *result = s->poll.mine;
    int n = living(s, result), status = 0;
    if (!gpsh_team_is_free(&result->place))
        return gpsh_fail(
            GPUSHMEM_ERR_STATE,
            "%s: the others' team has slot %d, which another team of this PE took: one "
            "that another thread made meanwhile, or one after a call of survivors "
            "that this PE gave up; destroy it, and call this again on all PEs",
            s->what, result->place.slot);
    if (!is_offered(s, &result->place, n)) {
        gpsh_team_delete(s->team);
        s->team = NULL;
        struct gpsh_team_terms mine; // joined already
        status = gpsh_team_propose(&result->place, s->pes, n, &s->team, &mine);
    }
    if (status)
        return gpsh_fail_in(status, s->what);
    s->team->config = *config;
    return gpsh_team_enter(s->team, &result->terms);
}

static int poll_members(struct survivors *s, const struct gpushmem_team_config *config)
{
    const struct gpsh_team_free free_here = gpsh_team_free();
    struct gpsh_team *parent = s->parent;
    // One that failed, for a timeout perhaps, is repeated as the same call: others may be in it.
    uint64_t call = (uint64_t)(uint32_t)parent->handle << 32 | (parent->polls + 1);
    s->pes = calloc((size_t)parent->n, sizeof *s->pes);
    int status = s->pes ? gpsh_poll_begin(&s->poll, call, &free_here) : GPUSHMEM_ERR_NO_MEMORY;
    if (status)
        return gpsh_fail(status, "%s: no host memory for %d PEs", s->what, parent->n);
    status = hold_poll(s);
    if (status)
        return status;
    parent->polls = (uint32_t)s->poll.mine->call; // the others may have been ahead
    status = judge(s);
    return status ? status : enter(s, config);
}

int gpsh_team_survivors(struct gpsh_team *parent, const struct gpsh_team_plan *plan,
                        gpushmem_team_t *out)
{
    struct survivors s = {.parent = parent, .what = plan->what};
    s.poll = (struct gpsh_poll){.me = parent->my_rank,
                                .n = parent->n,
                                .pe = gpsh_job()->my_pe,
                                .bytes = gpsh_vote_bytes(gpsh_job()->n_pes),
                                .ops = &poll_ops,
                                .arg = &s};
    *out = GPUSHMEM_TEAM_INVALID;
    if (plan->call.status)
        refuse(&s, (int)plan->call.status);
    pthread_mutex_lock(&lock);
    int status = poll_members(&s, &plan->config);
    pthread_mutex_unlock(&lock);
    if (status) {
        gpsh_team_delete(s.team);
    } else {
        *out = s.team->handle;
        gpsh_device_side_losses_known(); // else the team's first wait in a kernel would fail
    }
    gpsh_poll_end(&s.poll);
    free(s.pes);
    return status;
}
