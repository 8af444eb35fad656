// SPDX-License-Identifier: BSD-3-Clause
// The collective operations of teams: arguments are checked here.
#include "comm/coll.h"

#include "api/argument.h"
#include "api/coll_compare.h"
#include "api/family.h"
#include "api/team.h"
#include "core/cpu.h"
#include "core/error.h"
#include "gpushmem/coll.h"
#include "observe/call.h"
#include "proxy/device_side.h"

// ---- What is wrong with a call ----

// How many elements apart lie the first of dest and source and the end of the last.
struct extent {
    size_t dest, source;
    bool in_place; // dest == source is legal
};

static int check_overlap(const struct gpsh_coll *c, size_t dest_bytes, size_t source_bytes,
                         bool in_place)
{
    uintptr_t dest = (uintptr_t)c->dest, source = (uintptr_t)c->source;
    if (!dest_bytes || !source_bytes || dest + dest_bytes <= source ||
        source + source_bytes <= dest || (in_place && dest == source))
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_INVALID,
                     "%s: dest (%zu bytes at %p) and source (%zu bytes at %p) overlap%s", c->what,
                     dest_bytes, (void *)c->dest, source_bytes, (const void *)c->source,
                     in_place ? "; they may be the same, or apart" : "");
}

static int check_ranges(const struct gpsh_coll *c, struct extent extent)
{
    size_t dest = gpsh_bytes(extent.dest, c->size), source = gpsh_bytes(extent.source, c->size);
    int status = 0;
    if (c->root < 0 || c->root >= c->team->n)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: the team has no root %d; ranks are 0 to %d",
                         c->what, c->root, c->team->n - 1);
    if (c->dst < 1 || c->sst < 1)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: strides %td and %td; each is at least 1",
                         c->what, c->dst, c->sst);
    if (dest)
        status = gpsh_check_heap(c->what, c->dest, dest);
    if (status == 0 && source)
        status = gpsh_check_heap(c->what, c->source, source);
    return status;
}

// A PE's own part of the whole is legal.
static bool own_part(const struct gpsh_coll *c, const char *whole, const char *part)
{
    return part == whole + (size_t)c->team->my_rank * c->nelems * c->size;
}

// 0: go on. Everything but the team, which is known to be one.
static int check_call(const struct gpsh_coll *c, struct extent extent, bool same_nelems)
{
    int status = check_ranges(c, extent);
    if (GPSH_LIKELY(!c->team->checked))
        return status;
    if (status == 0 && c->nelems && !extent.in_place)
        status = check_overlap(c, extent.dest * c->size, extent.source * c->size, false);
    else if (status == 0 && c->nelems)
        status = check_overlap(c, extent.dest * c->size, extent.source * c->size, true);
    return gpsh_coll_compare(c, status, same_nelems ? GPSH_ALIKE_NELEMS : 0);
}

// ---- Data that moves ----

static int broadcast(const char *what, gpushmem_team_t handle, void *dest, const void *source,
                     size_t size, size_t nelems, int root)
{
    GPSH_CALL(what, -1, gpsh_bytes(nelems, size));
    struct gpsh_coll c = {what, NULL, dest, source, size, nelems, root, 1, 1, 0, 0};
    int status = gpsh_check_team(what, handle, &c.team);
    if (status == 0)
        status = check_call(&c, (struct extent){nelems, nelems, true}, true);
    return status < 0 || nelems == 0 ? status : gpsh_coll_broadcast(&c);
}

static size_t times(size_t nelems, int n)
{
    size_t product;
    return __builtin_mul_overflow(nelems, (size_t)n, &product) ? SIZE_MAX : product;
}

static int fcollect(const char *what, gpushmem_team_t handle, void *dest, const void *source,
                    size_t size, size_t nelems)
{
    GPSH_CALL(what, -1, gpsh_bytes(nelems, size));
    struct gpsh_coll c = {what, NULL, dest, source, size, nelems, 0, 1, 1, 0, 0};
    int status = gpsh_check_team(what, handle, &c.team);
    if (status == 0) {
        // In its own part of dest the source overlaps nothing else of it.
        bool own = own_part(&c, dest, source);
        status = check_call(&c, (struct extent){times(nelems, c.team->n), own ? 0 : nelems, false},
                            true);
    }
    return status < 0 || nelems == 0 ? status : gpsh_coll_fcollect(&c);
}

