// SPDX-License-Identifier: BSD-3-Clause
// The bootstrap under `gpushmem run`: blobs, the fence and the news of deaths are in a segment that
// launcher and PEs share, and only what must reach the launcher goes over this PE's line to it.
#define _GNU_SOURCE // MAP_POPULATE, RTLD_DEFAULT
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/bootstrap_ways.h"
#include "bootstrap/job_segment.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/launcher.h"
#include "core/log.h"
#include "core/thread.h"

enum {
    BLOB_MAGIC = 0x42535047,
    LOOK_MS = 50, // between two looks whether a PE that is waited for has died
    ABORT_TRIES = 30,
};

// In front of every blob.
struct blob_header {
    uint32_t magic, round;
    int32_t pe;
    uint32_t reserved;
    uint64_t bytes;
};

// One job a process, as it was started.
static struct {
    struct gpsh_job_segment *segment; // NULL: not joined
    int fd, line;
    int my_pe, n_pes, n_nodes;
    uint64_t blobs_at, round_bytes; // as the segment had it at the beginning
    uint64_t namespace;             // of this process's number, 0: not known
    char *blobs;                    // those of a round, NULL: not mapped
    uint64_t blobs_bytes;
    uint32_t blobs_round;
    struct gpsh_thread thread;
    atomic_bool stops;
    struct gpsh_deaths deaths; // as far as they were looked for
} job = {.deaths = GPSH_DEATHS_INITIALIZER};

// Signals of the program, which may come every millisecond, end sleeps: these are not counted.
static int64_t waited_ms(uint64_t began_ns)
{
    return (int64_t)((gpsh_clock_ns() - began_ns) / 1000000);
}

// Looks into the segment for those that the launcher says have died.
static void note_deaths(void)
{
    struct gpsh_job_segment *s = job.segment;
    for (int pe = 0; atomic_load(&s->deaths) && pe < job.n_pes; pe++) {
        char reason[sizeof s->pe[pe].reason];
        if (pe == job.my_pe || !atomic_load(&s->pe[pe].died))
            continue;
        snprintf(reason, sizeof reason, "%.*s", (int)sizeof reason - 1, s->pe[pe].reason);
        gpsh_deaths_note(&job.deaths, pe, reason);
    }
}

static int check_deaths(void)
{
    note_deaths();
    return gpsh_deaths_check(&job.deaths, GPSH_BOOTSTRAP_EXCHANGE, 0);
}

// ------------------------------------------------------------------------------------------
// exchange

static int segment_put(struct gpsh_bootstrap *b, const void *blob, size_t bytes)
{
    struct gpsh_job_segment *s = job.segment;
    struct gpsh_job_segment_pe *me = &s->pe[b->my_pe];
    const uint32_t round = me->round + 1;
    const struct blob_header header = {
        .magic = BLOB_MAGIC, .round = round, .pe = b->my_pe, .bytes = bytes};
    const uint64_t all = (sizeof header + bytes + 7) & ~(uint64_t)7;
    const uint64_t at = atomic_fetch_add(&s->used[round % 2], all);
    if (all > job.round_bytes || at > job.round_bytes - all)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "%zu bytes of connection data of this PE do not fit into the job's "
                         "segment, which has %llu bytes for all PEs: use fewer contexts "
                         "(GPUSHMEM_CONTEXTS), or start the job with mpirun or srun",
                         bytes, (unsigned long long)job.round_bytes);
    const off_t where = (off_t)(job.blobs_at + round % 2 * job.round_bytes + at);
    if (pwrite(job.fd, &header, sizeof header, where) != sizeof header ||
        (bytes && pwrite(job.fd, blob, bytes, where + (off_t)sizeof header) != (ssize_t)bytes))
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                         "this PE's data cannot be written to the job's segment: %s; is the "
                         "limit of memory or of file sizes low (ulimit -f)?",
                         strerror(errno));
    me->blob[round % 2] =
        (struct gpsh_job_segment_blob){.at = at, .bytes = sizeof header + bytes, .round = round};
    me->round = round;
    return 0;
}

