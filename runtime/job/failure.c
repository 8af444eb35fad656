// SPDX-License-Identifier: BSD-3-Clause
#include "job/failure.h"

#include <pthread.h>
#include <stdio.h>

#include "core/config.h"
#include "core/hooks.h"
#include "job/job.h"

static pthread_mutex_t failure_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpsh_hooks first_observers, observers;

void gpsh_failure_observe_first(gpsh_failure_observer *observer)
{
    gpsh_hooks_add(&first_observers, (gpsh_hook *)observer);
}

void gpsh_failure_observe(gpsh_failure_observer *observer)
{
    gpsh_hooks_add(&observers, (gpsh_hook *)observer);
}

static void tell(struct gpsh_hooks *of, int pe, int code)
{
    for (int i = 0; i < GPSH_HOOKS && of->list[i]; i++)
        ((gpsh_failure_observer *)of->list[i])(pe, code);
}

// A PE that has left in order may go away at any time, and so may this one when it leaves. With the
// lock: without it, finalize might free what is looked at here.
static struct gpsh_peer *peer_of(int pe)
{
    if (atomic_load(&gpsh_job()->leaving) || (unsigned)pe >= (unsigned)gpsh_job()->n_pes)
        return NULL;
    bool may_go = gpsh_job()->departed && atomic_load(&gpsh_job()->departed[pe]);
    may_go = may_go || gpsh_bootstrap_has_left(gpsh_job()->boot, pe);
    return may_go ? NULL : &gpsh_job()->peers[pe];
}

void gpsh_failures_end(void)
{
    pthread_mutex_lock(&failure_lock);
    atomic_store(&gpsh_job_state.leaving, true);
    pthread_mutex_unlock(&failure_lock);
}

// The job's end only where that is wanted.
static void tell_and_end(const char *sentence)
{
    bool ends = gpsh_settings()->on_pe_failure == GPSH_ON_FAILURE_ABORT;
    GPSH_LOG(ERROR, "peers", "%s; %s", sentence,
             ends ? "the job ends (GPUSHMEM_ON_PE_FAILURE=notify keeps the others running)"
                  : "operations towards it fail from now on");
    if (ends)
        gpsh_bootstrap_end_job(gpsh_job()->boot, 1, sentence);
}

// Whose wait ends finds that calls towards the PE fail.
static void end_waits(int pe)
{
    pthread_mutex_lock(&failure_lock);
    if (peer_of(pe))
        atomic_fetch_add(&gpsh_job_state.failures, 1);
    pthread_mutex_unlock(&failure_lock);
}

// That one which was cut off has died is news.
static bool is_news(const struct gpsh_peer *peer, int code)
{
    int known = peer ? atomic_load(&peer->error) : code;
    return !known || (code == GPUSHMEM_ERR_PE_FAILED && known != code);
}

static void describe(int pe, int code, const char *why, char *sentence, size_t bytes)
{
    if (code == GPUSHMEM_ERR_PE_FAILED)
        snprintf(sentence, bytes, "PE %d failed: %s", pe, why);
    else
        snprintf(sentence, bytes, "PE %d cannot reach PE %d any more: %s", gpsh_job()->my_pe, pe,
                 why);
}

void gpsh_peer_failed(int pe, int code, const char *why)
{
    pthread_mutex_lock(&failure_lock);
    struct gpsh_peer *peer = peer_of(pe);
    bool news = is_news(peer, code);
    if (news) {
        gpsh_peer_because(peer, why);
        atomic_store(&peer->error, code);
        atomic_store(&gpsh_job_state.failed_pe, pe);
    }
    pthread_mutex_unlock(&failure_lock);
    if (!news)
        return;
    tell(&first_observers, pe, code);
    end_waits(pe);
    tell(&observers, pe, code);
    char sentence[GPSH_REASON_BYTES + 64];
    describe(pe, code, why, sentence, sizeof sentence);
    tell_and_end(sentence);
}

void gpsh_peer_unreachable(int pe, const char *why)
{
    pthread_mutex_lock(&failure_lock);
    struct gpsh_peer *peer = peer_of(pe);
    bool first = peer && !peer->unreachable && !atomic_load(&peer->error);
    if (first) {
        gpsh_peer_because(peer, why);
        peer->unreachable = true;
    }
    pthread_mutex_unlock(&failure_lock);
    if (!first)
        return;
    char sentence[GPSH_REASON_BYTES + 64];
    describe(pe, GPUSHMEM_ERR_TRANSPORT, why, sentence, sizeof sentence);
    tell_and_end(sentence);
}
