// SPDX-License-Identifier: BSD-3-Clause
#include "comm/team_split.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/team_exchange.h"
#include "core/hash.h"
#include "gpushmem/gpushmem.h"
#include "proxy/device_side.h"

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

uint64_t gpsh_team_digest(uint64_t digest, const void *bytes, size_t n)
{
    return gpsh_hash_more(digest ^ GPSH_HASH_START, bytes, n);
}

void gpsh_team_tell_difference(const struct gpsh_team_arguments *a, int pe_a,
                               const struct gpsh_team_arguments *b, int pe_b, char *text,
                               size_t bytes)
{
    static const char *const functions[] = {
        [GPSH_SPLIT_STRIDED] = "gpushmem_team_split_strided",
        [GPSH_SPLIT_LIST] = "gpushmem_team_split_list",
        [GPSH_SPLIT_ROWS] = "gpushmem_team_split_2d",
        [GPSH_SPLIT_COLUMNS] = "gpushmem_team_split_2d, for its second team,",
    };
    static const char *const names[][3] = {
        [GPSH_SPLIT_STRIDED] = {"start", "stride", "size"},
        [GPSH_SPLIT_LIST] = {"size"},
        [GPSH_SPLIT_ROWS] = {"xrange"},
        [GPSH_SPLIT_COLUMNS] = {"xrange"},
    };
    int i = 0;
    while (i < 2 && a->values[i] == b->values[i])
        i++;
    if (a->kind != b->kind)
        snprintf(text, bytes, "PE %d calls %s and PE %d %s", pe_a, functions[a->kind], pe_b,
                 functions[b->kind]);
    else if (names[a->kind][i])
        snprintf(text, bytes, "PE %d passes %s %d and PE %d %s %d", pe_a, names[a->kind][i],
                 (int)a->values[i], pe_b, names[a->kind][i], (int)b->values[i]);
    else
        snprintf(text, bytes, "the lists of %d ranks of PE %d and PE %d are not the same",
                 (int)a->values[0], pe_a, pe_b);
}

// ---- The two exchanges ----

// What each member of the parent tells in the first one,
struct offer {
    struct gpsh_team_slots free;
    struct gpsh_team_arguments arguments;
    int32_t status;
};
_Static_assert(sizeof(struct offer) <= GPSH_TEAM_LINE_DATA, "it comes in one cache line");

// and in the second, about the slot that its new team takes.
struct bid {
    struct gpsh_team_terms terms;
    int32_t status;
};

struct split {
    struct gpsh_team *parent;
    const struct gpsh_team_plan *plan;
    struct gpsh_team *team;
    struct offer *offers; // [parent->n]
    struct bid *bids;     // [parent->n]
};

static int refuse_as(const struct split *s, int rank, int status)
{
    return gpsh_fail(status, "%s: PE %d cannot take part: %s", s->plan->what, s->parent->pes[rank],
                     gpushmem_strerror(status));
}

static int refuse_difference(const struct split *s, int rank)
{
    char difference[160];
    gpsh_team_tell_difference(&s->offers[0].arguments, s->parent->pes[0],
                              &s->offers[rank].arguments, s->parent->pes[rank], difference,
                              sizeof difference);
    return gpsh_fail(GPUSHMEM_ERR_ASYMMETRY, "%s: %s; all members of the parent make the same call",
                     s->plan->what, difference);
}

static int exchange_offers(struct split *s)
{
    struct gpsh_team *parent = s->parent;
    const struct offer mine = {gpsh_team_free_slots(), s->plan->arguments, s->plan->status};
    int status = gpsh_team_allgather_any(parent, &mine, sizeof mine, s->offers, s->plan->what);
    if (status || s->plan->status)
        return status ? status : s->plan->status;
    for (int rank = 0; rank < parent->n; rank++)
        if (s->offers[rank].status)
            return refuse_as(s, rank, s->offers[rank].status);
    for (int rank = 1; rank < parent->n; rank++)
        if (memcmp(&s->offers[rank].arguments, &s->offers[0].arguments,
                   sizeof s->offers[0].arguments) != 0)
            return refuse_difference(s, rank);
    return 0;
}

