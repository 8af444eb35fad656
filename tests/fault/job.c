// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "job.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/config.h"
#include "core/error.h"

enum { HANG_SECONDS = 60, MOST_SETTINGS = 16 };

double job_seconds(void)
{
    return (double)gpsh_clock_ns() * 1e-9;
}

void job_barrier(struct job *job, int n)
{
    atomic_fetch_add(&job->shared->arrived, 1);
    while (atomic_load(&job->shared->arrived) < n * job->n_pes)
        sched_yield();
}

int job_post(struct job *job, const struct gpsh_op *op)
{
    double start = job_seconds();
    for (;;) {
        int status = gpsh_verbs_ops.post(job->channel, op);
        if (status != GPSH_POST_AGAIN)
            return status;
        gpsh_verbs_ops.progress(job->channel);
        if (job_seconds() - start > HANG_SECONDS)
            return GPUSHMEM_ERR_TIMEOUT;
    }
}

int job_drain(struct job *job, int pe)
{
    const struct gpsh_flow *flow = &job->channel->flows[pe];
    double start = job_seconds();
    while (flow->completed < flow->posted) {
        gpsh_verbs_ops.progress(job->channel);
        if (job_seconds() - start > HANG_SECONDS)
            return GPUSHMEM_ERR_TIMEOUT;
    }
    return flow->error;
}

static void on_peer_failed(void *arg, int pe, int code, const char *why)
{
    struct job *job = arg;
    job->failures++;
    job->failed_pe = pe;
    snprintf(job->why, sizeof job->why, "%s", why);
}

static int copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return 0;
}

static int read_settings(struct job *job, const char *devices, const char *const settings[])
{
    char *environment[MOST_SETTINGS] = {0}, line[128];
    int n = 0;
    for (; settings && settings[n]; n++)
        environment[n] = (char *)settings[n];
    snprintf(line, sizeof line, "GPUSHMEM_VERBS_DEVICES=%s", devices);
    environment[n] = line;
    return gpsh_settings_read(environment, &job->settings);
}

static int open_transport(struct job *job, char *control)
{
    job->env = (struct gpsh_transport_env){
        .my_pe = job->pe,
        .n_pes = job->n_pes,
        .settings = &job->settings,
        .copy = copy,
        .channels = 2,
        .notes = JOB_CONTROL_BYTES / 2,
        .peer_failed = on_peer_failed,
        .arg = job,
        .regions = {{job->heap, JOB_HEAP_BYTES, GPSH_MEMORY_HOST, -1, -1},
                    {control, JOB_CONTROL_BYTES, GPSH_MEMORY_HOST, -1, -1}}};
    int status = gpsh_verbs_ops.open(&job->env, &job->transport);
    if (status)
        return status;
    int64_t bytes =
        gpsh_verbs_ops.describe(job->transport, job->shared->blobs[job->pe], JOB_BLOB_BYTES);
    job->shared->blob_bytes[job->pe] = bytes;
    return bytes > JOB_BLOB_BYTES ? GPUSHMEM_ERR_INVALID : 0;
}

static int connect_all(struct job *job)
{
    int status = 0;
    for (int pe = 0; pe < job->n_pes && !status; pe++)
        status = gpsh_verbs_ops.connect(job->transport, pe, job->shared->blobs[pe],
                                        (size_t)job->shared->blob_bytes[pe]);
    return status ? status : gpsh_verbs_ops.channel_open(job->transport, 0, &job->channel);
}

static int run_pe(struct job *job, const char *devices, const char *const settings[],
                  int (*body)(struct job *))
{
    // here too: the others must know it after the barrier, however late the parent is
    job->shared->pids[job->pe] = getpid();
    char *memory = mmap(NULL, JOB_HEAP_BYTES + JOB_CONTROL_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    job->heap = memory;
    job->failed_pe = -1;
    int status =
        memory == MAP_FAILED ? GPUSHMEM_ERR_NO_MEMORY : read_settings(job, devices, settings);
    if (!status)
        status = open_transport(job, memory + JOB_HEAP_BYTES);
    if (status) {
        fprintf(stderr, "PE %d: %s\n", job->pe, gpsh_last_error());
        return 1;
    }
    job_barrier(job, 1);
    status = connect_all(job);
    if (status)
        fprintf(stderr, "PE %d: %s\n", job->pe, gpsh_last_error());
    job_barrier(job, 2);
    if (!status)
        status = body(job);
    // Queue pairs must outlive the traffic towards them; a killed PE never leaves, so it is not
    // waited for.
    atomic_fetch_add(&job->shared->leaving, 1);
    double start = job_seconds();
    while (atomic_load(&job->shared->leaving) < job->n_pes && job_seconds() - start < HANG_SECONDS)
        sched_yield();
    gpsh_verbs_ops.channel_close(job->channel);
    gpsh_verbs_ops.close(job->transport);
    gpsh_settings_clear(&job->settings);
    munmap(memory, JOB_HEAP_BYTES + JOB_CONTROL_BYTES);
    return status != 0;
}

static int wait_for(struct job_shared *shared, int n_pes, int victim)
{
    int failed = 0;
    for (int i = 0; i < n_pes; i++) {
        int state = 0;
        pid_t pid = wait(&state);
        if (victim >= 0 && pid == shared->pids[victim])
            atomic_fetch_add(&shared->leaving, 1);
        else
            failed |= state != 0;
        if (state && WIFSIGNALED(state) && (victim < 0 || pid != shared->pids[victim]))
            fprintf(stderr, "a PE died of signal %d\n", WTERMSIG(state));
    }
    return failed;
}

int job_run(int n_pes, const char *const devices[], const char *const settings[], int victim,
            int (*body)(struct job *))
{
    struct job_shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    for (int pe = 0; pe < n_pes; pe++) {
        pid_t pid = fork();
        if (pid == 0) {
            struct job job = {.pe = pe, .n_pes = n_pes, .shared = shared};
            int failed = run_pe(&job, devices[pe], settings, body);
            exit(failed);
        }
        shared->pids[pe] = pid;
    }
    int failed = wait_for(shared, n_pes, victim);
    munmap(shared, sizeof *shared);
    return failed;
}
