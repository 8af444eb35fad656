// SPDX-License-Identifier: BSD-3-Clause
#include "api/coll_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/argument.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/team_name.h"
#include "gpushmem/gpushmem.h"
#include "memory/heap.h"

// ---- What is wrong with a call ----

// Which of dest and source have a block of each member, and where one may lie in the other: a
// member reads its own block before it writes it.
static const struct shape {
    bool dest_all, source_all;
    enum { APART, SAME, OWN_OF_DEST, OWN_OF_SOURCE } in_place;
} shapes[GPUSHMEM_COLL_KINDS] = {
    [GPUSHMEM_COLL_BROADCAST] = {false, false, SAME},
    [GPUSHMEM_COLL_FCOLLECT] = {true, false, OWN_OF_DEST},
    [GPUSHMEM_COLL_ALLTOALL] = {true, true, APART},
    [GPUSHMEM_COLL_ALLTOALLS] = {true, true, APART},
    [GPUSHMEM_COLL_REDUCE] = {false, false, SAME},
    [GPUSHMEM_COLL_REDUCESCATTER] = {false, true, OWN_OF_SOURCE},
    [GPUSHMEM_COLL_INSCAN] = {false, false, SAME},
    [GPUSHMEM_COLL_EXSCAN] = {false, false, SAME},
};

// Bytes from the first to the last element of `blocks`; SIZE_MAX if that overflows.
static size_t span(const struct gpsh_coll *c, size_t blocks, ptrdiff_t stride)
{
    size_t elements = gpsh_bytes(c->nelems, blocks);
    if (!elements || elements == SIZE_MAX || GPSH_LIKELY(stride == 1))
        return elements == SIZE_MAX ? elements : gpsh_bytes(elements, c->size);
    size_t apart = gpsh_bytes(elements - 1, (size_t)stride);
    return apart == SIZE_MAX ? apart : gpsh_bytes(apart + 1, c->size);
}

static bool is_in_place(const struct gpsh_coll *c)
{
    size_t mine = (size_t)c->team->my_rank * c->nelems * c->size;
    switch (shapes[c->kind].in_place) {
    case SAME: return c->dest == c->source;
    case OWN_OF_DEST: return c->source == c->dest + mine;
    case OWN_OF_SOURCE: return c->dest == c->source + mine;
    default: return false;
    }
}

static int check_overlap(const struct gpsh_coll *c, size_t to, size_t from)
{
    if (!to || !from || c->dest + to <= c->source || c->source + from <= c->dest || is_in_place(c))
        return 0;
    return gpsh_fail(
        GPUSHMEM_ERR_INVALID,
        "%s: dest (%zu bytes at %p) overlaps source (%zu bytes at %p); use memory that "
        "does not, or that is the same where the contract allows it",
        c->what, to, (void *)c->dest, from, (const void *)c->source);
}

int gpsh_coll_check(const struct gpsh_coll *c, unsigned checks)
{
    const struct shape *shape = &shapes[c->kind];
    size_t n = (size_t)c->team->n;
    if (GPSH_UNLIKELY(c->root < 0 || c->root >= c->team->n))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: root %d is no member of %s, which has %d: pass 0 to %d", c->what,
                         c->root, gpsh_team_name(c->team->handle).text, c->team->n, c->team->n - 1);
    if (GPSH_UNLIKELY(c->dst < 1 || c->sst < 1))
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: strides %td and %td; each is at least 1",
                         c->what, c->dst, c->sst);
    // How much the dest of a collect holds is known when all have told their counts.
    bool unread = checks & GPSH_CHECK_ROOTS_SOURCE && c->kind == GPUSHMEM_COLL_BROADCAST &&
                  c->team->my_rank != c->root;
    bool alike = shape->dest_all == shape->source_all && c->dst == c->sst;
    size_t to = span(c, shape->dest_all ? n : 1, c->dst), from = to;
    if (unread || !alike)
        from = unread ? 0 : span(c, shape->source_all ? n : 1, c->sst);
    int status = to ? gpsh_check_heap(c->what, c->dest, to) : 0;
    if (status == 0 && from)
        status = gpsh_check_heap(c->what, c->source, from);
    return status == 0 && checks & GPSH_CHECK_OVERLAP ? check_overlap(c, to, from) : status;
}

// ---- Calls of members, compared ----

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
    int met = gpsh_team_allgather_any(team, &mine, sizeof mine, calls, c->what);
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