// How much dest holds is known only when all have told their counts: it is checked up to the heap's
// end by each PE's own part.
static int collect(const char *what, gpushmem_team_t handle, void *dest, const void *source,
                   size_t size, size_t nelems)
{
    GPSH_CALL(what, -1, gpsh_bytes(nelems, size));
    struct gpsh_coll c = {what, NULL, dest, source, size, nelems, 0, 1, 1, 0, 0};
    int status = gpsh_check_team(what, handle, &c.team);
    if (status == 0)
        status = check_call(&c, (struct extent){nelems, nelems, false}, false);
    return status < 0 ? status : gpsh_coll_collect(&c);
}

static int alltoall(const char *what, gpushmem_team_t handle, void *dest, const void *source,
                    size_t size, size_t nelems)
{
    GPSH_CALL(what, -1, gpsh_bytes(nelems, size));
    struct gpsh_coll c = {what, NULL, dest, source, size, nelems, 0, 1, 1, 0, 0};
    int status = gpsh_check_team(what, handle, &c.team);
    if (status == 0) {
        size_t all = times(nelems, c.team->n);
        status = check_call(&c, (struct extent){all, all, false}, true);
    }
    return status < 0 || nelems == 0 ? status : gpsh_coll_alltoall(&c);
}

// Elements from the first to the last of `all` that are `stride` apart.
static size_t span(size_t all, ptrdiff_t stride)
{
    size_t apart;
    if (all == 0 || stride < 1)
        return 0;
    bool far = __builtin_mul_overflow(all - 1, (size_t)stride, &apart);
    return far || apart == SIZE_MAX ? SIZE_MAX : apart + 1;
}

static int alltoalls(const char *what, gpushmem_team_t handle, void *dest, const void *source,
                     ptrdiff_t dst, ptrdiff_t sst, size_t size, size_t nelems)
{
    GPSH_CALL(what, -1, gpsh_bytes(nelems, size));
    struct gpsh_coll c = {what, NULL, dest, source, size, nelems, 0, dst, sst, 0, 0};
    int status = gpsh_check_team(what, handle, &c.team);
    if (status == 0) {
        size_t all = times(nelems, c.team->n);
        status = check_call(&c, (struct extent){span(all, dst), span(all, sst), false}, true);
    }
    return status < 0 || nelems == 0 ? status : gpsh_coll_alltoalls(&c);
}

#define DEFINE_FORMS(NAME, MEM, TYPE, SIZE)                                                        \
    int gpushmem_##NAME##broadcast##MEM(gpushmem_team_t team, TYPE *dest, const TYPE *source,      \
                                        size_t nelems, int root)                                   \
    {                                                                                              \
        return broadcast(__func__, team, dest, source, SIZE, nelems, root);                        \
    }                                                                                              \
    int gpushmem_##NAME##collect##MEM(gpushmem_team_t team, TYPE *dest, const TYPE *source,        \
                                      size_t nelems)                                               \
    {                                                                                              \
        return collect(__func__, team, dest, source, SIZE, nelems);                                \
    }                                                                                              \
    int gpushmem_##NAME##fcollect##MEM(gpushmem_team_t team, TYPE *dest, const TYPE *source,       \
                                       size_t nelems)                                              \
    {                                                                                              \
        return fcollect(__func__, team, dest, source, SIZE, nelems);                               \
    }                                                                                              \
    int gpushmem_##NAME##alltoall##MEM(gpushmem_team_t team, TYPE *dest, const TYPE *source,       \
                                       size_t nelems)                                              \
    {                                                                                              \
        return alltoall(__func__, team, dest, source, SIZE, nelems);                               \
    }                                                                                              \
    int gpushmem_##NAME##alltoalls##MEM(gpushmem_team_t team, TYPE *dest, const TYPE *source,      \
                                        ptrdiff_t dst, ptrdiff_t sst, size_t nelems)               \
    {                                                                                              \
        return alltoalls(__func__, team, dest, source, dst, sst, SIZE, nelems);                    \
    }
#define DEFINE(NAME, TYPE) DEFINE_FORMS(NAME##_, , TYPE, sizeof(TYPE))
GPUSHMEM_RMA_TYPES(DEFINE)
#undef DEFINE
DEFINE_FORMS(, mem, void, 1)

// ---- Reductions ----

static int reduce(const char *what, gpushmem_team_t handle, void *dest, const void *source,
                  enum gpsh_type type, enum gpsh_fold_op op, size_t nelems)
{
    GPSH_CALL(what, -1, gpsh_bytes(nelems, gpsh_type_size(type)));
    struct gpsh_coll c = {what, NULL, dest, source, gpsh_type_size(type), nelems, 0,
                          1,    1,    type, op};
    int status = gpsh_check_team(what, handle, &c.team);
    if (status == 0)
        status = check_call(&c, (struct extent){nelems, nelems, true}, true);
    return status < 0 || nelems == 0 ? status : gpsh_coll_reduce(&c);
}

