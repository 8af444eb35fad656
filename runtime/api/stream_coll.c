// SPDX-License-Identifier: BSD-3-Clause
// Collectives of streams: arguments are checked here, then the operation goes to a stream of the
// GPU or of the emulation.
#include <stdio.h>

#include "api/argument.h"
#include "gpushmem/device_host.h"
#include "gpushmem/impl/coll_types.h"
#include "proxy/device_teams.h"
#include "proxy/emulation.h"
#include "stream/coll_gpu.h"

// What a call names, before it is known to be legal.
struct call {
    const char *function;
    struct gpushmem_coll_op op;
    gpushmem_stream_t stream;
};

// ---- Checks ----

static int check_team(const char *function, gpushmem_team_t team, struct gpushmem_dev_team *entry,
                      const int32_t **pes)
{
    struct gpushmem_dev handle;
    int status = gpsh_check_ready(function);
    if (!status)
        status = gpushmem_device_handle(&handle); // the kernels' table of teams
    if (status)
        return status;
    if (!gpsh_device_teams_entry(team, entry, pes))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: %d is no team of this PE; pass a handle of a split that was not "
                         "destroyed, or a predefined team (streams take no channels)",
                         function, team);
    if (entry->flags & GPUSHMEM_DEV_TEAM_LOST)
        return gpsh_fail(GPUSHMEM_ERR_PE_FAILED,
                         "%s: team %d has lost a member and can only be destroyed; make a team of "
                         "the PEs that are left",
                         function, team);
    if (!(entry->flags & GPUSHMEM_DEV_TEAM_STREAM))
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "%s: team %d was made when GPUSHMEM_STREAM_TEAMS=%lld others existed, and "
                         "has no memory for operations of streams; raise that setting",
                         function, team, (long long)gpsh.settings.stream_teams);
    return 0;
}

// Bytes from the first to the last element of n blocks.
static size_t span(size_t blocks, const struct gpushmem_coll_op *op, int64_t stride)
{
    size_t elements = gpsh_bytes(op->n, blocks);
    if (!elements || elements == SIZE_MAX)
        return elements;
    size_t apart = gpsh_bytes(elements - 1, (size_t)stride);
    return apart == SIZE_MAX ? apart : gpsh_bytes(apart + 1, op->width);
}

static size_t dest_bytes(const struct gpushmem_coll_op *op, int n)
{
    bool all = op->kind == GPUSHMEM_COLL_FCOLLECT || op->kind == GPUSHMEM_COLL_ALLTOALL ||
               op->kind == GPUSHMEM_COLL_ALLTOALLS;
    return span(all ? (size_t)n : 1, op, op->dest_stride);
}

static size_t source_bytes(const struct gpushmem_coll_op *op, int n)
{
    bool all = op->kind == GPUSHMEM_COLL_REDUCESCATTER || op->kind == GPUSHMEM_COLL_ALLTOALL ||
               op->kind == GPUSHMEM_COLL_ALLTOALLS;
    return span(all ? (size_t)n : 1, op, op->source_stride);
}

// dest may be source where a member reads its own block before it writes it.
static bool may_overlap(const struct gpushmem_coll_op *op, const struct gpushmem_dev_team *team)
{
    size_t bytes = op->n * op->width, mine = (size_t)team->my_rank * bytes;
    const char *source = op->source;
    char *dest = op->dest;
    switch (op->kind) {
    case GPUSHMEM_COLL_BROADCAST: return dest == source || op->root != team->my_rank;
    case GPUSHMEM_COLL_REDUCE:
    case GPUSHMEM_COLL_INSCAN:
    case GPUSHMEM_COLL_EXSCAN: return dest == source;
    case GPUSHMEM_COLL_FCOLLECT: return source == dest + mine;
    case GPUSHMEM_COLL_REDUCESCATTER: return dest == source + mine;
    case GPUSHMEM_COLL_COLLECT: return true; // depends on what the others bring
    default: return false;
    }
}

