// SPDX-License-Identifier: BSD-3-Clause
// Collectives of streams: arguments are checked here, then the operation goes to a stream of the
// GPU, to one of the emulation, or is done at once.
#include <stdio.h>

#include "api/argument.h"
#include "api/coll.h"
#include "comm/coll.h"
#include "core/config.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/team_name.h"
#include "gpushmem/device_host.h"
#include "gpushmem/impl/coll_types.h"
#include "job/job.h"
#include "memory/heap.h"
#include "proxy/device_teams.h"
#include "proxy/emulation.h"
#include "stream/coll_choice.h"
#include "stream/coll_gpu.h"

// What a call names, before it is known to be legal.
struct call {
    const char *function;
    struct gpushmem_coll_op op;
    gpushmem_stream_t stream;
};

// ---- Checks ----

// A team as the host and as kernels know it.
struct teams {
    struct gpsh_team *host;
    struct gpsh_device_team_view device;
};

// What kernels know of the team.
static int check_device_team(const char *function, gpushmem_team_t team,
                             struct gpsh_device_team_view *view)
{
    struct gpushmem_dev handle;
    int status = gpushmem_device_handle(&handle); // makes the kernels' table of teams
    if (status)
        return status;
    if (!gpsh_device_teams_view(team, view))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: kernels do not know %s any more: it is being destroyed", function,
                         gpsh_team_name(team).text);
    if (view->entry.flags & GPUSHMEM_DEV_TEAM_LOST)
        return gpsh_fail(GPUSHMEM_ERR_PE_FAILED,
                         "%s: %s has lost a member and can only be destroyed; make a team of "
                         "the PEs that are left",
                         function, gpsh_team_name(team).text);
    if (!(view->entry.flags & GPUSHMEM_DEV_TEAM_STREAM))
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "%s: %s has no memory for operations of streams: of "
                         "GPUSHMEM_TEAM_MEMORY=%lluM too little was left when it was made; raise "
                         "that setting, or destroy other teams before",
                         function, gpsh_team_name(team).text,
                         (unsigned long long)gpsh_settings()->team_memory >> 20);
    return 0;
}

static int check_team(const struct call *call, struct teams *teams)
{
    gpushmem_team_t team = call->op.team;
    int status = gpsh_check_ready(call->function);
    if (status)
        return status;
    teams->host = gpsh_team_of(team);
    if (!teams->host && team == GPUSHMEM_TEAM_INVALID)
        return gpsh_check_team(call->function, team, &teams->host); // which has a sentence for it
    if (!teams->host)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: %d is no team of this PE; pass a handle of a split that was not "
                         "destroyed, or a predefined team (streams take no channels)",
                         call->function, team);
    status = gpsh_check_stream(call->function, call->stream);
    if (status || gpsh_stream_is_done_now())
        return status;
    return check_device_team(call->function, team, &teams->device);
}

GPUSHMEM_STATIC_ASSERT((int)GPSH_INT8 == (int)GPUSHMEM_COLL_INT8 &&
                           (int)GPSH_UINT64 == (int)GPUSHMEM_COLL_UINT64 &&
                           (int)GPSH_HALF == (int)GPUSHMEM_COLL_HALF &&
                           (int)GPSH_COMPLEXD == (int)GPUSHMEM_COLL_COMPLEXD &&
                           (int)GPSH_AND == (int)GPUSHMEM_COLL_AND &&
                           (int)GPSH_PROD == (int)GPUSHMEM_COLL_PROD,
                       "the host counts types and operators as kernels do");

// The call as one of the host.
static struct gpsh_coll host_call(const struct call *call, struct gpsh_team *team)
{
    const struct gpushmem_coll_op *op = &call->op;
    return (struct gpsh_coll){call->function,
                              (enum gpushmem_coll_kind)op->kind,
                              team,
                              op->dest,
                              op->source,
                              op->width,
                              op->n,
                              op->root,
                              op->dest_stride,
                              op->source_stride,
                              (enum gpsh_type)op->type,
                              (enum gpsh_fold_op)op->fold};
}

static int check_arguments(const struct gpsh_coll *c)
{
    bool overlap = c->kind != GPUSHMEM_COLL_COLLECT; // there it depends on what the others bring
    int status = gpsh_coll_check(c, GPSH_CHECK_ROOTS_SOURCE | (overlap ? +GPSH_CHECK_OVERLAP : 0u));
    if (status || gpsh_stream_is_done_now() || !c->nelems || c->kind <= GPUSHMEM_COLL_BARRIER)
        return status;
    status = gpsh_check_stream_object(c->what, c->dest, 1);
    bool reads = c->kind != GPUSHMEM_COLL_BROADCAST || c->team->my_rank == c->root;
    return status || !reads ? status : gpsh_check_stream_object(c->what, c->source, 1);
}