static int reducescatter(const char *what, gpushmem_team_t handle, void *dest, const void *source,
                         enum gpsh_type type, enum gpsh_fold_op op, size_t nelems)
{
    GPSH_CALL(what, -1, gpsh_bytes(nelems, gpsh_type_size(type)));
    struct gpsh_coll c = {what, NULL, dest, source, gpsh_type_size(type), nelems, 0,
                          1,    1,    type, op};
    int status = gpsh_check_team(what, handle, &c.team);
    if (status == 0) {
        bool own = own_part(&c, source, dest);
        status = check_call(&c, (struct extent){own ? 0 : nelems, times(nelems, c.team->n), false},
                            true);
    }
    return status < 0 || nelems == 0 ? status : gpsh_coll_reducescatter(&c);
}

static int scan(const char *what, gpushmem_team_t handle, void *dest, const void *source,
                enum gpsh_type type, bool inclusive, size_t nelems)
{
    GPSH_CALL(what, -1, gpsh_bytes(nelems, gpsh_type_size(type)));
    struct gpsh_coll c = {what, NULL, dest, source,  gpsh_type_size(type), nelems, 0,
                          1,    1,    type, GPSH_SUM};
    int status = gpsh_check_team(what, handle, &c.team);
    if (status == 0)
        status = check_call(&c, (struct extent){nelems, nelems, true}, true);
    return status < 0 || nelems == 0 ? status : gpsh_coll_scan(&c, inclusive);
}

#define DEFINE_FOLD(NAME, TYPE, WORD, OP)                                                          \
    int gpushmem_##NAME##_##WORD##_reduce(gpushmem_team_t team, TYPE *dest, const TYPE *source,    \
                                          size_t nelems)                                           \
    {                                                                                              \
        return reduce(__func__, team, dest, source, GPSH_TYPE_OF(TYPE), OP, nelems);               \
    }                                                                                              \
    int gpushmem_##NAME##_##WORD##_reducescatter(gpushmem_team_t team, TYPE *dest,                 \
                                                 const TYPE *source, size_t nelems)                \
    {                                                                                              \
        return reducescatter(__func__, team, dest, source, GPSH_TYPE_OF(TYPE), OP, nelems);        \
    }
#define DEFINE(NAME, TYPE)                                                                         \
    DEFINE_FOLD(NAME, TYPE, and, GPSH_AND)                                                         \
    DEFINE_FOLD(NAME, TYPE, or, GPSH_OR)                                                           \
    DEFINE_FOLD(NAME, TYPE, xor, GPSH_XOR)
GPUSHMEM_COLL_BITWISE_TYPES(DEFINE)
#undef DEFINE
#define DEFINE(NAME, TYPE)                                                                         \
    DEFINE_FOLD(NAME, TYPE, min, GPSH_MIN)                                                         \
    DEFINE_FOLD(NAME, TYPE, max, GPSH_MAX)
GPUSHMEM_COLL_ORDERED_TYPES(DEFINE)
#undef DEFINE
#define DEFINE(NAME, TYPE)                                                                         \
    DEFINE_FOLD(NAME, TYPE, sum, GPSH_SUM)                                                         \
    DEFINE_FOLD(NAME, TYPE, prod, GPSH_PROD)                                                       \
    int gpushmem_##NAME##_sum_inscan(gpushmem_team_t team, TYPE *dest, const TYPE *source,         \
                                     size_t nelems)                                                \
    {                                                                                              \
        return scan(__func__, team, dest, source, GPSH_TYPE_OF(TYPE), true, nelems);               \
    }                                                                                              \
    int gpushmem_##NAME##_sum_exscan(gpushmem_team_t team, TYPE *dest, const TYPE *source,         \
                                     size_t nelems)                                                \
    {                                                                                              \
        return scan(__func__, team, dest, source, GPSH_TYPE_OF(TYPE), false, nelems);              \
    }
GPUSHMEM_COLL_TYPES(DEFINE)
#undef DEFINE

// ---- barrier ----

int gpushmem_barrier(gpushmem_team_t handle)
{
    GPSH_CALL(__func__, -1, 0);
    struct gpsh_team *team;
    int status = gpsh_check_team(__func__, handle, &team);
    if (status < 0)
        return status;
    status = gpsh_context_quiet(&gpsh_default_context, GPSH_ALL_PES);
    int device = gpsh_device_side_quiet(GPSH_CONTEXT_DEFAULT);
    status = status < 0 ? status : device;
    int met = gpsh_team_meet(team, __func__);
    return status < 0 ? status : met;
}
