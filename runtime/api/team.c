// SPDX-License-Identifier: BSD-3-Clause
// gpushmem_team_*.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/argument.h"
#include "api/compat.h"
#include "comm/team_exchange.h"
#include "comm/team_split.h"
#include "connect/peers.h"
#include "core/hash.h"
#include "job/job.h"
#include "progress/waiter.h"

// ---- Queries ----

int gpushmem_team_my_pe(gpushmem_team_t handle)
{
    struct gpsh_team *team;
    if (handle == GPUSHMEM_TEAM_INVALID)
        return -1;
    return gpsh_check_team(__func__, handle, &team) ? -1 : team->my_rank;
}

int gpushmem_team_n_pes(gpushmem_team_t handle)
{
    struct gpsh_team *team;
    if (handle == GPUSHMEM_TEAM_INVALID)
        return -1;
    return gpsh_check_team(__func__, handle, &team) ? -1 : team->n;
}

int gpushmem_team_translate_pe(gpushmem_team_t src_team, int src_pe, gpushmem_team_t dest_team)
{
    struct gpsh_team *from, *to;
    if (src_team == GPUSHMEM_TEAM_INVALID || dest_team == GPUSHMEM_TEAM_INVALID ||
        gpsh_check_team(__func__, src_team, &from) || gpsh_check_team(__func__, dest_team, &to) ||
        src_pe < 0 || src_pe >= from->n)
        return -1;
    int pe = from->pes[src_pe];
    if (dest_team == GPUSHMEM_TEAM_WORLD)
        return pe;
    for (int rank = 0; rank < to->n; rank++)
        if (to->pes[rank] == pe)
            return rank;
    return -1;
}

static int check_config(const char *function, const struct gpushmem_team_config *config, long mask)
{
    if (mask & ~GPUSHMEM_TEAM_NUM_CONTEXTS)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: unknown bits in config_mask %#lx; the only one is "
                         "GPUSHMEM_TEAM_NUM_CONTEXTS (%ld)",
                         function, mask, GPUSHMEM_TEAM_NUM_CONTEXTS);
    if (mask && !config)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: config_mask is %#lx, but config is NULL",
                         function, mask);
    return 0;
}

int gpushmem_team_get_config(gpushmem_team_t handle, long config_mask,
                             struct gpushmem_team_config *config)
{
    struct gpsh_team *team;
    int status = gpsh_check_team(__func__, handle, &team);
    if (!status)
        status = check_config(__func__, config, config_mask);
    if (!status && config_mask & GPUSHMEM_TEAM_NUM_CONTEXTS)
        config->num_contexts = team->config.num_contexts;
    return status;
}

void *gpushmem_team_ptr(gpushmem_team_t handle, const void *sym, int pe)
{
    struct gpsh_team *team;
    if (gpsh_check_team(__func__, handle, &team))
        return NULL;
    if (pe < 0 || pe >= team->n) {
        gpsh_fail(GPUSHMEM_ERR_PE, "%s: the team has no rank %d; ranks are 0 to %d", __func__, pe,
                  team->n - 1);
        return NULL;
    }
    return gpushmem_ptr(sym, team->pes[pe]);
}

int gpushmem_failed_pes(int *pes, int most)
{
    int status = gpsh_check_ready(__func__), n = 0;
    if (status)
        return status;
    if (most < 0)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: most is %d; it is at least 0", __func__, most);
    if (most && !pes)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: no place for %d PEs (NULL)", __func__, most);
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++) {
        if (!atomic_load(&gpsh_job()->peers[pe].error))
            continue;
        if (n < most)
            pes[n] = pe;
        n++;
    }
    return n;
}

// ---- Connections ----

static void about_connecting(const void *pe, char *text, size_t bytes)
{
    snprintf(text, bytes, " for a connection to PE %d", *(const int *)pe);
}

// All are begun before any is waited for. A wait that is given up leaves nothing to undo: the
// connections may still come.
int gpushmem_connect(gpushmem_team_t handle)
{
    struct gpsh_team *team;
    int status = gpsh_check_team(__func__, handle, &team), pe = 0;
    if (status)
        return status;
    GPSH_WAIT(waiter, __func__);
    waiter.about = about_connecting;
    waiter.subject = &pe;
    waiter.looks = true; // each connection fails with its PE
    for (int rank = 0; rank < team->n && status >= 0; rank++)
        status = gpsh_peer_establish(team->pes[rank], true);
    for (int rank = 0; rank < team->n && status >= 0;) {
        pe = team->pes[rank];
        status = gpsh_peer_establish(pe, false);
        rank += status > 0;
        if (!status)
            status = gpsh_waiter_step(&waiter);
    }
    return status < 0 ? status : 0;
}

