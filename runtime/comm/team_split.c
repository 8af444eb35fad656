// SPDX-License-Identifier: BSD-3-Clause
#include "comm/team_split.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/collective.h"
#include "comm/team_exchange.h"
#include "gpushmem/gpushmem.h"

// ---- Arithmetic ----

int gpsh_team_check_strided(const char *what, int n, int start, int stride, int size)
{
    if (size < 1 || start < 0 || start >= n || (stride == 0 && size > 1))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: start %d, stride %d and size %d do not name ranks of the parent, "
                         "which are 0 to %d, each at most once",
                         what, start, stride, size, n - 1);
    int64_t last = start + (int64_t)stride * (size - 1);
    if (last >= 0 && last < n)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_INVALID,
                     "%s: start %d, stride %d and size %d end at rank %" PRId64
                     "; the parent's ranks are 0 to %d",
                     what, start, stride, size, last, n - 1);
}

int gpsh_team_check_list(const char *what, int n, const int *ranks, int size)
{
    if (size < 1 || size > n || !ranks)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: a list of %d ranks%s; it has 1 to %d, the members of the parent",
                         what, size, ranks ? "" : " at NULL", n);
    char *seen = calloc((size_t)n, 1);
    if (!seen)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %d ranks", what, n);
    int status = 0;
    for (int i = 0; i < size && !status; i++) {
        bool known = ranks[i] >= 0 && ranks[i] < n;
        if (!known || seen[ranks[i]])
            status = gpsh_fail(GPUSHMEM_ERR_INVALID,
                               known ? "%s: rank %d is in the list twice (ranks are 0 to %d)"
                                     : "%s: the list has rank %d; the parent's ranks are 0 to %d",
                               what, ranks[i], n - 1);
        else
            seen[ranks[i]] = 1;
    }
    free(seen);
    return status;
}

// ---- Two rounds ----

static void join_free(void *all, const void *one, bool member)
{
    if (member)
        gpsh_team_free_join(all, one);
}

static void join_terms(void *all, const void *one, bool member)
{
    gpsh_team_terms_join(all, one, member);
}

// What this PE would enter. Nobody sees it yet.
static int propose(const char *what, const struct gpsh_team_free *free, const int *pes, int n,
                   struct gpsh_team **team, struct gpsh_team_terms *mine)
{
    const struct gpsh_team_place place = gpsh_team_place(free, n);
    if (place.slot < 0)
        return gpsh_team_no_slot(what, n);
    int status = gpsh_team_propose(&place, pes, n, team, mine);
    return status ? gpsh_fail_in(status, what) : 0;
}

// All hear in the second round of whoever has failed in the first.
static int agree(const char *what, const struct gpsh_team_allreduce *members,
                 struct gpsh_team_terms *terms)
{
    char why[512];
    int mine = terms->status;
    snprintf(why, sizeof why, "%s", mine ? gpsh_last_error() : "");
    int status = members->run(members->self, terms, sizeof *terms, join_terms);
    if (status)
        return status;
    if (mine)
        return gpsh_fail(mine, "%s", why);
    return terms->status ? gpsh_team_cannot(what, terms) : 0;
}

int gpsh_team_make(const char *what, const int *pes, int n,
                   const struct gpsh_team_allreduce *members,
                   const struct gpushmem_team_config *config, gpushmem_team_t *out)
{
    struct gpsh_team *team = NULL;
    struct gpsh_team_terms terms = {.pe = gpsh_job()->my_pe};
    struct gpsh_team_free common = gpsh_team_free();
    if (!n) // what is free on the members counts
        memset(&common, 0xff, sizeof common);
    int status = members->run(members->self, &common, sizeof common, join_free);
    if (status)
        return status;
    terms.status = n ? propose(what, &common, pes, n, &team, &terms) : 0;
    status = agree(what, members, &terms);
    if (!status && team) {
        team->config = *config;
        status = gpsh_team_enter(team, &terms);
    }
    if (status)
        gpsh_team_delete(team);
    else if (team)
        *out = team->handle;
    return status;
}

// ---- Out of a parent ----

struct split {
    struct gpsh_team *parent;
    const struct gpsh_team_plan *plan;
};

// In rounds in which twice as many are joined. Who is no member has said nothing that the others
// would have to leave out.
static void add(const void *self, void *to, const void *left, const void *right)
{
    (*(gpsh_team_join *const *)self)(to, to == left ? right : left, true);
}

static int allreduce_rounds(const struct split *s, void *words, size_t bytes, gpsh_team_join *join)
{
    const struct gpsh_team_fold fold = {add, &join};
    int status = gpsh_team_allreduce(s->parent, words, bytes, &fold, s->plan->what);
    if (!status)
        memcpy(words, s->parent->views[0], bytes);
    return status;
}

