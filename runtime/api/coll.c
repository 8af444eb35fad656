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

// ---- The rows of gpushmem/impl/signatures.h ----

#define REST_OF_PART  .dst = 1, .sst = 1
#define REST_OF_ROOT  .dst = 1, .sst = 1, .root = root
#define REST_OF_APART .dst = dst, .sst = sst
#define DEFINE_ONE(NAME, KIND, FORM, TYPE, ...)                                                    \
    int gpushmem_##NAME(gpushmem_team_t team, GPSH_P_##FORM(TYPE, ))                               \
    {                                                                                              \
        return collective(&(struct gpsh_coll){.what = __func__,                                    \
                                              .kind = GPUSHMEM_COLL_##KIND,                        \
                                              .dest = (char *)dest,                                \
                                              .source = (const char *)source,                      \
                                              .nelems = nelems,                                    \
                                              REST_OF_##FORM,                                      \
                                              __VA_ARGS__},                                        \
                          team);                                                                   \
    }
#define MOVE(NAME, KIND, FORM, PREFIX, TYPE)                                                       \
    DEFINE_ONE(PREFIX##_##NAME, KIND, FORM, TYPE, .size = sizeof(TYPE))
#define MOVE_MEM(NAME, KIND, FORM, UNUSED) DEFINE_ONE(NAME##mem, KIND, FORM, void, .size = 1)
#define FOLD(NAME, KIND, OP, PREFIX, TYPE)                                                         \
    DEFINE_ONE(PREFIX##_##NAME, KIND, PART, TYPE, .size = sizeof(TYPE),                            \
               .type = GPSH_TYPE_OF(TYPE), .op = GPSH_##OP)

#define DEFINE(NAME, TYPE) GPSH_COLL_MOVES(MOVE, NAME, TYPE)
GPUSHMEM_RMA_TYPES(DEFINE)
GPSH_COLL_MOVES(MOVE_MEM, )
#undef DEFINE
#define DEFINE(NAME, TYPE) GPSH_COLLS_OF_BITS(FOLD, NAME, TYPE)
GPUSHMEM_COLL_BITWISE_TYPES(DEFINE)
#undef DEFINE
#define DEFINE(NAME, TYPE) GPSH_COLLS_OF_ORDER(FOLD, NAME, TYPE)
GPUSHMEM_COLL_ORDERED_TYPES(DEFINE)
#undef DEFINE
#define DEFINE(NAME, TYPE) GPSH_COLLS_OF_SUMS(FOLD, NAME, TYPE)
GPUSHMEM_COLL_TYPES(DEFINE)

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
