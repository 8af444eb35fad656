// SPDX-License-Identifier: BSD-3-Clause
// A PE dies in the middle of collectives: those under way and those that are queued end with the
// error on all survivors, and so do the team's later ones; those of a team of the survivors are
// right, in kernels, on streams and of the host. Run with --on-failure continue; the last
// PE is the one that dies. The argument says in what: sync, reduce, large, scan, collect, by a
// thread, or by all threads of a block or a warp (scan_block, scan_warp), whose statuses are one;
// entered_block: a scan that the dying PE has entered; stream; nodes: large ones on a stream;
// broadcast: those on a stream, from the PE that dies;
// queued: those of PE 1 begin when PE 0 has given up; host: no kernel waits then, so none tells;
// replayed: like that, and a kernel that was captured before, as by a graph, comes after others
// that may wait again. The survivors hear of the loss in any order: from their launcher, or from
// each other.
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "kernel_check.cuh"

enum { QUEUED = 40, MOST = 256 << 10, THREADS = 4 };

struct job {
    char kind;  // as the argument begins: 'y' for sync, else r, l, s, c, b
    char scope; // 't', 'w', 'b'
    size_t bytes;
    float *dest;
    const float *source;
    int rounds;
    gpushmem_team_t team; // 0: all
};

#define COLLECTIVE(SUFFIX)                                                                         \
    (j.kind == 'y'   ? gpushmem_dev_team_sync##SUFFIX(j.team)                                      \
     : j.kind == 's' ? gpushmem_dev_float_sum_inscan##SUFFIX(j.team, j.dest, j.source, n)          \
     : j.kind == 'c' ? gpushmem_dev_float_collect##SUFFIX(j.team, j.dest, j.source, n)             \
                     : gpushmem_dev_float_sum_reduce##SUFFIX(j.team, j.dest, j.source, n))
static __device__ int collective(const struct job &j)
{
    size_t n = j.bytes / sizeof(float);
    return j.scope == 'b' ? COLLECTIVE(_block) : j.scope == 'w' ? COLLECTIVE(_warp) : COLLECTIVE();
}

// All threads of the block are in the same turn. They are not if one of them has left an operation
// by other barriers than the rest.
static __device__ bool together(int turn)
{
    GPUSHMEM_SHARED(int, turns, THREADS);
    turns[threadIdx.x] = turn;
    __syncthreads();
    bool all = turns[0] == turn && turns[blockDim.x - 1] == turn;
    __syncthreads();
    return all;
}

// The loss comes after some rounds. From then on every operation fails, on each of the threads.
__global__ void until_lost(struct job j, int *counts)
{
    int status = 0, later = 0, turn = 0;
    while (!status && together(turn++))
        status = collective(j);
    for (int i = 0; i < QUEUED; i++)
        later += collective(j) == status && together(turn++);
    counts[2 * threadIdx.x] = status;
    counts[2 * threadIdx.x + 1] = later;
}

// What the others have of the dying PE is that it has entered.
__global__ void enter(struct gpushmem_dev dev, gpushmem_team_t team)
{
    struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, gpsh_dev_group_of<gpsh_scope_thread>());
    gpsh_dev_coll_begin(&c, gpsh_dev_teams_of(dev), team);
    gpsh_dev_coll_exchange(&c, GPUSHMEM_COLL_ENTRY);
}

__global__ void some(struct job j)
{
    for (int i = 0; i < j.rounds; i++)
        collective(j);
}

static int threads_of(const struct job &j)
{
    return j.scope == 't' ? 1 : THREADS;
}

static void die(struct job j, bool enters)
{
    gpushmem_dev dev;
    j.rounds = 3;
    RUN(some, 1, threads_of(j), j);
    CHECK_OK(gpushmem_device_handle(&dev));
    if (enters)
        RUN(enter, 1, 1, dev, j.team);
    kill(getpid(), SIGKILL);
}

static void on_kernels(struct job j, int *counts)
{
    CHECK_OK(GPUSHMEM_LAUNCH(until_lost, 1, threads_of(j), NULL, j, counts));
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_PE_FAILED);
    for (int t = 0; t < threads_of(j); t++) {
        CHECK(check_read(&counts[2 * t]) == GPUSHMEM_ERR_PE_FAILED);
        CHECK(check_read(&counts[2 * t + 1]) == QUEUED);
    }
}