static void unmap_blobs(void)
{
    if (job.blobs)
        munmap(job.blobs, job.blobs_bytes);
    job.blobs = NULL;
}

// All that was published in this round, which is complete.
static int map_blobs(uint32_t round)
{
    const struct gpsh_job_segment *s = job.segment;
    const uint64_t used = atomic_load(&s->used[round % 2]);
    if (job.blobs && job.blobs_round == round)
        return 0;
    unmap_blobs();
    job.blobs_bytes = used < job.round_bytes ? used : job.round_bytes;
    void *blobs = mmap(NULL, job.blobs_bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, job.fd,
                       (off_t)(job.blobs_at + round % 2 * job.round_bytes));
    if (blobs == MAP_FAILED)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                         "%llu bytes that the PEs have published cannot be mapped: %s",
                         (unsigned long long)job.blobs_bytes, strerror(errno));
    job.blobs = blobs;
    job.blobs_round = round;
    return 0;
}

static int segment_get(struct gpsh_bootstrap *b, int pe, void **blob, size_t *bytes)
{
    const uint32_t round = job.segment->pe[b->my_pe].round;
    const struct gpsh_job_segment_blob place = job.segment->pe[pe].blob[round % 2];
    struct blob_header header = {0};
    if (!round || place.round != round)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d published nothing in round %u: do all PEs run the same release of "
                         "gpushmem, with the same GPUSHMEM_* settings?",
                         pe, round);
    const int status = map_blobs(round);
    if (status)
        return status;
    const bool fits = place.bytes >= sizeof header && place.bytes <= job.blobs_bytes &&
                      place.at <= job.blobs_bytes - place.bytes;
    if (fits)
        memcpy(&header, job.blobs + place.at, sizeof header);
    if (header.magic != BLOB_MAGIC || header.round != round || header.pe != pe ||
        header.bytes != place.bytes - sizeof header)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "what PE %d published in round %u is damaged (%llu bytes at %llu)", pe,
                         round, (unsigned long long)place.bytes, (unsigned long long)place.at);
    *bytes = header.bytes;
    return gpsh_bootstrap_copy(pe, job.blobs + place.at + sizeof header, header.bytes, blob);
}

// The last one to come lets the others go. Nobody is in the round after this one yet, and all have
// read what was published in the one before, so the place of that is free.
static void let_go(struct gpsh_job_segment *s)
{
    atomic_store(&s->used[(s->pe[job.my_pe].round + 1) % 2], 0);
    atomic_store(&s->arrived, 0);
    gpsh_job_segment_wake(&s->fences);
}

static int fence_given_up(const struct gpsh_bootstrap *b)
{
    const int arrived = (int)atomic_load(&job.segment->arrived);
    return gpsh_fail(GPUSHMEM_ERR_TIMEOUT,
                     GPSH_BOOTSTRAP_EXCHANGE " timed out after %lld ms (GPUSHMEM_WAIT_TIMEOUT_MS): "
                                             "not all of the %d PEs came here, %d did",
                     (long long)b->wait_timeout_ms, b->n_pes, arrived);
}

// Ends also when a PE has died: then the fence can never be passed.
static int segment_exchange(struct gpsh_bootstrap *b)
{
    struct gpsh_job_segment *s = job.segment;
    int status = check_deaths();
    if (status)
        return status;
    const uint32_t fence = atomic_load(&s->fences);
    if (atomic_fetch_add(&s->arrived, 1) + 1 == (uint32_t)job.n_pes) {
        let_go(s);
        return 0;
    }
    // Many that look often would leave those that they wait for little of few processors.
    const int look_ms = LOOK_MS + job.n_pes / 4;
    const uint64_t began_ns = gpsh_clock_ns();
    bool waited = false;
    while (atomic_load(&s->fences) == fence && !status) {
        gpsh_job_segment_sleep(&s->fences, fence, look_ms);
        if (atomic_load(&s->fences) != fence)
            break;
        waited = true;
        if (b->waits)
            b->waits(false);
        status = check_deaths();
        if (!status && b->wait_timeout_ms > 0 && waited_ms(began_ns) >= b->wait_timeout_ms)
            status = fence_given_up(b);
    }
    if (waited && b->waits)
        b->waits(true);
    return status;
}

