// SPDX-License-Identifier: BSD-3-Clause
#define _POSIX_C_SOURCE 200809L // nanosleep
#include "bootstrap/deaths.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "core/error.h"

enum { LOOK_MS = 20 };

int gpsh_deaths_open(struct gpsh_deaths *d, int n_pes)
{
    pthread_mutex_lock(&d->lock);
    if (!d->of)
        d->of = calloc((size_t)n_pes, sizeof *d->of);
    d->n_pes = n_pes;
    bool made = d->of != NULL;
    pthread_mutex_unlock(&d->lock);
    return made ? 0 : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a list of %d PEs", n_pes);
}

void gpsh_deaths_close(struct gpsh_deaths *d)
{
    pthread_mutex_lock(&d->lock);
    free(d->of);
    d->of = NULL;
    d->fn = NULL;
    d->n_died = d->n_told = 0;
    atomic_store(&d->first, 0);
    pthread_mutex_unlock(&d->lock);
}

void gpsh_deaths_note(struct gpsh_deaths *d, int pe, const char *reason)
{
    int nobody = 0;
    pthread_mutex_lock(&d->lock);
    if (d->of && !d->of[pe].died) {
        d->of[pe].died = true;
        d->n_died++;
        snprintf(d->of[pe].reason, sizeof d->of->reason, "%s", reason);
        atomic_compare_exchange_strong(&d->first, &nobody, pe + 1);
    }
    pthread_mutex_unlock(&d->lock);
}

// It does not change any more once it is there.
const char *gpsh_deaths_reason(struct gpsh_deaths *d, int pe)
{
    pthread_mutex_lock(&d->lock);
    const char *reason = d->of ? d->of[pe].reason : "";
    pthread_mutex_unlock(&d->lock);
    return reason;
}

void gpsh_deaths_tell(struct gpsh_deaths *d)
{
    pthread_mutex_lock(&d->lock);
    for (int pe = 0; d->fn && d->n_told < d->n_died; pe = (pe + 1) % d->n_pes) {
        if (!d->of[pe].died || d->of[pe].told)
            continue;
        gpsh_pe_death_fn fn = d->fn;
        const char *reason = d->of[pe].reason;
        d->of[pe].told = true;
        d->n_told++;
        pthread_mutex_unlock(&d->lock);
        fn(pe, reason);
        pthread_mutex_lock(&d->lock);
    }
    pthread_mutex_unlock(&d->lock);
}

void gpsh_deaths_on_death(struct gpsh_deaths *d, gpsh_pe_death_fn fn)
{
    pthread_mutex_lock(&d->lock);
    d->fn = fn;
    d->n_told = 0;
    for (int pe = 0; d->of && pe < d->n_pes; pe++)
        d->of[pe].told = false;
    pthread_mutex_unlock(&d->lock);
    gpsh_deaths_tell(d);
}

int gpsh_deaths_check(struct gpsh_deaths *d, const char *what, int ms)
{
    int status = 0;
    // Signals of the program, which may come every millisecond, end sleeps: these are not counted.
    const uint64_t until_ns = gpsh_clock_in(ms);
    while (ms && !atomic_load(&d->first) && gpsh_clock_ns() < until_ns)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    pthread_mutex_lock(&d->lock);
    int pe = atomic_load(&d->first) - 1;
    if (pe >= 0)
        status = gpsh_fail(GPUSHMEM_ERR_PE_FAILED, "%s: PE %d has failed: %s", what, pe,
                           d->of[pe].reason);
    pthread_mutex_unlock(&d->lock);
    return status;
}