static int enqueue(const struct job *j)
{
    if (j->kind == 'b')
        return gpushmem_float_broadcast_on_stream(GPUSHMEM_TEAM_WORLD, j->dest, j->source,
                                                  j->bytes / sizeof(float), gpushmem_n_pes() - 1,
                                                  NULL);
    return gpushmem_float_sum_reduce_on_stream(GPUSHMEM_TEAM_WORLD, j->dest, j->source,
                                               j->bytes / sizeof(float), NULL);
}

// An operation is refused when this PE has heard of the loss, and ends with the error before that.
static void until_refused(void)
{
    int status;
    while (!(status = gpushmem_team_sync_on_stream(GPUSHMEM_TEAM_WORLD, NULL)))
        CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_PE_FAILED);
    CHECK(status == GPUSHMEM_ERR_PE_FAILED);
    CHECK(strstr(gpushmem_last_error(), "lost a member"));
}

static void on_stream(struct job j, bool dies)
{
    int status = 0;
    for (int i = 0; i < (dies ? 3 : QUEUED) && !status; i++)
        status = enqueue(&j);
    int waited = gpushmem_launch_wait(NULL);
    if (dies)
        kill(getpid(), SIGKILL);
    // told when it was enqueued, if the loss was known by then
    CHECK(status == GPUSHMEM_ERR_PE_FAILED || waited == GPUSHMEM_ERR_PE_FAILED);
    if (check_failures)
        printf("enqueued: %d, waited: %d, %s\n", status, waited, gpushmem_last_error());
    until_refused();
}

static uint64_t *passed; // at the PE that dies: how many others have left the sync

// All meet, and then one dies. It waits for the others to be out: who is still in the sync may hear
// of the death first.
static void meet_and_lose(bool dies)
{
    const int last = gpushmem_n_pes() - 1;
    CHECK_OK(gpushmem_team_sync(GPUSHMEM_TEAM_WORLD));
    if (dies) {
        gpushmem_uint64_wait_until(passed, GPUSHMEM_CMP_GE, (uint64_t)last);
        kill(getpid(), SIGKILL);
    }
    gpushmem_uint64_atomic_add(passed, 1, last);
}

// Waits for nothing that the library knows of, so a loss does not end it.
__global__ void until_open(uint64_t *gate)
{
    while (!gpushmem_dev_uint64_test(gate, GPUSHMEM_CMP_NE, 0))
        ;
}

static void on_queue(struct job j, uint64_t *gate, int me, bool dies)
{
    if (me == 1)
        CHECK_OK(GPUSHMEM_LAUNCH(until_open, 1, 1, NULL, gate));
    for (int i = 0; i < QUEUED && !dies; i++)
        CHECK_OK(enqueue(&j));
    meet_and_lose(dies);
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_PE_FAILED);
    if (me == 0)
        gpushmem_uint64_atomic_set(gate, 1, 1);
    until_refused();
}

static void on_host(bool dies)
{
    int status = 0;
    gpushmem_dev dev;
    if (gpushmem_my_pe()) // PE 0 makes what kernels need when the loss is known
        CHECK_OK(gpushmem_device_handle(&dev));
    meet_and_lose(dies);
    while (!status)
        status = gpushmem_team_sync(GPUSHMEM_TEAM_WORLD);
    CHECK(status == GPUSHMEM_ERR_PE_FAILED);
}

__global__ void capture(struct gpushmem_dev dev, struct gpushmem_dev_team *team)
{
    *team = dev.teams[GPUSHMEM_TEAM_WORLD];
}

// A stream's sync of the team as it was.
__global__ void replay(struct gpushmem_dev dev, const struct gpushmem_dev_team *captured)
{
    struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, gpsh_dev_group_of<gpsh_scope_thread>());
    gpsh_dev_coll_take(&c, *captured);
    c.stream = true;
    c.scratch = captured->stream_scratch;
    c.epoch_word = captured->epochs + GPUSHMEM_TEAM_STREAM_EPOCHS;
    gpsh_dev_coll_start(&c, false);
    gpsh_dev_coll_exchange(&c, GPUSHMEM_COLL_ENTRY);
    gpsh_dev_coll_finish(&c, c.status);
}

