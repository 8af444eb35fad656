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

int gpsh_team_split(struct gpsh_team *parent, const struct gpsh_team_plan *plan,
                    gpushmem_team_t *out)
{
    struct split s = {parent, plan};
    const struct gpsh_team_allreduce members = {allreduce, &s};
    *out = GPUSHMEM_TEAM_INVALID;
    int status = gpsh_team_compare(parent, &plan->call, plan->names, true);
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