static int check(const struct call *call, struct teams *teams)
{
    const struct gpushmem_coll_op *op = &call->op;
    int status = check_team(call, teams);
    if (status)
        return status;
    struct gpsh_coll c = host_call(call, teams->host);
    status = check_arguments(&c);
    if (GPSH_LIKELY(!teams->host->checked))
        return status;
    c.dest = (char *)(uintptr_t)gpushmem_coll_all_dest(op, teams->host->my_rank);
    c.source = gpushmem_coll_all_source(op, teams->host->my_rank);
    bool meets = op->kind <= GPUSHMEM_COLL_BARRIER;
    unsigned alike = op->kind != GPUSHMEM_COLL_COLLECT ? +GPSH_ALIKE_NELEMS : 0u;
    if (!meets && op->n && op->kind != GPUSHMEM_COLL_COLLECT)
        alike |= op->kind == GPUSHMEM_COLL_BROADCAST ? GPSH_ALIKE_DEST
                                                     : GPSH_ALIKE_DEST | GPSH_ALIKE_SOURCE;
    return gpsh_coll_compare(&c, status, alike);
}

// ---- Submission ----

// Members other than the root may pass any source: so the root's dest is the source of all.
static int broadcast_now(struct gpsh_coll c)
{
    int status = 0;
    if (c.team->my_rank == c.root && c.dest != c.source)
        status = gpsh_coll_copy(c.dest, c.source, c.nelems * c.size);
    c.source = c.dest;
    return status ? gpsh_team_break(c.team, status) : gpsh_coll_run(&c);
}

static int do_now(const struct call *call, struct gpsh_team *team)
{
    const struct gpsh_coll c = host_call(call, team);
    switch (call->op.kind) {
    case GPUSHMEM_COLL_SYNC: return gpushmem_team_sync(call->op.team);
    case GPUSHMEM_COLL_BARRIER: return gpushmem_barrier(call->op.team);
    case GPUSHMEM_COLL_BROADCAST: return broadcast_now(c);
    default: return gpsh_coll_run(&c);
    }
}

static struct gpsh_coll_choice choose(const struct gpushmem_coll_op *op, const struct teams *teams)
{
    return gpsh_coll_choose(op, &teams->device.entry, &teams->device.nodes, op->dest != op->source,
                            &gpsh_coll_limits);
}

// The way is the one that a GPU's stream would take.
static int emulate(gpsh_enqueue *emulated, const struct gpushmem_coll_op *chosen,
                   gpushmem_stream_t stream)
{
    const struct gpushmem_stream_op op = {.kind = GPUSHMEM_STREAM_COLL, .source = chosen};
    return emulated(stream, &op);
}

static int submit_one(const struct gpushmem_coll_op *op, const struct teams *teams,
                      struct gpsh_coll_choice choice, gpushmem_stream_t stream)
{
    gpsh_enqueue *emulated = gpsh_emulation();
    struct gpushmem_coll_op chosen = *op;
    chosen.way = (uint8_t)choice.way;
    return emulated ? emulate(emulated, &chosen, stream)
                    : gpsh_coll_gpu_submit(&chosen, &teams->device, choice, stream);
}

// A reduce in place by nodes: as much at a time as can be kept, after which it is kept.
static int submit_segments(const struct gpushmem_coll_op *op, const struct teams *teams,
                           struct gpsh_coll_choice choice, gpushmem_stream_t stream)
{
    const struct gpsh_device_nodes *nodes = &teams->device.nodes;
    const uint64_t most = gpsh_coll_segment(op, teams->host->n, nodes);
    struct gpsh_coll_choice keep = choice;
    keep.way = GPUSHMEM_COLL_KEEP;
    int status = 0;
    for (uint64_t at = 0; at < op->n && !status; at += most) {
        struct gpushmem_coll_op segment = *op;
        segment.n = op->n - at < most ? op->n - at : most;
        segment.dest = (char *)op->dest + at * op->width;
        segment.source = segment.dest;
        if (nodes->mine > 0)
            status = submit_one(&segment, teams, keep, stream);
        if (!status)
            status = submit_one(&segment, teams, choice, stream);
    }
    return status;
}

