// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // posix_fallocate, gethostname
#include "observe/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/memory_file.h"
#include "core/sha256.h"

bool gpsh_trace_stopped = true;

static struct {
    struct gpsh_trace_head *head; // NULL: no trace
    struct gpsh_trace_lane *lanes;
    uint64_t bytes;
    int n_channels;
    _Atomic int next_thread;
    unsigned generation; // of threads' lanes
    pthread_mutex_t lock;
    const char *named[GPSH_TRACE_NAMES];
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

// The calling thread's, if `generation` is the trace's.
static _Thread_local struct {
    unsigned generation;
    struct gpsh_trace_lane *lane;
} mine;

bool gpsh_trace_is_open(void)
{
    return trace.head != NULL;
}

struct gpsh_trace_lane *gpsh_trace_lane(int channel)
{
    return trace.head && channel < trace.n_channels ? &trace.lanes[channel] : NULL;
}

struct gpsh_trace_lane *gpsh_trace_host_lane(void)
{
    if (mine.generation == trace.generation)
        return mine.lane;
    int i = atomic_fetch_add(&trace.next_thread, 1);
    mine.generation = trace.generation;
    mine.lane = i < GPSH_TRACE_HOST_THREADS ? &trace.lanes[trace.n_channels + i] : NULL;
    if (!mine.lane)
        __atomic_add_fetch(&trace.head->threads_left_out, 1, __ATOMIC_RELAXED);
    return mine.lane;
}

int gpsh_trace_prepare(int transport, const char *name)
{
    char *to = trace.head->transports[transport];
    snprintf(to, sizeof trace.head->transports[0], "%s", name);
    return trace.head->n_pes;
}

// ---- Names ----

static uint32_t name_add(const char *name, int length)
{
    uint32_t n = trace.head->n_names;
    for (uint32_t i = 0; i < n; i++) // another thread may have been first
        if (trace.named[i] == name)
            return i;
    if (n == GPSH_TRACE_NAMES)
        return n - 1;
    // The last place is for all that come after it.
    if (n == GPSH_TRACE_NAMES - 1)
        name = "another function", length = INT_MAX;
    snprintf(trace.head->names[n], GPSH_TRACE_NAME, "%.*s", length, name);
    __atomic_store_n(&trace.named[n], name, __ATOMIC_RELEASE);
    __atomic_store_n(&trace.head->n_names, n + 1, __ATOMIC_RELEASE);
    return n;
}

// Found by its address, which one and the same literal keeps.
static uint32_t name_number(const char *name, int length)
{
    uint32_t n = __atomic_load_n(&trace.head->n_names, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++)
        if (__atomic_load_n(&trace.named[i], __ATOMIC_RELAXED) == name)
            return i;
    pthread_mutex_lock(&trace.lock);
    n = name_add(name, length);
    pthread_mutex_unlock(&trace.lock);
    return n;
}

uint32_t gpsh_trace_name(const char *name)
{
    return name_number(name, INT_MAX);
}

uint64_t gpsh_trace_kernel_begin(void)
{
    return __atomic_load_n(&gpsh_trace_stopped, __ATOMIC_ACQUIRE) ? 0 : gpsh_clock_ns();
}

// Kernels of several streams may end at the same time.
void gpsh_trace_kernel(const struct gpsh_trace_kernel *kernel)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    uint64_t now_ns = gpsh_trace_kernel_begin();
    if (!now_ns || !kernel->began_ns)
        return;
    uint32_t name = name_number(kernel->name, kernel->name_length);
    pthread_mutex_lock(&lock);
    struct gpsh_trace_lane *lane = &trace.lanes[trace.n_channels + GPSH_TRACE_HOST_THREADS];
    *gpsh_trace_next(lane) =
        (struct gpsh_trace_record){.at_ns = kernel->began_ns,
                                   .took_ns = gpsh_trace_span(kernel->began_ns, now_ns),
                                   .number = kernel->threads,
                                   .index = name,
                                   .pe = kernel->stream,
                                   .ring = GPSH_TRACE_NO_RING,
                                   .what = GPSH_TRACE_KERNEL << 4};
    gpsh_trace_commit(lane);
    pthread_mutex_unlock(&lock);
}

