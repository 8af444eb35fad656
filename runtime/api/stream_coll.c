// SPDX-License-Identifier: BSD-3-Clause
// Collectives of streams: arguments are checked here, then the operation goes to a stream of the
// GPU, to one of the emulation, or is done at once.
#include <stdio.h>

#include "api/argument.h"
#include "api/coll_check.h"
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

// No kernel will carry the call out: the host does. Nothing can be in the only stream there is.
static bool at_once(void)
{
    return !gpsh_heap()->device && !gpsh_emulation();
}

static int check_stream(const struct call *call)
{
    if (!at_once() || !call->stream)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                     "%s: the symmetric heap is in host memory, so nothing can be enqueued in "
                     "stream %p of a GPU; set GPUSHMEM_HEAP_KIND=device, or pass NULL to have it "
                     "done at once",
                     call->function, (void *)call->stream);
}

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
                         "%s: %s was made when GPUSHMEM_STREAM_TEAMS=%lld others existed, and "
                         "has no memory for operations of streams; raise that setting",
                         function, gpsh_team_name(team).text,
                         (long long)gpsh_settings()->stream_teams);
    return 0;
}

static int check_team(const struct call *call, struct teams *teams)
{
    gpushmem_team_t team = call->op.team;
    int status = gpsh_check_ready(call->function);
    if (status)
        return status;
    teams->host = gpsh_team_of(team);
    if (!teams->host)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: %d is no team of this PE; pass a handle of a split that was not "
                         "destroyed, or a predefined team (streams take no channels)",
                         call->function, team);
    status = check_stream(call);
    if (status || at_once())
        return status;
    return check_device_team(call->function, team, &teams->device);
}

// Kernels know the heap alone; what is done at once may name other symmetric objects, too.
static int check_object(const char *function, const void *sym)
{
    if (gpsh_offset(sym) < gpsh_heap_bytes())
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_ADDRESS,
                     "%s: %p is static data of the program, which is not in the symmetric heap: "
                     "streams and kernels reach no other symmetric memory; pass an address from "
                     "gpushmem_malloc",
                     function, sym);
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
    if (status || at_once() || !c->nelems || c->kind <= GPUSHMEM_COLL_BARRIER)
        return status;
    status = check_object(c->what, c->dest);
    bool reads = c->kind != GPUSHMEM_COLL_BROADCAST || c->team->my_rank == c->root;
    return status || !reads ? status : check_object(c->what, c->source);
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

static int submit_two(const struct gpushmem_coll_op *op, const struct teams *teams,
                      gpushmem_stream_t stream)
{
    struct gpushmem_coll_op two[2];
    gpsh_coll_in_two(op, &teams->device.entry, two);
    int status = submit_one(&two[0], teams, choose(&two[0], teams), stream);
    return status ? status : submit_one(&two[1], teams, choose(&two[1], teams), stream);
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
    if (at_once())
        return do_now(call, teams->host);
    struct gpsh_coll_choice choice = choose(&call->op, teams);
    if (choice.way == GPUSHMEM_COLL_TWO)
        return submit_two(&call->op, teams, call->stream);
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

static int meet(const char *function, int kind, gpushmem_team_t team, gpushmem_stream_t stream)
{
    return collective(
        (struct call){function, {.kind = (uint8_t)kind, .team = team, .width = 1}, stream});
}

static int copy(const char *function, int kind, gpushmem_team_t team, void *dest,
                const void *source, size_t n, size_t width, int root, gpushmem_stream_t stream)
{
    return collective((struct call){function,
                                    {.kind = (uint8_t)kind,
                                     .team = team,
                                     .dest = dest,
                                     .source = source,
                                     .n = n,
                                     .width = (uint32_t)width,
                                     .root = root},
                                    stream});
}

static int exchange_apart(const char *function, gpushmem_team_t team, void *dest,
                          const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, size_t width,
                          gpushmem_stream_t stream)
{
    return collective((struct call){function,
                                    {.kind = GPUSHMEM_COLL_ALLTOALLS,
                                     .team = team,
                                     .dest = dest,
                                     .source = source,
                                     .n = n,
                                     .width = (uint32_t)width,
                                     .dest_stride = dst,
                                     .source_stride = sst},
                                    stream});
}

static int fold(const char *function, int kind, gpushmem_team_t team, void *dest,
                const void *source, size_t n, size_t width, int type, int how,
                gpushmem_stream_t stream)
{
    return collective((struct call){function,
                                    {.kind = (uint8_t)kind,
                                     .team = team,
                                     .dest = dest,
                                     .source = source,
                                     .n = n,
                                     .width = (uint32_t)width,
                                     .type = (uint8_t)type,
                                     .fold = (uint8_t)how},
                                    stream});
}

// ---- The public names ----

int gpushmem_team_sync_on_stream(gpushmem_team_t team, gpushmem_stream_t stream)
{
    return meet(__func__, GPUSHMEM_COLL_SYNC, team, stream);
}

int gpushmem_barrier_on_stream(gpushmem_team_t team, gpushmem_stream_t stream)
{
    return meet(__func__, GPUSHMEM_COLL_BARRIER, team, stream);
}

#define DEFINE(PREFIX, MEM, TYPE, WIDTH)                                                           \
    int PREFIX##broadcast##MEM##_on_stream(gpushmem_team_t team, TYPE *dest, const TYPE *source,   \
                                           size_t n, int root, gpushmem_stream_t stream)           \
    {                                                                                              \
        return copy(__func__, GPUSHMEM_COLL_BROADCAST, team, dest, source, n, WIDTH, root,         \
                    stream);                                                                       \
    }                                                                                              \
    int PREFIX##collect##MEM##_on_stream(gpushmem_team_t team, TYPE *dest, const TYPE *source,     \
                                         size_t n, gpushmem_stream_t stream)                       \
    {                                                                                              \
        return copy(__func__, GPUSHMEM_COLL_COLLECT, team, dest, source, n, WIDTH, 0, stream);     \
    }                                                                                              \
    int PREFIX##fcollect##MEM##_on_stream(gpushmem_team_t team, TYPE *dest, const TYPE *source,    \
                                          size_t n, gpushmem_stream_t stream)                      \
    {                                                                                              \
        return copy(__func__, GPUSHMEM_COLL_FCOLLECT, team, dest, source, n, WIDTH, 0, stream);    \
    }                                                                                              \
    int PREFIX##alltoall##MEM##_on_stream(gpushmem_team_t team, TYPE *dest, const TYPE *source,    \
                                          size_t n, gpushmem_stream_t stream)                      \
    {                                                                                              \
        return copy(__func__, GPUSHMEM_COLL_ALLTOALL, team, dest, source, n, WIDTH, 0, stream);    \
    }                                                                                              \
    int PREFIX##alltoalls##MEM##_on_stream(gpushmem_team_t team, TYPE *dest, const TYPE *source,   \
                                           ptrdiff_t dst, ptrdiff_t sst, size_t n,                 \
                                           gpushmem_stream_t stream)                               \
    {                                                                                              \
        return exchange_apart(__func__, team, dest, source, dst, sst, n, WIDTH, stream);           \
    }
