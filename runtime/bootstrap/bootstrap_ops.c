// SPDX-License-Identifier: BSD-3-Clause
// The functions of bootstrap.h: each asks the way by which this process became part of a job.
#include <stdatomic.h>
#include <stdlib.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/bootstrap_alone.h"
#include "bootstrap/bootstrap_pmi.h"
#include "bootstrap/bootstrap_pmix.h"
#include "bootstrap/bootstrap_segment.h"
#include "bootstrap/deaths.h"
#include "core/config.h"
#include "core/error.h"
#include "core/launcher.h"

// Of the job that this process is in, for those who have no struct at hand.
static const struct gpsh_bootstrap_ops *_Atomic joined;
static struct gpsh_deaths *_Atomic deaths;

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value;
}

// The choices of GPUSHMEM_BOOTSTRAP.
enum way { WAY_AUTO, WAY_PMIX, WAY_PMI, WAY_SINGLE };

static int init_by(struct gpsh_bootstrap *b, const struct gpsh_settings *settings)
{
    enum way way = (enum way)settings->bootstrap;
    bool pmix = is_set("PMIX_NAMESPACE"), pmi = is_set("PMI_FD");
    if (way == WAY_PMIX || (way == WAY_AUTO && pmix))
        return pmix ? gpsh_bootstrap_pmix_init(b)
                    : gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                                "GPUSHMEM_BOOTSTRAP=pmix, but no launcher with a PMIx server "
                                "started this process: PMIX_NAMESPACE is not set");
    if (way == WAY_PMI || (way == WAY_AUTO && pmi))
        return pmi ? gpsh_bootstrap_pmi_init(b, settings)
                   : gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                               "GPUSHMEM_BOOTSTRAP=pmi, but no launcher with PMI-1 started this "
                               "process: PMI_FD is not set");
    // `gpushmem run` takes the others' variables away: those that are there are of a launcher below
    // it.
    if (way == WAY_AUTO && is_set(GPSH_LAUNCHER_JOB))
        return gpsh_bootstrap_segment_init(b);
    int status = way == WAY_SINGLE ? 0 : gpsh_bootstrap_alone_check();
    return status ? status : gpsh_bootstrap_alone_init(b);
}

int gpsh_bootstrap_init(struct gpsh_bootstrap *b)
{
    struct gpsh_settings settings;
    // Init has told of settings that are wrong. `gpushmem doctor` looks at jobs that have such.
    if (gpsh_settings_read_quietly("GPUSHMEM_", &settings)) {
        gpsh_clear_error();
        int status = gpsh_settings_read((char *[]){NULL}, &settings);
        if (status)
            return status;
    }
    int status = init_by(b, &settings);
    gpsh_settings_clear(&settings);
    return status;
}

int gpsh_bootstrap_put(struct gpsh_bootstrap *b, const void *blob, size_t bytes)
{
    atomic_store(&deaths, b->deaths); // nothing is asked before the first put
    atomic_store(&joined, b->ops);
    return b->ops->put(b, blob, bytes);
}

int gpsh_bootstrap_exchange(struct gpsh_bootstrap *b)
{
    b->exchanges++;
    return b->ops->exchange(b);
}

int gpsh_bootstrap_get(struct gpsh_bootstrap *b, int pe, void **blob, size_t *bytes)
{
    return b->ops->get(b, pe, blob, bytes);
}

int gpsh_bootstrap_fence(struct gpsh_bootstrap *b)
{
    b->exchanges++;
    return b->ops->fence(b);
}

int gpsh_bootstrap_watch_nodes(struct gpsh_bootstrap *b, const char *interface)
{
    return b->ops->watch_nodes ? b->ops->watch_nodes(b, interface) : 0;
}

void gpsh_bootstrap_tell_death(struct gpsh_bootstrap *b, int pe, const char *reason)
{
    if (b->ops->tell_death)
        b->ops->tell_death(b, pe, reason);
}

void gpsh_bootstrap_expect_departures(struct gpsh_bootstrap *b, bool (*has_told)(int pe))
{
    if (b->ops->expect_departures)
        b->ops->expect_departures(b, has_told);
}

bool gpsh_bootstrap_leave(struct gpsh_bootstrap *b)
{
    return b->ops->leave && b->ops->leave(b);
}

bool gpsh_bootstrap_has_left(struct gpsh_bootstrap *b, int pe)
{
    return b->ops && b->ops->has_left && b->ops->has_left(b, pe); // in a job
}

void gpsh_bootstrap_on_death(struct gpsh_bootstrap *b, gpsh_pe_death_fn fn, void *arg)
{
    if (b->deaths)
        gpsh_deaths_on_death(b->deaths, fn, arg);
    else
        b->ops->on_death(b, fn, arg);
}

int gpsh_bootstrap_check(const char *what, bool wait_for_news)
{
    const struct gpsh_bootstrap_ops *ops = atomic_load(&joined);
    struct gpsh_deaths *list = atomic_load(&deaths);
    if (!ops)
        return 0;
    return list ? gpsh_deaths_check(list, what, wait_for_news ? GPSH_DEATHS_NEWS_MS : 0)
                : ops->check(what, wait_for_news);
}

int gpsh_bootstrap_abort(struct gpsh_bootstrap *b, int status, const char *why)
{
    return b->ops->abort(b, status, why);
}

int gpsh_bootstrap_end_job(struct gpsh_bootstrap *b, int status, const char *why)
{
    return b->ops->end_job(b, status, why);
}

int gpsh_bootstrap_pid_of(struct gpsh_bootstrap *b, int pe)
{
    return b->ops->pid_of ? b->ops->pid_of(b, pe) : 0;
}

bool gpsh_bootstrap_is_mute(struct gpsh_bootstrap *b, int pe)
{
    return b->ops->is_mute && b->ops->is_mute(b, pe);
}

int gpsh_bootstrap_finalize(struct gpsh_bootstrap *b)
{
    atomic_store(&joined, NULL);
    return b->ops->finalize(b);
}