void gpsh_trace_mark(uint64_t number, uint64_t entered_ns, uint64_t left_ns)
{
    if (__atomic_load_n(&gpsh_trace_stopped, __ATOMIC_RELAXED))
        return;
    uint64_t n = trace.head->n_marks++;
    trace.head->marks[n >= GPSH_TRACE_MARKS][n % GPSH_TRACE_MARKS] =
        (struct gpsh_trace_mark){number, entered_ns, left_ns};
}

// ---- The file ----

static uint64_t real_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void head_fill(struct gpsh_trace_head *head, const struct gpsh_trace_owner *owner,
                      int n_lanes)
{
    const char *run = getenv("GPUSHMEM_RUN_PID");
    head->version = GPSH_TRACE_VERSION;
    head->head_bytes = sizeof *head;
    head->pe = owner->pe;
    head->n_pes = owner->n_pes;
    head->node = owner->node;
    head->pid = (int32_t)getpid();
    head->run_pid = run ? atoi(run) : 0;
    head->n_lanes = n_lanes;
    head->n_proxies = owner->n_proxies;
    head->lane_records = (uint32_t)owner->lane_records;
    head->began_ns = gpsh_clock_ns();
    head->began_real_ns = real_ns();
    gpsh_sha256_mark(owner->job, head->job);
    gethostname(head->host, sizeof head->host - 1);
    memcpy(head->magic, GPSH_TRACE_MAGIC, sizeof head->magic);
}

// A file of the same name is of this job, from before it was finalized; or somebody's link, which
// is not followed. Its room is taken now: a disk that fills later does no harm.
static int part_make(const char *path, uint64_t bytes, void **map)
{
    if (unlink(path) && errno != ENOENT)
        return errno;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    int error = gpsh_memory_file_grow(fd, bytes);
    if (!error)
        error = posix_fallocate(fd, 0, (off_t)bytes);
    *map = MAP_FAILED;
    if (!error)
        *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!error && *map == MAP_FAILED)
        error = errno;
    if (error)
        unlink(path);
    else
        memset(*map, 0, bytes); // the pages' faults are now, and not among records
    close(fd);
    return error;
}

static void lanes_lay(char *part, int n_lanes, uint64_t lane_records)
{
    void *heads = part + gpsh_trace_lanes_at(), *records = part + gpsh_trace_records_at(n_lanes);
    for (int i = 0; i < n_lanes; i++)
        trace.lanes[i] = (struct gpsh_trace_lane){.records = (struct gpsh_trace_record *)records +
                                                             (uint64_t)i * lane_records,
                                                  .mask = lane_records - 1,
                                                  .head = (struct gpsh_trace_lane_head *)heads + i};
}

static int refuse(const struct gpsh_trace_owner *owner, const char *path, const char *why,
                  const char *advice)
{
    return gpsh_fail(
        GPUSHMEM_ERR_SYSTEM,
        "there is no trace of this PE, because GPUSHMEM_TRACE=%.150s cannot have %.150s: %s; "
        "%s",
        owner->file, path, why, advice);
}

static int refuse_error(const struct gpsh_trace_owner *owner, const char *path, int error)
{
    bool space = error == ENOSPC || error == EDQUOT || error == EFBIG;
    return refuse(owner, path, strerror(error),
                  space ? "free some space, or lower GPUSHMEM_TRACE_RECORDS"
                        : "name a file in a directory that this user may write");
}

// The merged file takes the place of what is there, and must not do so with /dev/null.
static int refuse_place(const struct gpsh_trace_owner *owner, mode_t mode)
{
    return refuse(owner, owner->file,
                  S_ISDIR(mode) ? strerror(EISDIR) : "it is a device, a pipe or a socket",
                  "name a file, which may be there or not");
}