static int submit(const struct call *call, const struct teams *teams)
{
    if (gpsh_stream_is_done_now())
        return do_now(call, teams->host);
    struct gpsh_coll_choice choice = choose(&call->op, teams);
    bool in_place = call->op.dest == call->op.source && call->op.kind == GPUSHMEM_COLL_REDUCE;
    if (choice.way == GPUSHMEM_COLL_NODES && in_place)
        return submit_segments(&call->op, teams, choice, call->stream);
    return submit_one(&call->op, teams, choice, call->stream);
}

static int collective(struct call call)
{
    struct teams teams;
    if (call.op.kind != GPUSHMEM_COLL_ALLTOALLS)
        call.op.dest_stride = call.op.source_stride = 1;
    int status = check(&call, &teams);
    bool nothing =
        call.op.kind > GPUSHMEM_COLL_BARRIER && call.op.kind != GPUSHMEM_COLL_COLLECT && !call.op.n;
    return status || nothing ? status : submit(&call, &teams);
}

// ---- The public names, by the rows of gpushmem/impl/signatures.h ----

int gpushmem_team_sync_on_stream(gpushmem_team_t team, gpushmem_stream_t stream)
{
    return collective(
        (struct call){__func__, {.kind = GPUSHMEM_COLL_SYNC, .team = team, .width = 1}, stream});
}

int gpushmem_barrier_on_stream(gpushmem_team_t team, gpushmem_stream_t stream)
{
    return collective(
        (struct call){__func__, {.kind = GPUSHMEM_COLL_BARRIER, .team = team, .width = 1}, stream});
}

#define REST_OF_PART  .root = 0
#define REST_OF_ROOT  .root = root
#define REST_OF_APART .dest_stride = dst, .source_stride = sst
#define DEFINE_ONE(NAME, KIND, FORM, TYPE, ...)                                                    \
    int gpushmem_##NAME##_on_stream(gpushmem_team_t team, GPSH_P_##FORM(TYPE, ),                   \
                                    gpushmem_stream_t stream)                                      \
    {                                                                                              \
        return collective((struct call){__func__,                                                  \
                                        {.kind = GPUSHMEM_COLL_##KIND,                             \
                                         .team = team,                                             \
                                         .dest = dest,                                             \
                                         .source = source,                                         \
                                         .n = nelems,                                              \
                                         REST_OF_##FORM,                                           \
                                         __VA_ARGS__},                                             \
                                        stream});                                                  \
    }
#define MOVE(NAME, KIND, FORM, PREFIX, TYPE)                                                       \
    DEFINE_ONE(PREFIX##_##NAME, KIND, FORM, TYPE, .width = sizeof(TYPE))
#define MOVE_MEM(NAME, KIND, FORM, UNUSED) DEFINE_ONE(NAME##mem, KIND, FORM, void, .width = 1)
#define FOLD(NAME, KIND, OP, PREFIX, TYPE, NUMBER)                                                 \
    DEFINE_ONE(PREFIX##_##NAME, KIND, PART, TYPE, .width = sizeof(TYPE), .type = NUMBER,           \
               .fold = GPUSHMEM_COLL_##OP)

#define DEFINE_MOVES(NAME, TYPE)        GPSH_COLL_MOVES(MOVE, NAME, TYPE)
#define DEFINE_BITS(NAME, TYPE, NUMBER) GPSH_COLLS_OF_BITS(FOLD, NAME, TYPE, NUMBER)
#define DEFINE_SUMS(NAME, TYPE, NUMBER) GPSH_COLLS_OF_SUMS(FOLD, NAME, TYPE, NUMBER)
#define DEFINE_ALL(NAME, TYPE, NUMBER)                                                             \
    GPSH_COLLS_OF_ORDER(FOLD, NAME, TYPE, NUMBER)                                                  \
    DEFINE_SUMS(NAME, TYPE, NUMBER)
GPSH_COLL_MOVES(MOVE_MEM, )
GPUSHMEM_RMA_TYPES(DEFINE_MOVES)
GPUSHMEM_COLL_NUMBERS(DEFINE_ALL)
GPUSHMEM_COLL_COMPLEX(DEFINE_SUMS)
GPUSHMEM_COLL_INTEGERS(DEFINE_BITS)
DEFINE_ONE(double2_maxloc_reduce, REDUCE, PART, gpushmem_double2, .width = sizeof *dest,
           .type = GPUSHMEM_COLL_COMPLEXD, .fold = GPUSHMEM_COLL_MAX)