// ------------------------------------------------------------------------------------------
// trouble

static void *listen_for_news(void *unused)
{
    _Atomic uint32_t *news = &job.segment->pe[job.my_pe].news;
    (void)unused;
    while (!atomic_load(&job.stops)) {
        const uint32_t seen = atomic_load(news);
        note_deaths();
        gpsh_deaths_tell(&job.deaths);
        if (!atomic_load(&job.stops))
            gpsh_job_segment_sleep(news, seen, -1);
    }
    return NULL;
}

// The launcher may be stopped, by Ctrl-Z: then the job is, too.
static int segment_abort(struct gpsh_bootstrap *b, int status, const char *why, bool all)
{
    const struct gpsh_line_message head = {.word = GPSH_LINE_ABORT, .a = status};
    int error = EAGAIN;
    (void)b, (void)all; // it ends the caller with the others
    for (int i = 0; i < ABORT_TRIES && error == EAGAIN; i++)
        error = gpsh_launcher_send(job.line, &head, why, strlen(why), NULL, 0);
    return !error ? 0
                  : gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                              "the launcher cannot be asked to end the job: %s", strerror(error));
}

// ------------------------------------------------------------------------------------------
// joining and leaving

static uint64_t pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

static bool segment_leave(struct gpsh_bootstrap *b)
{
    struct gpsh_job_segment_pe *me = &job.segment->pe[b->my_pe];
    atomic_store(&me->left, me->round);
    return true;
}

// One that is in the next job already has left this one, and not yet left that.
static bool segment_has_left(struct gpsh_bootstrap *b, int pe)
{
    const uint32_t left = atomic_load(&job.segment->pe[pe].left);
    return left && left >= job.segment->pe[b->my_pe].round;
}

static int segment_pid_of(struct gpsh_bootstrap *b, int pe)
{
    const struct gpsh_job_segment_pe *them = &job.segment->pe[pe];
    (void)b;
    return job.namespace && them->pid_namespace == job.namespace ? atomic_load(&them->pid) : 0;
}

// MPI_Init has made a job of one of each process. A program may call it before our init or after.
static void remark_mpi(void)
{
    static atomic_bool said;
    void *symbol = dlsym(RTLD_DEFAULT, "MPI_Initialized");
    int (*initialized)(int *) = NULL;
    memcpy(&initialized, &symbol, sizeof symbol); // ISO C has no cast for it
    int is = 0;
    if (job.n_pes > 1 && initialized && initialized(&is) == 0 && is &&
        !atomic_exchange(&said, true))
        GPSH_LOG(WARN, "bootstrap",
                 "this program uses MPI, and gpushmem run is no launcher of MPI: each process is "
                 "an MPI job of one; start it with mpirun or srun --mpi=pmix");
}

static void segment_finalize(struct gpsh_bootstrap *b)
{
    remark_mpi();
    struct gpsh_job_segment_pe *me = &job.segment->pe[b->my_pe];
    atomic_store(&job.stops, true);
    gpsh_job_segment_wake(&me->news);
    gpsh_thread_join(&job.thread);
    // What this process becomes by exec may join again.
    fcntl(job.fd, F_SETFD, 0);
    fcntl(job.line, F_SETFD, 0);
    atomic_store(&me->state, GPSH_PE_LEFT);
    unmap_blobs();
    gpsh_job_segment_unmap(job.segment, job.n_pes);
    job.segment = NULL;
    gpsh_deaths_close(&job.deaths);
}

static const struct gpsh_bootstrap_ops segment_ops = {
    .put = segment_put,
    .exchange = segment_exchange,
    .get = segment_get,
    .abort = segment_abort,
    .leave = segment_leave,
    .has_left = segment_has_left,
    .pid_of = segment_pid_of,
    .finalize = segment_finalize,
};