static int check_memory(const struct call *call, const struct gpushmem_dev_team *team)
{
    const struct gpushmem_coll_op *op = &call->op;
    size_t to = dest_bytes(op, team->n), from = source_bytes(op, team->n);
    bool reads = op->kind != GPUSHMEM_COLL_BROADCAST || op->root == team->my_rank;
    int status = gpsh_check_remote(call->function, op->dest, to, gpsh.my_pe);
    if (!status && reads)
        status = gpsh_check_remote(call->function, op->source, from, gpsh.my_pe);
    if (status || !to || !from || may_overlap(op, team))
        return status;
    const char *dest = op->dest, *source = op->source;
    if (dest + to <= source || source + from <= dest)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_INVALID,
                     "%s: dest (%p, %zu bytes) overlaps source (%p, %zu bytes); use memory that "
                     "does not, or that is the same where the contract allows it",
                     call->function, op->dest, to, op->source, from);
}

static int check(const struct call *call, struct gpushmem_dev_team *team, const int32_t **pes)
{
    const struct gpushmem_coll_op *op = &call->op;
    int status = check_team(call->function, op->team, team, pes);
    if (status)
        return status;
    if (op->kind == GPUSHMEM_COLL_BROADCAST && (op->root < 0 || op->root >= team->n))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: root %d is no member of team %d, which has %d: pass 0 to %d",
                         call->function, op->root, op->team, team->n, team->n - 1);
    if (op->dest_stride < 1 || op->source_stride < 1)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: strides are at least 1, but dst is %lld and "
                         "sst %lld",
                         call->function, (long long)op->dest_stride, (long long)op->source_stride);
    return check_memory(call, team);
}

// ---- Submission ----

static int submit(const struct call *call, const struct gpushmem_dev_team *team, const int32_t *pes)
{
    const struct gpushmem_stream_op op = {.kind = GPUSHMEM_STREAM_COLL, .source = &call->op};
    gpsh_enqueue *emulated = gpsh_emulation();
    if (emulated)
        return emulated(call->stream, &op);
    if (GPSH_LIKELY(gpsh.device_heap))
        return gpsh_coll_gpu_submit(&call->op, team, pes, call->stream);
    return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                     "%s: the symmetric heap is in host memory and this program has no kernels, so "
                     "there are no streams; call the host's collective, or set "
                     "GPUSHMEM_HEAP_KIND=device",
                     call->function);
}

static int collective(struct call call)
{
    struct gpushmem_dev_team team;
    const int32_t *pes;
    call.op.dest_stride = call.op.dest_stride ? call.op.dest_stride : 1;
    call.op.source_stride = call.op.source_stride ? call.op.source_stride : 1;
    int status = check(&call, &team, &pes);
    bool nothing =
        call.op.kind > GPUSHMEM_COLL_BARRIER && call.op.kind != GPUSHMEM_COLL_COLLECT && !call.op.n;
    return status || nothing ? status : submit(&call, &team, pes);
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
                                     .dest_stride = dst ? dst : -1,
                                     .source_stride = sst ? sst : -1},
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
#define DEFINE_ALL(NAME, TYPE, NUMBER)                                                             \
    GPSH_COLL_FOLDS_OF_ALL(DEFINE_REDUCE, NAME, TYPE, NUMBER, )                                    \
    DEFINE_FOLD(gpushmem_##NAME##_sum_inscan_on_stream, GPUSHMEM_COLL_INSCAN, TYPE, NUMBER,        \
                GPUSHMEM_COLL_SUM)                                                                 \
    DEFINE_FOLD(gpushmem_##NAME##_sum_exscan_on_stream, GPUSHMEM_COLL_EXSCAN, TYPE, NUMBER,        \
                GPUSHMEM_COLL_SUM)
#define DEFINE_BITS(NAME, TYPE, NUMBER) GPSH_COLL_FOLDS_OF_BITS(DEFINE_REDUCE, NAME, TYPE, NUMBER, )
GPUSHMEM_COLL_NUMBERS(DEFINE_ALL)
GPUSHMEM_COLL_INTEGERS(DEFINE_BITS)
