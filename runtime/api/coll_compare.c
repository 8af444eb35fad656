// SPDX-License-Identifier: BSD-3-Clause
#include "api/coll_compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/team_name.h"
#include "gpushmem/gpushmem.h"
#include "memory/heap.h"

// What all members must have alike.
enum { ARGUMENTS = 7 };
struct call {
    int64_t status;
    char function[48];
    int64_t arguments[ARGUMENTS];
};

static void call_fill(struct call *call, const struct gpsh_coll *c, int status, unsigned alike)
{
    *call = (struct call){
        .status = status,
        .arguments = {(int64_t)c->size, alike & GPSH_ALIKE_NELEMS ? (int64_t)c->nelems : 0, c->root,
                      c->dst, c->sst, alike & GPSH_ALIKE_DEST ? (int64_t)gpsh_offset(c->dest) : 0,
                      alike & GPSH_ALIKE_SOURCE ? (int64_t)gpsh_offset(c->source) : 0}};
    snprintf(call->function, sizeof call->function, "%s", c->what);
}

static int call_refuse(const struct gpsh_coll *c, const struct call *first,
                       const struct call *other, int rank)
{
    static const char *const names[ARGUMENTS] = {
        "element size",         "nelems", "root", "dst", "sst", "dest at heap offset",
        "source at heap offset"};
    int pe = c->team->pes[rank], first_pe = c->team->pes[0];
    if (strcmp(first->function, other->function) != 0)
        return gpsh_fail(GPUSHMEM_ERR_ASYMMETRY, "%s: PE %d calls %s, PE %d calls %s",
                         gpsh_team_name(c->team->handle).text, pe, other->function, first_pe,
                         first->function);
    int i = 0;
    while (i < ARGUMENTS - 1 && first->arguments[i] == other->arguments[i])
        i++;
    return gpsh_fail(GPUSHMEM_ERR_ASYMMETRY,
                     "%s, %s: PE %d passes %s %" PRId64 ", PE %d passes %" PRId64, c->what,
                     gpsh_team_name(c->team->handle).text, pe, names[i], other->arguments[i],
                     first_pe, first->arguments[i]);
}

int gpsh_coll_compare(const struct gpsh_coll *c, int status, unsigned alike)
{
    struct gpsh_team *team = c->team;
    struct call mine, *calls = calloc((size_t)team->n, sizeof *calls);
    char why[512];
    snprintf(why, sizeof why, "%s", status ? gpsh_last_error() : "");
    call_fill(&mine, c, status, alike);
    if (!calls)
        return gpsh_team_break(
            team,
            gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %d calls", c->what, team->n));
    int met = gpsh_team_gather_all(team, &mine, sizeof mine, calls, c->what);
    for (int rank = 0; rank < team->n && met == 0; rank++) {
        const struct call *other = &calls[rank];
        if (memcmp(calls[0].function, other->function, sizeof other->function) != 0 ||
            memcmp(calls[0].arguments, other->arguments, sizeof other->arguments) != 0)
            met = call_refuse(c, &calls[0], other, rank);
        else if (other->status && !status)
            met = gpsh_fail((int)other->status, "%s: PE %d passes a bad argument: %s", c->what,
                            team->pes[rank], gpushmem_strerror((int)other->status));
    }
    free(calls);
    return met == 0 && status ? gpsh_fail(status, "%s", why) : met;
}