// ---- Splits ----

// What all ways to make a team begin with: a status where there is no parent. Everything else that
// is wrong is the call's status, which is told to the parent's other members: they wait in the
// call.
static int plan_begin(struct gpsh_team_plan *plan, const char *what, gpushmem_team_t handle,
                      struct gpsh_team **parent, const struct gpushmem_team_config *config,
                      long mask, gpushmem_team_t *out)
{
    plan->what = what;
    snprintf(plan->call.function, sizeof plan->call.function, "%s", what);
    if (out)
        *out = GPUSHMEM_TEAM_INVALID;
    int status = gpsh_check_team(what, handle, parent);
    if (status)
        return status;
    int wrong = check_config(what, config, mask);
    if (!wrong && !out)
        wrong = gpsh_fail(GPUSHMEM_ERR_INVALID,
                          "%s: the address for the new team is NULL; pass that of a "
                          "gpushmem_team_t",
                          what);
    if (!wrong && mask & GPUSHMEM_TEAM_NUM_CONTEXTS) {
        plan->config.num_contexts = config->num_contexts;
        if (config->num_contexts < 0)
            wrong = gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: num_contexts is %d; it is at least 0",
                              what, config->num_contexts);
    }
    plan->call.status = wrong;
    return 0;
}

// `ranks` are `size` ranks of the parent, if the call is right.
static int split(struct gpsh_team *parent, struct gpsh_team_plan *plan, const int *ranks, int size,
                 gpushmem_team_t *out)
{
    gpushmem_team_t team = GPUSHMEM_TEAM_INVALID;
    for (int i = 0; !plan->call.status && i < size && !plan->size; i++)
        if (ranks[i] == parent->my_rank) {
            plan->ranks = ranks;
            plan->size = size;
        }
    int status = gpsh_team_split(parent, plan, &team);
    if (out)
        *out = team;
    return status;
}

static int split_arithmetic(struct gpsh_team *parent, struct gpsh_team_plan *plan, int start,
                            int stride, int size, gpushmem_team_t *out)
{
    int *ranks = plan->call.status ? NULL : calloc((size_t)size, sizeof *ranks);
    if (!plan->call.status && !ranks)
        plan->call.status =
            gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %d ranks", plan->what, size);
    for (int i = 0; ranks && i < size; i++)
        ranks[i] = start + i * stride;
    int status = split(parent, plan, ranks, size, out);
    free(ranks);
    return status;
}

static int split_strided(gpushmem_team_t parent_team, int start, int stride, int size,
                         const struct gpushmem_team_config *config, long config_mask,
                         gpushmem_team_t *new_team, bool apart)
{
    static const char *const names[GPSH_CALL_ARGUMENTS] = {"start", "stride", "size"};
    static const char what[] = "gpushmem_team_split_strided";
    struct gpsh_team *parent;
    struct gpsh_team_plan plan = {
        .call.arguments = {start, stride, size}, .names = names, .apart = apart};
    int status = plan_begin(&plan, what, parent_team, &parent, config, config_mask, new_team);
    if (status)
        return status;
    if (!plan.call.status)
        plan.call.status = gpsh_team_check_strided(what, parent->n, start, stride, size);
    return split_arithmetic(parent, &plan, start, stride, size, new_team);
}

int gpushmem_team_split_strided(gpushmem_team_t parent_team, int start, int stride, int size,
                                const struct gpushmem_team_config *config, long config_mask,
                                gpushmem_team_t *new_team)
{
    return split_strided(parent_team, start, stride, size, config, config_mask, new_team, false);
}

int gpsh_team_split_apart(gpushmem_team_t parent_team, int start, int stride, int size,
                          const struct gpushmem_team_config *config, long config_mask,
                          gpushmem_team_t *new_team)
{
    return split_strided(parent_team, start, stride, size, config, config_mask, new_team, true);
}