static int allreduce(void *self, void *words, size_t bytes, gpsh_team_join *join)
{
    const struct split *s = self;
    struct gpsh_team *parent = s->parent;
    if (bytes <= gpsh_team_allreduce_most(parent))
        return allreduce_rounds(s, words, bytes, join);
    char *all = calloc((size_t)parent->n, bytes + 1), *member = all + (size_t)parent->n * bytes;
    if (!all) // the others wait for this PE
        return gpsh_team_break(parent,
                               gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %d PEs",
                                         s->plan->what, parent->n));
    for (int i = 0; i < s->plan->size; i++)
        member[s->plan->ranks[i]] = 1;
    int status = gpsh_team_allgather_any(parent, words, bytes, all, s->plan->what);
    for (int rank = 0; rank < parent->n && !status; rank++)
        if (rank != parent->my_rank)
            join(words, all + (size_t)rank * bytes, member[rank]);
    free(all);
    return status;
}

// What a member passes: the ranks of its new team, if they are ranks and it is among them.
struct apart {
    int64_t start, stride, size;
};

static bool same(const struct apart *a, const struct apart *b)
{
    return a->start == b->start && a->stride == b->stride && a->size == b->size;
}

static bool names(const struct apart *a, int rank)
{
    int64_t from_start = rank - a->start;
    if (a->stride == 0)
        return from_start == 0;
    return from_start % a->stride == 0 && from_start / a->stride >= 0 &&
           from_start / a->stride < a->size;
}

static int apart_refuse(const struct gpsh_team *parent, const struct apart *all, int a, int b,
                        const char *what)
{
    return gpsh_fail(GPUSHMEM_ERR_ASYMMETRY,
                     "%s: PE %d passes start %" PRId64 ", stride %" PRId64 ", size %" PRId64
                     ", PE %d passes %" PRId64 ", %" PRId64 ", %" PRId64
                     "; all members of a new team have to pass the same",
                     what, parent->pes[a], all[a].start, all[a].stride, all[a].size, parent->pes[b],
                     all[b].start, all[b].stride, all[b].size);
}

// The same verdict on all members of the parent, who look at the same: each new team is looked
// through once, for its first rank, and each member of one has passed what that rank has.
static int apart_check(const struct gpsh_team *parent, const struct apart *all, const char *what)
{
    for (int rank = 0; rank < parent->n; rank++) {
        const struct apart *mine = &all[rank];
        int start = (int)mine->start;
        if (!names(mine, rank))
            continue;
        if (!same(&all[start], mine))
            return apart_refuse(parent, all, start, rank, what);
        for (int64_t i = 1; rank == start && i < mine->size; i++) {
            int member = (int)(start + i * mine->stride);
            if (!same(&all[member], mine))
                return apart_refuse(parent, all, start, member, what);
        }
    }
    return 0;
}

static int compare_apart(struct gpsh_team *parent, const struct gpsh_team_plan *plan)
{
    struct gpsh_team_call call = plan->call;
    memset(call.arguments, 0, sizeof call.arguments);
    int status = gpsh_team_compare(parent, &call, plan->names, true);
    if (status)
        return status;
    const struct apart mine = {plan->call.arguments[0], plan->call.arguments[1],
                               plan->call.arguments[2]};
    struct apart *all = calloc((size_t)parent->n, sizeof *all);
    if (!all)
        return gpsh_team_break(parent,
                               gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %d PEs",
                                         plan->what, parent->n));
    status = gpsh_team_allgather_any(parent, &mine, sizeof mine, all, plan->what);
    status = status ? status : apart_check(parent, all, plan->what);
    free(all);
    return status;
}

int gpsh_team_split(struct gpsh_team *parent, const struct gpsh_team_plan *plan,
                    gpushmem_team_t *out)
{
    struct split s = {parent, plan};
    const struct gpsh_team_allreduce members = {allreduce, &s};
    *out = GPUSHMEM_TEAM_INVALID;
    int status = plan->apart ? compare_apart(parent, plan)
                             : gpsh_team_compare(parent, &plan->call, plan->names, true);
    if (status)
        return status;
    int *pes = calloc((size_t)plan->size + 1, sizeof *pes);
    if (!pes)
        return gpsh_team_break(parent,
                               gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %d PEs",
                                         plan->what, plan->size));
    for (int i = 0; i < plan->size; i++)
        pes[i] = parent->pes[plan->ranks[i]];
    status = gpsh_team_make(plan->what, pes, plan->size, &members, &plan->config, out);
    free(pes);
    return status;
}

int gpsh_team_destroy(struct gpsh_team *team, const char *what)
{
    int status = team->broken ? 0 : gpsh_team_sync(team, what);
    gpsh_team_leave(team);
    return status;
}