// The survivors have met, and their kernels are told nothing of the loss any more: the team has to.
static void on_replay(bool dies)
{
    gpushmem_dev dev;
    struct gpushmem_dev_team *team = (struct gpushmem_dev_team *)gpushmem_malloc(2 * sizeof *team);
    CHECK_OK(gpushmem_device_handle(&dev));
    RUN(capture, 1, 1, dev, team);
    on_host(dies);
    gpushmem_team_t left;
    CHECK_OK(gpushmem_team_survivors(GPUSHMEM_TEAM_WORLD, NULL, 0, &left));
    RUN(capture, 1, 1, dev, team + 1);
    CHECK_OK(GPUSHMEM_LAUNCH(replay, 1, 1, NULL, dev, team));
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_PE_FAILED);
    CHECK_OK(gpushmem_team_destroy(left));
}

__global__ void counted(struct job j, int *counts)
{
    counts[threadIdx.x] = 0;
    for (int i = 0; i < j.rounds; i++)
        counts[threadIdx.x] += collective(j) == 0;
}

// Source begins with 1 more than the PE's number.
static bool has_sum(const struct job *j, int members)
{
    float sum = 0;
    gpushmem_float_get(&sum, j->dest, 1, gpushmem_my_pe());
    return j->kind == 'y' || (int)sum == members * (members + 1) / 2;
}

static void go_on(struct job j, int *counts)
{
    CHECK_OK(gpushmem_team_survivors(GPUSHMEM_TEAM_WORLD, NULL, 0, &j.team));
    int left = gpushmem_n_pes() - 1, prefix = gpushmem_my_pe() + 1;
    CHECK(gpushmem_team_n_pes(j.team) == left);
    j.rounds = QUEUED;
    if (gpushmem_my_pe() == 1)
        usleep(20000); // kernels of the others wait so long that they look for losses
    RUN(counted, 1, threads_of(j), j, counts);
    for (int t = 0; t < threads_of(j); t++)
        CHECK(check_read(&counts[t]) == QUEUED);
    CHECK(has_sum(&j, j.kind == 's' ? prefix : j.kind == 'c' ? 1 : left));
    CHECK_OK(gpushmem_float_sum_reduce_on_stream(j.team, j.dest, j.source, j.bytes / sizeof(float),
                                                 NULL));
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK(has_sum(&j, left));
    CHECK_OK(gpushmem_float_sum_reduce(j.team, j.dest, j.source, j.bytes / sizeof(float)));
    CHECK(has_sum(&j, left));
    CHECK_OK(gpushmem_team_destroy(j.team));
}

int main(int argc, char **argv)
{
    int me = check_begin();
    bool dies = me == gpushmem_n_pes() - 1;
    const char *in = argc > 1 ? argv[1] : "sync", *scope = strchr(in, '_');
    bool enters = !strncmp(in, "entered", 7);
    struct job j = {};
    j.kind = !strncmp(in, "sync", 4)                        ? 'y'
             : !strncmp(in, "scan", 4) || enters            ? 's'
             : strchr("lb", in[0]) || !strncmp(in, "co", 2) ? in[0]
                                                            : 'r';
    j.scope = scope ? scope[1] : 't';
    bool nodes = !strcmp(in, "nodes");
    j.bytes = nodes ? +MOST : j.kind == 'y' || j.kind == 'r' ? 64 : (size_t)MOST / 4;
    j.team = GPUSHMEM_TEAM_WORLD;
    j.dest = (float *)gpushmem_calloc(MOST, 1);
    float *source = (float *)gpushmem_calloc(MOST, 1);
    passed = (uint64_t *)gpushmem_calloc(1, sizeof *passed);
    j.source = source;
    gpushmem_float_p(source, (float)(me + 1), me);
    int *counts = (int *)gpushmem_calloc(2 * THREADS, sizeof(int));
    uint64_t *gate = (uint64_t *)gpushmem_calloc(1, sizeof *gate);
    gpushmem_barrier_all();
    if (!strcmp(in, "host"))
        on_host(dies);
    else if (!strcmp(in, "replayed"))
        on_replay(dies);
    else if (!strcmp(in, "queued"))
        on_queue(j, gate, me, dies);
    else if (nodes || j.kind == 'b' || !strcmp(in, "stream"))
        on_stream(j, dies);
    else if (dies)
        die(j, enters);
    else
        on_kernels(j, counts);
    go_on(j, counts);
    printf("PE %d lives on: %d failures\n", me, check_failures);
    fflush(stdout);
    _exit(check_failures != 0); // finalize is a barrier with the dead
}