static int make_mine(struct split *s, struct gpsh_team_terms *mine)
{
    const struct gpsh_team_plan *plan = s->plan;
    struct gpsh_team_slots slots = s->offers[plan->ranks[0]].free;
    int *pes = calloc((size_t)plan->size, sizeof *pes);
    if (!pes)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for a team of %d PEs",
                         plan->what, plan->size);
    for (int i = 0; i < plan->size; i++) {
        pes[i] = s->parent->pes[plan->ranks[i]];
        gpsh_team_slots_join(&slots, &s->offers[plan->ranks[i]].free);
    }
    int slot = gpsh_team_slots_lowest(&slots);
    int status = slot < 0 ? gpsh_team_no_slot(plan->what, plan->size)
                          : gpsh_team_propose(slot, pes, plan->size, &s->team, mine);
    free(pes);
    if (status)
        return slot < 0 ? status : gpsh_fail_in(status, plan->what);
    s->team->config = plan->config;
    return 0;
}

static int enter(struct split *s)
{
    struct gpsh_team_terms all = {0};
    for (int i = 0; i < s->plan->size; i++)
        gpsh_team_terms_join(&all, &s->bids[s->plan->ranks[i]].terms);
    return gpsh_team_enter(s->team, &all);
}

static int exchange_bids(struct split *s)
{
    struct bid mine = {.status = 0};
    char why[512];
    mine.status = s->plan->size ? make_mine(s, &mine.terms) : 0;
    snprintf(why, sizeof why, "%s", mine.status ? gpsh_last_error() : "");
    int status = gpsh_team_allgather_any(s->parent, &mine, sizeof mine, s->bids, s->plan->what);
    if (status)
        return status;
    if (mine.status)
        return gpsh_fail(mine.status, "%s", why);
    for (int rank = 0; rank < s->parent->n; rank++)
        if (s->bids[rank].status)
            return refuse_as(s, rank, s->bids[rank].status);
    return s->team ? enter(s) : 0;
}

int gpsh_team_split(struct gpsh_team *parent, const struct gpsh_team_plan *plan,
                    gpushmem_team_t *out)
{
    struct split s = {.parent = parent, .plan = plan};
    *out = GPUSHMEM_TEAM_INVALID;
    s.offers = calloc((size_t)parent->n, sizeof *s.offers);
    s.bids = calloc((size_t)parent->n, sizeof *s.bids);
    int status = s.offers && s.bids
                     ? exchange_offers(&s)
                     : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %d PEs",
                                 plan->what, parent->n);
    if (!status)
        status = exchange_bids(&s);
    if (status)
        gpsh_team_delete(s.team);
    else if (s.team)
        *out = s.team->handle;
    free(s.offers);
    free(s.bids);
    return status;
}

// ---- Without a parent ----

_Static_assert(sizeof(struct gpsh_team_slots) <= GPSH_TEAM_ALLREDUCE_WORDS * sizeof(uint64_t) &&
                   sizeof(struct bid) <= GPSH_TEAM_ALLREDUCE_WORDS * sizeof(uint64_t),
               "they have room");

static void join_slots(void *all, const void *one)
{
    gpsh_team_slots_join(all, one);
}

static void join_bids(void *all, const void *one)
{
    struct bid *bid = all;
    const struct bid *other = one;
    gpsh_team_terms_join(&bid->terms, &other->terms);
    bid->status = bid->status ? bid->status : other->status;
}

// `mine`: what this PE failed with. The members have to hear of it before it gives up.
static int agree(const struct gpsh_team_allreduce *members, const char *what,
                 struct gpsh_team *team, struct bid *bid, int mine)
{
    bid->status = mine;
    int status = members->run(members->self, bid, sizeof *bid, join_bids);
    if (status || mine)
        return mine ? mine : status;
    if (bid->status)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: another member could not make the team",
                         what);
    return gpsh_team_enter(team, &bid->terms);
}

int gpsh_team_of_pes(const char *what, const int *pes, int n,
                     const struct gpsh_team_allreduce *members, gpushmem_team_t *out)
{
    struct gpsh_team *team = NULL;
    struct gpsh_team_slots slots = gpsh_team_free_slots();
    struct bid bid = {.status = 0};
    int status = members->run(members->self, &slots, sizeof slots, join_slots);
    int slot = gpsh_team_slots_lowest(&slots);
    if (!status && slot < 0)
        status = gpsh_team_no_slot(what, n);
    if (!status) {
        int mine = gpsh_team_propose(slot, pes, n, &team, &bid.terms);
        status = agree(members, what, team, &bid, mine);
    }
    if (status)
        gpsh_team_delete(team);
    else
        *out = team->handle;
    return status;
}

int gpsh_team_destroy(struct gpsh_team *team, const char *what)
{
    int status = team->broken ? 0 : gpsh_team_sync(team, what);
    gpsh_team_leave(team);
    return status;
}