// By the launcher's word, which a wrapper of the program may have passed on.
static int find_my_pe(int *pe)
{
    const char *text = getenv("GPUSHMEM_RUN_PE");
    char *end = NULL;
    const long number = text ? strtol(text, &end, 10) : -1;
    if (!text || end == text || *end || number < 0 || number >= job.n_pes)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "GPUSHMEM_RUN_PE is '%s'; gpushmem run sets it to 0..%d, and nothing else "
                         "should",
                         text ? text : "", job.n_pes - 1);
    *pe = (int)number;
    return 0;
}

// One process a PE, one after the other at most.
static int take_place(struct gpsh_job_segment_pe *me, int pe)
{
    int32_t state = atomic_load(&me->state);
    const int before = atomic_load(&me->pid);
    if (state == GPSH_PE_JOINED ||
        !atomic_compare_exchange_strong(&me->state, &state, GPSH_PE_JOINED))
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "process %d is PE %d already: a PE is one process, and another one can "
                         "follow it only after its gpushmem_finalize",
                         before, pe);
    atomic_store(&me->pid, (int)getpid());
    me->pid_namespace = job.namespace = pid_namespace();
    return 0;
}

static int describe_job(struct gpsh_bootstrap *b, const struct gpsh_job_segment *s)
{
    const int node = gpsh_job_node_of(b->my_pe, job.n_pes, job.n_nodes);
    const int first = gpsh_job_first_pe(node, job.n_pes, job.n_nodes);
    job.blobs_at = s->blobs_at;
    job.round_bytes = s->blobs_bytes;
    b->n_pes = job.n_pes;
    b->line = job.line;
    b->job_round = s->pe[b->my_pe].round;
    b->node_n_pes = gpsh_job_first_pe(node + 1, job.n_pes, job.n_nodes) - first;
    b->node_my_pe = b->my_pe - first;
    b->launched_by_us = true;
    snprintf(b->job_id, sizeof b->job_id, "%.*s", (int)sizeof s->job_id - 1, s->job_id);
    b->node_pes = malloc((size_t)b->node_n_pes * sizeof *b->node_pes);
    if (!b->node_pes)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the list of %d PEs", b->n_pes);
    for (int i = 0; i < b->node_n_pes; i++)
        b->node_pes[i] = first + i;
    return gpsh_deaths_open(&job.deaths, b->n_pes);
}

int gpsh_bootstrap_segment_init(struct gpsh_bootstrap *b)
{
    *b = (struct gpsh_bootstrap){.ops = &segment_ops, .deaths = &job.deaths};
    if (gpsh_launcher_find(&job.fd, &job.line) != GPSH_LAUNCHED)
        return gpsh_fail(
            GPUSHMEM_ERR_BOOTSTRAP,
            "gpushmem run has started this process's PE, but what " GPSH_LAUNCHER_JOB
            " names (%s) is closed: by a process in between, which has to pass "
            "descriptors on (in Python subprocess.run(..., close_fds=False)), or since "
            "this is a program that replaced itself by exec before gpushmem_finalize",
            getenv(GPSH_LAUNCHER_JOB));
    job.segment = gpsh_job_segment_join(job.fd, &job.n_pes, &job.n_nodes);
    int status = job.segment ? find_my_pe(&b->my_pe) : gpsh_last_error_code();
    if (!status)
        status = take_place(&job.segment->pe[b->my_pe], b->my_pe);
    if (status) {
        if (job.segment)
            gpsh_job_segment_unmap(job.segment, job.n_pes);
        job.segment = NULL;
        return status;
    }
    job.my_pe = b->my_pe;
    // Children of this process are no PEs, and may belong to another user.
    fcntl(job.fd, F_SETFD, FD_CLOEXEC);
    fcntl(job.line, F_SETFD, FD_CLOEXEC);
    status = describe_job(b, job.segment);
    atomic_store(&job.stops, false);
    if (!status)
        status = gpsh_thread_start(&job.thread, "gpushmem-news", listen_for_news, NULL);
    if (status) {
        gpsh_bootstrap_finalize(b);
        return status;
    }
    remark_mpi();
    GPSH_LOG(DEBUG, "bootstrap", "PE %d of %d, number %d of %d on this node, by gpushmem run",
             b->my_pe, b->n_pes, b->node_my_pe, b->node_n_pes);
    return 0;
}
