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
struct terms {
    struct gpsh_team_count count;
    int32_t status;
    uint32_t lacks; // bits of enum gpsh_team_reach
};

struct split {
    struct gpsh_team *parent;
    const struct gpsh_team_plan *plan;
    int slot; // -1: none is free
    struct gpsh_team *team;
    struct offer *offers; // [parent->n]
    struct terms *terms;  // [parent->n]
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

// The lowest slot that is free on all members of the new team, or -1.
static int choose_slot(const struct split *s)
{
    for (int word = 0; word < GPUSHMEM_TEAM_SLOTS / 64; word++) {
        uint64_t free_slots = UINT64_MAX;
        for (int i = 0; i < s->plan->size; i++)
            free_slots &= s->offers[s->plan->ranks[i]].free.bits[word];
        if (free_slots)
            return word * 64 + __builtin_ctzll(free_slots);
    }
    return -1;
}

static int make_mine(struct split *s, struct terms *mine)
{
    const struct gpsh_team_plan *plan = s->plan;
    char advice[160];
    s->slot = choose_slot(s);
    if (s->slot < 0)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "%s: no slot is free on all %d members of the new team: %s", plan->what,
                         plan->size, gpsh_team_slots_advice(advice));
    int *pes = calloc((size_t)plan->size, sizeof *pes);
    if (!pes)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for a team of %d PEs",
                         plan->what, plan->size);
    for (int i = 0; i < plan->size; i++)
        pes[i] = s->parent->pes[plan->ranks[i]];
    int status = gpsh_team_new(s->slot, pes, plan->size, &s->team);
    free(pes);
    if (status)
        return gpsh_fail_in(status, plan->what);
    s->team->config = plan->config;
    mine->lacks = gpsh_team_lacks(s->team->pes, s->team->n);
    return gpsh_team_count(s->slot, &mine->count);
}

static int enter(struct split *s)
{
    struct gpsh_team_count highest = {0, 0, 0};
    uint32_t lacks = 0;
    for (int i = 0; i < s->plan->size; i++) {
        const struct terms *terms = &s->terms[s->plan->ranks[i]];
        gpsh_team_count_later(&highest, &terms->count);
        lacks |= terms->lacks;
    }
    return gpsh_team_enter_above(s->team, highest, lacks);
}

static int exchange_terms(struct split *s)
{
    struct terms mine = {.status = 0};
    char why[512];
    mine.status = s->plan->size ? make_mine(s, &mine) : 0;
    snprintf(why, sizeof why, "%s", mine.status ? gpsh_last_error() : "");
    int status = gpsh_team_allgather_any(s->parent, &mine, sizeof mine, s->terms, s->plan->what);
    if (status)
        return status;
    if (mine.status)
        return gpsh_fail(mine.status, "%s", why);
    for (int rank = 0; rank < s->parent->n; rank++)
        if (s->terms[rank].status)
            return refuse_as(s, rank, s->terms[rank].status);
    return s->team ? enter(s) : 0;
}

int gpsh_team_split(struct gpsh_team *parent, const struct gpsh_team_plan *plan,
                    gpushmem_team_t *out)
{
    struct split s = {.parent = parent, .plan = plan, .slot = -1};
    *out = GPUSHMEM_TEAM_INVALID;
    s.offers = calloc((size_t)parent->n, sizeof *s.offers);
    s.terms = calloc((size_t)parent->n, sizeof *s.terms);
    int status = s.offers && s.terms
                     ? exchange_offers(&s)
                     : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %d PEs",
                                 plan->what, parent->n);
    if (!status)
        status = exchange_terms(&s);
    if (status)
        gpsh_team_delete(s.team);
    else if (s.team)
        *out = s.team->handle;
    free(s.offers);
    free(s.terms);
    return status;
}

int gpsh_team_destroy(struct gpsh_team *team, const char *what)
{
    int status = team->broken ? 0 : gpsh_team_sync(team, what);
    gpsh_team_leave(team);
    return status;
}
