// SPDX-License-Identifier: BSD-3-Clause
// The functions of bootstrap.h, but for init: each asks the way by which this process became part
// of a job.
#include "bootstrap/bootstrap.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/tcp_tree.h"
#include "core/error.h"

// Of the job that this process is in, for those who have no struct at hand.
static struct gpsh_deaths *_Atomic deaths;

int gpsh_bootstrap_put(struct gpsh_bootstrap *b, const void *blob, size_t bytes)
{
    atomic_store(&deaths, b->deaths); // nothing is asked before the first put
    return b->ops->put(b, blob, bytes);
}

int gpsh_bootstrap_exchange(struct gpsh_bootstrap *b)
{
    b->exchanges++;
    return b->ops->exchange(b);
}

int gpsh_bootstrap_get(struct gpsh_bootstrap *b, int pe, void **blob, size_t *bytes)
{
    if (pe < 0 || pe >= b->n_pes)
        return gpsh_fail(GPUSHMEM_ERR_PE, "PE %d is outside 0..%d", pe, b->n_pes - 1);
    return b->ops->get(b, pe, blob, bytes);
}

int gpsh_bootstrap_copy(int pe, const void *from, size_t bytes, void **copy)
{
    *copy = malloc(bytes ? bytes : 1);
    if (!*copy)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the %zu bytes PE %d published",
                         bytes, pe);
    if (bytes)
        memcpy(*copy, from, bytes);
    return 0;
}

int gpsh_bootstrap_watch_nodes(struct gpsh_bootstrap *b, const char *interface)
{
    return b->ops->watch_nodes ? b->ops->watch_nodes(b, interface) : 0;
}

// By which the PEs hear of each other's ends.
static struct gpsh_tcp_tree *tree_of(const struct gpsh_bootstrap *b)
{
    return b->ops->tree ? b->ops->tree(b) : NULL;
}

void gpsh_bootstrap_tell_death(struct gpsh_bootstrap *b, int pe, const char *reason)
{
    if (tree_of(b))
        gpsh_tcp_tree_tell_death(tree_of(b), pe, reason);
}

void gpsh_bootstrap_expect_departures(struct gpsh_bootstrap *b, bool (*has_told)(int pe))
{
    if (tree_of(b))
        gpsh_tcp_tree_expect_departures(tree_of(b), has_told);
}

void gpsh_bootstrap_say_goodbye(struct gpsh_bootstrap *b)
{
    if (tree_of(b))
        gpsh_tcp_tree_say_goodbye(tree_of(b));
    if (b->ops->goodbye)
        b->ops->goodbye();
}

bool gpsh_bootstrap_leave(struct gpsh_bootstrap *b)
{
    return b->ops->leave && b->ops->leave(b);
}

bool gpsh_bootstrap_has_left(struct gpsh_bootstrap *b, int pe)
{
    return b->ops && b->ops->has_left && b->ops->has_left(b, pe); // in a job
}

void gpsh_bootstrap_on_death(struct gpsh_bootstrap *b, gpsh_pe_death_fn fn)
{
    if (b->deaths)
        gpsh_deaths_on_death(b->deaths, fn);
}

int gpsh_bootstrap_check(const char *what, bool wait_for_news)
{
    struct gpsh_deaths *list = atomic_load(&deaths);
    return list ? gpsh_deaths_check(list, what, wait_for_news ? GPSH_DEATHS_NEWS_MS : 0) : 0;
}

int gpsh_bootstrap_abort(struct gpsh_bootstrap *b, int status, const char *why)
{
    return b->ops->abort ? b->ops->abort(b, status, why, false) : 0;
}

int gpsh_bootstrap_end_job(struct gpsh_bootstrap *b, int status, const char *why)
{
    return b->ops->abort ? b->ops->abort(b, status, why, true) : 0;
}

int gpsh_bootstrap_pid_of(struct gpsh_bootstrap *b, int pe)
{
    return b->ops->pid_of ? b->ops->pid_of(b, pe) : 0;
}

bool gpsh_bootstrap_is_mute(struct gpsh_bootstrap *b, int pe)
{
    return tree_of(b) && gpsh_tcp_tree_is_mute(tree_of(b), pe);
}

bool gpsh_bootstrap_would_tell(struct gpsh_bootstrap *b, int pe)
{
    return b->launched_by_us || (tree_of(b) && gpsh_tcp_tree_would_tell(tree_of(b), pe));
}

void gpsh_bootstrap_finalize(struct gpsh_bootstrap *b)
{
    atomic_store(&deaths, NULL);
    b->ops->finalize(b);
    free(b->node_pes);
    *b = (struct gpsh_bootstrap){0};
}
