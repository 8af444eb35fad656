// SPDX-License-Identifier: BSD-3-Clause
// The collective operations of teams.
#include "gpushmem/coll.h"

#include "api/argument.h"
#include "api/coll_check.h"
#include "core/cpu.h"
#include "observe/call.h"
#include "proxy/device_side.h"

static int collective(struct gpsh_coll *c, gpushmem_team_t team)
{
    GPSH_CALL(c->what, -1, gpsh_bytes(c->nelems, c->size));
    int status = gpsh_check_team(c->what, team, &c->team);
    if (GPSH_UNLIKELY(status < 0))
        return status;
    bool collects = c->kind == GPUSHMEM_COLL_COLLECT, checked = c->team->checked;
    status = gpsh_coll_check(c, checked ? +GPSH_CHECK_OVERLAP : 0u);
    if (GPSH_UNLIKELY(checked))
        status = gpsh_coll_compare(c, status, collects ? 0u : +GPSH_ALIKE_NELEMS);
    return status < 0 || (c->nelems == 0 && !collects) ? status : gpsh_coll_run(c);
}

// ---- Data that moves ----

static int move(const char *what, enum gpushmem_coll_kind kind, gpushmem_team_t team, void *dest,
                const void *source, size_t size, size_t nelems, int root)
{
    return collective(
        &(struct gpsh_coll){what, kind, NULL, dest, source, size, nelems, root, 1, 1, 0, 0}, team);
}

static int alltoalls(const char *what, gpushmem_team_t team, void *dest, const void *source,
                     ptrdiff_t dst, ptrdiff_t sst, size_t size, size_t nelems)
{
    return collective(&(struct gpsh_coll){what, GPUSHMEM_COLL_ALLTOALLS, NULL, dest, source, size,
                                          nelems, 0, dst, sst, 0, 0},
                      team);
}

#define DEFINE_FORMS(NAME, MEM, TYPE, SIZE)                                                        \
    int gpushmem_##NAME##broadcast##MEM(gpushmem_team_t team, TYPE *dest, const TYPE *source,      \
                                        size_t nelems, int root)                                   \
    {                                                                                              \
        return move(__func__, GPUSHMEM_COLL_BROADCAST, team, dest, source, SIZE, nelems, root);    \
    }                                                                                              \
    int gpushmem_##NAME##collect##MEM(gpushmem_team_t team, TYPE *dest, const TYPE *source,        \
                                      size_t nelems)                                               \
    {                                                                                              \
        return move(__func__, GPUSHMEM_COLL_COLLECT, team, dest, source, SIZE, nelems, 0);         \
    }                                                                                              \
    int gpushmem_##NAME##fcollect##MEM(gpushmem_team_t team, TYPE *dest, const TYPE *source,       \
                                       size_t nelems)                                              \
    {                                                                                              \
        return move(__func__, GPUSHMEM_COLL_FCOLLECT, team, dest, source, SIZE, nelems, 0);        \
    }                                                                                              \
    int gpushmem_##NAME##alltoall##MEM(gpushmem_team_t team, TYPE *dest, const TYPE *source,       \
                                       size_t nelems)                                              \
    {                                                                                              \
        return move(__func__, GPUSHMEM_COLL_ALLTOALL, team, dest, source, SIZE, nelems, 0);        \
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

static int fold(const char *what, enum gpushmem_coll_kind kind, gpushmem_team_t team, void *dest,
                const void *source, enum gpsh_type type, enum gpsh_fold_op op, size_t nelems)
{
    return collective(&(struct gpsh_coll){what, kind, NULL, dest, source, gpsh_type_size(type),
                                          nelems, 0, 1, 1, type, op},
                      team);
}

#define DEFINE_FOLD(NAME, TYPE, WORD, OP)                                                          \
    int gpushmem_##NAME##_##WORD##_reduce(gpushmem_team_t team, TYPE *dest, const TYPE *source,    \
                                          size_t nelems)                                           \
    {                                                                                              \
        return fold(__func__, GPUSHMEM_COLL_REDUCE, team, dest, source, GPSH_TYPE_OF(TYPE), OP,    \
                    nelems);                                                                       \
    }                                                                                              \
    int gpushmem_##NAME##_##WORD##_reducescatter(gpushmem_team_t team, TYPE *dest,                 \
                                                 const TYPE *source, size_t nelems)                \
    {                                                                                              \
        return fold(__func__, GPUSHMEM_COLL_REDUCESCATTER, team, dest, source, GPSH_TYPE_OF(TYPE), \
                    OP, nelems);                                                                   \
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
        return fold(__func__, GPUSHMEM_COLL_INSCAN, team, dest, source, GPSH_TYPE_OF(TYPE),        \
                    GPSH_SUM, nelems);                                                             \
    }                                                                                              \
    int gpushmem_##NAME##_sum_exscan(gpushmem_team_t team, TYPE *dest, const TYPE *source,         \
                                     size_t nelems)                                                \
    {                                                                                              \
        return fold(__func__, GPUSHMEM_COLL_EXSCAN, team, dest, source, GPSH_TYPE_OF(TYPE),        \
                    GPSH_SUM, nelems);                                                             \
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
    int met = gpsh_team_sync(team, __func__);
    return status < 0 ? status : met;
}