#define DEFINE_TYPE(NAME, TYPE) DEFINE(gpushmem_##NAME##_, , TYPE, sizeof(TYPE))
DEFINE(gpushmem_, mem, void, 1)
GPUSHMEM_RMA_TYPES(DEFINE_TYPE)

#define DEFINE_FOLD(FUNCTION, KIND, TYPE, NUMBER, FOLD)                                            \
    int FUNCTION(gpushmem_team_t team, TYPE *dest, const TYPE *source, size_t n,                   \
                 gpushmem_stream_t stream)                                                         \
    {                                                                                              \
        return fold(__func__, KIND, team, dest, source, n, sizeof(TYPE), NUMBER, FOLD, stream);    \
    }
#define DEFINE_REDUCE(NAME, TYPE, NUMBER, WORD, FOLD, UNUSED)                                      \
    DEFINE_FOLD(gpushmem_##NAME##_##WORD##_reduce_on_stream, GPUSHMEM_COLL_REDUCE, TYPE, NUMBER,   \
                FOLD)                                                                              \
    DEFINE_FOLD(gpushmem_##NAME##_##WORD##_reducescatter_on_stream, GPUSHMEM_COLL_REDUCESCATTER,   \
                TYPE, NUMBER, FOLD)
#define DEFINE_SCANS(NAME, TYPE, NUMBER)                                                           \
    DEFINE_FOLD(gpushmem_##NAME##_sum_inscan_on_stream, GPUSHMEM_COLL_INSCAN, TYPE, NUMBER,        \
                GPUSHMEM_COLL_SUM)                                                                 \
    DEFINE_FOLD(gpushmem_##NAME##_sum_exscan_on_stream, GPUSHMEM_COLL_EXSCAN, TYPE, NUMBER,        \
                GPUSHMEM_COLL_SUM)
#define DEFINE_ALL(NAME, TYPE, NUMBER)                                                             \
    GPSH_COLL_FOLDS_OF_ALL(DEFINE_REDUCE, NAME, TYPE, NUMBER, )                                    \
    DEFINE_SCANS(NAME, TYPE, NUMBER)
#define DEFINE_COMPLEX(NAME, TYPE, NUMBER)                                                         \
    GPSH_COLL_FOLDS_OF_SUMS(DEFINE_REDUCE, NAME, TYPE, NUMBER, )                                   \
    DEFINE_SCANS(NAME, TYPE, NUMBER)
#define DEFINE_BITS(NAME, TYPE, NUMBER) GPSH_COLL_FOLDS_OF_BITS(DEFINE_REDUCE, NAME, TYPE, NUMBER, )
GPUSHMEM_COLL_NUMBERS(DEFINE_ALL)
GPUSHMEM_COLL_COMPLEX(DEFINE_COMPLEX)
GPUSHMEM_COLL_INTEGERS(DEFINE_BITS)
