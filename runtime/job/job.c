// SPDX-License-Identifier: BSD-3-Clause
#include "job/job.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/call_names.h"
#include "core/cpu.h"
#include "core/log.h"

static struct gpsh_bootstrap bootstrap;
struct gpsh_job gpsh_job_state = {.boot = &bootstrap, .failed_pe = -1};
static struct gpsh_job *const job = &gpsh_job_state;

void gpsh_job_join(int thread_level)
{
    job->thread_level = thread_level;
    job->generation++;
}

void gpsh_job_raise_level(int thread_level)
{
    job->thread_level = thread_level;
}

int gpsh_job_open(void)
{
    job->my_pe = bootstrap.my_pe;
    job->n_pes = bootstrap.n_pes;
    job->outlives = false;
    atomic_store(&job->failed_pe, -1);
    atomic_store(&job->failures, 0);
    atomic_store(&job->leaving, false);
    job->peers = calloc((size_t)job->n_pes, sizeof *job->peers);
    if (!job->peers)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the tables of %d PEs", job->n_pes);
    for (int pe = 0; pe < job->n_pes; pe++)
        job->peers[pe] = (struct gpsh_peer){.data = -1, .amo = -1, .device = -1, .reason = ""};
    return 0;
}

bool gpsh_job_partial(bool partial)
{
    return atomic_exchange(&gpsh_job_state.partial, partial);
}

void gpsh_job_outlives(bool outlives)
{
    job->outlives = outlives;
}

void gpsh_job_departures(const _Atomic uint64_t *departed)
{
    job->departed = departed;
}

// Few PEs are lost, of how many there may be.
void gpsh_peer_because(struct gpsh_peer *peer, const char *why)
{
    struct gpsh_peer_reason *reason = malloc(sizeof *reason);
    if (!reason) {
        peer->reason = "no memory for the reason";
        return;
    }
    reason->before = peer->reasons;
    snprintf(reason->text, sizeof reason->text, "%s", why);
    peer->reasons = reason;
    peer->reason = reason->text;
}

static void forget_reasons(struct gpsh_peer *peer)
{
    for (struct gpsh_peer_reason *reason = peer->reasons, *before; reason; reason = before) {
        before = reason->before;
        free(reason);
    }
}

void gpsh_job_close(void)
{
    for (int pe = 0; job->peers && pe < job->n_pes; pe++)
        forget_reasons(&job->peers[pe]);
    free(job->peers);
    job->peers = NULL;
    job->n_pes = 0;
}

void gpsh_job_fork(int parent)
{
    job->forked_from = parent;
    job->n_pes = 0;
}

// No program means to do this, and its results are nobody's: it is told once even if nobody looks.
// Headers of compat tell it by the names of theirs.
static int fail_early(const char *function)
{
    static atomic_bool told;
    int status = gpsh_fail(GPUSHMEM_ERR_STATE,
                           strcmp(function, "finalize") != 0
                               ? "gpushmem_%s was called before gpushmem_init or after "
                                 "gpushmem_finalize"
                               : "gpushmem_%s was called without a job: before gpushmem_init, or "
                                 "a second time",
                           function);
    if (!gpsh_job()->partial && !gpsh_call_names() && !atomic_exchange(&told, true))
        GPSH_LOG(WARN, "init", "%s", gpsh_last_error());
    return status;
}

int gpsh_check_initialised(const char *function)
{
    if (GPSH_LIKELY(gpsh_job()->n_pes > 0))
        return 0;
    if (gpsh_job()->forked_from)
        return gpsh_fail(GPUSHMEM_ERR_STATE,
                         "gpushmem_%s was called in a process that PE process %d forked while it "
                         "was in the job: that process is the PE, this one is none; let it call "
                         "exec or _exit, or fork before gpushmem_init",
                         function, gpsh_job()->forked_from);
    return fail_early(function);
}
