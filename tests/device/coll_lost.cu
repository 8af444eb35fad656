// SPDX-License-Identifier: BSD-3-Clause
// A PE dies in the middle of collectives: those under way and those that are queued end with the
// error on all survivors, and so do the team's later ones; those of a team of the survivors are
// right, in kernels, on streams and of the host. Run with --on-failure continue; the last
// PE is the one that dies. The argument says in what: sync, reduce, large, stream; queued: those of
// PE 1 begin when PE 0 has given up; host: no kernel waits then, so none tells. The survivors hear
// of the loss in any order: from their launcher, or from each other.
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "kernel_check.cuh"

enum { QUEUED = 40, MOST = 256 << 10 };

struct job {
    int kind;
    size_t bytes;
    float *dest;
    const float *source;
    int rounds;
    gpushmem_team_t team; // 0: all
};

static __device__ int collective(const struct job &j)
{
    if (j.kind == 's')
        return gpushmem_dev_team_sync(j.team);
    return gpushmem_dev_float_sum_reduce(j.team, j.dest, j.source, j.bytes / sizeof(float));
}

// The loss comes after some rounds. From then on every operation fails.
__global__ void until_lost(struct job j, int *counts)
{
    int status = 0, later = 0;
    while (!status)
        status = collective(j);
    for (int i = 0; i < QUEUED; i++)
        later += collective(j) == status;
    counts[0] = status;
    counts[1] = later;
}

__global__ void some(struct job j)
{
    for (int i = 0; i < j.rounds; i++)
        collective(j);
}

static void on_kernels(struct job j, int *counts, bool dies)
{
    if (dies) {
        j.rounds = 3;
        RUN(some, 1, 1, j);
        kill(getpid(), SIGKILL);
    }
    CHECK_OK(GPUSHMEM_LAUNCH(until_lost, 1, 1, NULL, j, counts));
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_PE_FAILED);
    CHECK(check_read(&counts[0]) == GPUSHMEM_ERR_PE_FAILED);
    CHECK(check_read(&counts[1]) == QUEUED);
}

static int enqueue(const struct job *j)
{
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
    CHECK_OK(gpushmem_team_sync(GPUSHMEM_TEAM_WORLD));
    if (dies)
        kill(getpid(), SIGKILL);
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
    CHECK_OK(gpushmem_team_sync(GPUSHMEM_TEAM_WORLD));
    if (dies)
        kill(getpid(), SIGKILL);
    while (!status)
        status = gpushmem_team_sync(GPUSHMEM_TEAM_WORLD);
    CHECK(status == GPUSHMEM_ERR_PE_FAILED);
}

__global__ void counted(struct job j, int *counts)
{
    counts[0] = 0;
    for (int i = 0; i < j.rounds; i++)
        counts[0] += collective(j) == 0;
}

// Source begins with 1 more than the PE's number.
static bool has_sum(const struct job *j)
{
    int n = gpushmem_n_pes();
    float sum = 0;
    gpushmem_float_get(&sum, j->dest, 1, gpushmem_my_pe());
    return j->kind == 's' || (int)sum == n * (n - 1) / 2;
}

static void go_on(struct job j, int *counts)
{
    CHECK_OK(gpushmem_team_survivors(GPUSHMEM_TEAM_WORLD, NULL, 0, &j.team));
    CHECK(gpushmem_team_n_pes(j.team) == gpushmem_n_pes() - 1);
    j.rounds = QUEUED;
    if (gpushmem_my_pe() == 1)
        usleep(20000); // kernels of the others wait so long that they look for losses
    RUN(counted, 1, 1, j, counts);
    CHECK(check_read(&counts[0]) == QUEUED && has_sum(&j));
    CHECK_OK(gpushmem_float_sum_reduce_on_stream(j.team, j.dest, j.source, j.bytes / sizeof(float),
                                                 NULL));
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK(has_sum(&j));
    CHECK_OK(gpushmem_float_sum_reduce(j.team, j.dest, j.source, j.bytes / sizeof(float)));
    CHECK(has_sum(&j));
    CHECK_OK(gpushmem_team_destroy(j.team));
}

int main(int argc, char **argv)
{
    int me = check_begin();
    bool dies = me == gpushmem_n_pes() - 1;
    const char *in = argc > 1 ? argv[1] : "sync";
    struct job j = {in[0] == 's' && in[1] == 'y' ? 's' : 'r',
                    in[0] == 'l' ? (size_t)MOST : 64,
                    NULL,
                    NULL,
                    0,
                    GPUSHMEM_TEAM_WORLD};
    j.dest = (float *)gpushmem_calloc(MOST, 1);
    float *source = (float *)gpushmem_calloc(MOST, 1);
    j.source = source;
    gpushmem_float_p(source, (float)(me + 1), me);
    int *counts = (int *)gpushmem_calloc(2, sizeof(int));
    uint64_t *gate = (uint64_t *)gpushmem_calloc(1, sizeof *gate);
    gpushmem_barrier_all();
    if (!strcmp(in, "host"))
        on_host(dies);
    else if (!strcmp(in, "queued"))
        on_queue(j, gate, me, dies);
    else if (strcmp(in, "stream"))
        on_kernels(j, counts, dies);
    else
        on_stream(j, dies);
    go_on(j, counts);
    printf("PE %d lives on: %d failures\n", me, check_failures);
    fflush(stdout);
    _exit(check_failures != 0); // finalize is a barrier with the dead
}