int gpushmem_team_split_list(gpushmem_team_t parent_team, const int *ranks, int size,
                             const struct gpushmem_team_config *config, long config_mask,
                             gpushmem_team_t *new_team)
{
    static const char *const names[GPSH_CALL_ARGUMENTS] = {"size", "ranks of digest"};
    struct gpsh_team *parent;
    struct gpsh_team_plan plan = {.call.arguments = {size}, .names = names};
    int status = plan_begin(&plan, __func__, parent_team, &parent, config, config_mask, new_team);
    if (status)
        return status;
    if (!plan.call.status)
        plan.call.status = gpsh_team_check_list(__func__, parent->n, ranks, size);
    if (!plan.call.status)
        plan.call.arguments[1] =
            (int64_t)(gpsh_hash_more(GPSH_HASH_START, ranks, (size_t)size * sizeof *ranks) >> 32);
    return split(parent, &plan, ranks, size, new_team);
}

// The rows, then the columns: two splits, since a PE is in one team of each.
static int split_axis(gpushmem_team_t parent_team, bool rows, int xrange,
                      const struct gpushmem_team_config *config, long mask, gpushmem_team_t *out)
{
    static const char *const names[GPSH_CALL_ARGUMENTS] = {"xrange", "for axis"};
    struct gpsh_team *parent;
    struct gpsh_team_plan plan = {.call.arguments = {xrange, rows ? 0 : 1}, .names = names};
    int start = 0, stride = 1, size = 1;
    int status =
        plan_begin(&plan, "gpushmem_team_split_2d", parent_team, &parent, config, mask, out);
    if (status)
        return status;
    if (!plan.call.status && xrange < 1)
        plan.call.status = gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: xrange is %d; it is at least 1",
                                     plan.what, xrange);
    if (!plan.call.status) {
        int n = parent->n, row = xrange < n ? xrange : n, x = parent->my_rank % row,
            y = parent->my_rank / row;
        start = rows ? y * row : x;
        stride = rows ? 1 : row;
        size = rows ? (n - start < row ? n - start : row) : (n - x + row - 1) / row;
    }
    return split_arithmetic(parent, &plan, start, stride, size, out);
}

int gpushmem_team_split_2d(gpushmem_team_t parent_team, int xrange,
                           const struct gpushmem_team_config *xaxis_config, long xaxis_mask,
                           gpushmem_team_t *xaxis_team,
                           const struct gpushmem_team_config *yaxis_config, long yaxis_mask,
                           gpushmem_team_t *yaxis_team)
{
    if (yaxis_team)
        *yaxis_team = GPUSHMEM_TEAM_INVALID;
    int status = split_axis(parent_team, true, xrange, xaxis_config, xaxis_mask, xaxis_team);
    if (status)
        return status;
    status = split_axis(parent_team, false, xrange, yaxis_config, yaxis_mask, yaxis_team);
    if (status) {
        gpushmem_team_destroy(*xaxis_team); // on all PEs: all of them failed
        *xaxis_team = GPUSHMEM_TEAM_INVALID;
    }
    return status;
}

int gpushmem_team_survivors(gpushmem_team_t parent_team, const struct gpushmem_team_config *config,
                            long config_mask, gpushmem_team_t *new_team)
{
    struct gpsh_team *parent;
    struct gpsh_team_plan plan = {0};
    gpushmem_team_t team;
    int status = plan_begin(&plan, __func__, parent_team, &parent, config, config_mask, new_team);
    if (status)
        return status;
    if (!gpsh_job()->outlives)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "%s: no PE outlives another one in this job, because "
                         "GPUSHMEM_ON_PE_FAILURE is not notify on all PEs: set it so",
                         __func__);
    status = gpsh_team_survivors(parent, &plan, &team);
    if (new_team)
        *new_team = team;
    return status;
}

// ---- Collective over the team ----

int gpushmem_team_destroy(gpushmem_team_t handle)
{
    struct gpsh_team *team;
    if (handle == GPUSHMEM_TEAM_INVALID)
        return gpsh_check_ready(__func__);
    int status = gpsh_check_team(__func__, handle, &team);
    if (status)
        return status;
    if (team->place.slot < GPUSHMEM_TEAM_PREDEFINED)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: %d is a predefined team, which lives until gpushmem_finalize",
                         __func__, handle);
    return gpsh_team_destroy(team, __func__);
}

int gpushmem_team_sync(gpushmem_team_t handle)
{
    struct gpsh_team *team;
    int status = gpsh_check_team(__func__, handle, &team);
    return status ? status : gpsh_team_sync(team, __func__);
}