int gpsh_trace_open(const struct gpsh_trace_owner *owner)
{
    char path[PATH_MAX], mark[GPSH_SHA256_MARK];
    struct stat st;
    void *map = NULL;
    int n_lanes = owner->n_channels + GPSH_TRACE_OTHER_LANES;
    if (stat(owner->file, &st) == 0 && !S_ISREG(st.st_mode))
        return refuse_place(owner, st.st_mode);
    gpsh_sha256_mark(owner->job, mark);
    if ((size_t)snprintf(path, sizeof path, "%s.%d.%s.part", owner->file, owner->pe, mark) >=
        sizeof path)
        return refuse_error(owner, "a part of that name", ENAMETOOLONG);
    trace.bytes = gpsh_trace_part_bytes(n_lanes, owner->lane_records);
    trace.lanes = aligned_alloc(64, (size_t)n_lanes * sizeof *trace.lanes);
    int error = trace.lanes ? part_make(path, trace.bytes, &map) : ENOMEM;
    if (error) {
        free(trace.lanes);
        trace.lanes = NULL;
        return refuse_error(owner, path, error);
    }
    head_fill(map, owner, n_lanes);
    lanes_lay(map, n_lanes, owner->lane_records);
    trace.n_channels = owner->n_channels;
    atomic_store(&trace.next_thread, 0);
    trace.generation++;
    memset(trace.named, 0, sizeof trace.named);
    trace.head = map;
    __atomic_store_n(&gpsh_trace_stopped, false, __ATOMIC_RELEASE);
    return 0;
}

// msync: other nodes see a file of NFS when it has been written.
void gpsh_trace_stop(void)
{
    if (!trace.head || __atomic_exchange_n(&gpsh_trace_stopped, true, __ATOMIC_SEQ_CST))
        return;
    trace.head->ended_ns = gpsh_clock_ns();
    trace.head->ended = 1;
    msync(trace.head, trace.bytes, MS_SYNC);
}

void gpsh_trace_forget(void)
{
    gpsh_trace_stopped = true;
}

void gpsh_trace_close(void)
{
    if (!trace.head)
        return;
    __atomic_store_n(&gpsh_trace_stopped, true, __ATOMIC_SEQ_CST);
    munmap(trace.head, trace.bytes);
    free(trace.lanes);
    trace.head = NULL;
    trace.lanes = NULL;
}

// ---- The time of a record ----

enum {
    LOOK = 256,           // ticks within which counter and clock count as looked at together
    SHORTEST = 1 << 17,   // ticks from which the length of one is known to a thousandth
    LIMIT = 1 << 18,      // ticks that are added to the clock's time at most
    ODD = 64,             // a tick that is longer or shorter by a 64th is none to rely on
    LONGEST_NS = 1 << 30, // of what is divided, so that it fits
};

// The counter may run at another speed than before, or be another processor's.
static uint64_t scale_of(const struct gpsh_trace_time *time, uint64_t ticks, uint64_t ns)
{
    uint64_t scale = (ns << 32) / ticks, before = time->scale ? time->scale : scale;
    uint64_t off = scale > before ? scale - before : before - scale;
    return off > before / ODD ? 0 : scale;
}

void gpsh_trace_time_learn(struct gpsh_trace_time *time, uint64_t before, uint64_t ns,
                           uint64_t after)
{
    uint64_t at = before + (after - before) / 2;
    uint64_t ticks = at - time->ticks, span_ns = ns - time->ns;
    if (after - before > LOOK)
        return;
    if (time->ns && ticks < SHORTEST && !time->scale)
        return; // the look before it is far enough away later
    if (time->ns && ticks >= SHORTEST && span_ns <= LONGEST_NS)
        time->scale = scale_of(time, ticks, span_ns);
    time->limit = time->scale ? LIMIT : 0;
    time->ticks = at;
    time->ns = ns;
}

uint64_t gpsh_trace_time_look(struct gpsh_trace_time *time)
{
    uint64_t before = gpsh_ticks(), ns = gpsh_clock_ns();
    gpsh_trace_time_learn(time, before, ns, gpsh_ticks());
    return ns;
}
