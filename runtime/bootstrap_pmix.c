// SPDX-License-Identifier: BSD-3-Clause
// The bootstrap over a PMIx client (4.2 or newer). Uses only what works on every launcher tried: job information, Put,
// Commit, a fence that collects data, Get after it, Abort, event handlers. In particular every fence collects data, since
// one without returns at once on several Slurm nodes, and a client never sends events.
//
// libpmix 4.2 loses the job's attributes when it is finalized and initialised again, so the client stays initialised from
// the first init to the end of the process. PMIx_Finalize then tells the launcher that the process ends in order, which is
// said only if our own finalize was called.
#define _GNU_SOURCE // what pmix.h needs
#include "bootstrap.h"

#include <pmix.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "log.h"

enum { BLOB_MAGIC = 0x42535047, BLOB_VERSION = 1, LONGEST_DIR = 80, REMARK_AFTER_MS = 10000 };

// What goes in front of every blob.
struct blob_header {
    uint32_t magic;
    uint32_t version;
    uint32_t round;
    uint32_t pe;
    uint64_t bytes;
};

// The PMIx library has one state per process, so this does, too.
static struct {
    pmix_proc_t me;
    pid_t pid;          // of the process that initialised PMIx, 0: nobody did
    bool active;        // between our init and finalize
    uint32_t round;     // of the next put; never goes back, because keys outlive a finalize
    void *own_blob;     // of a singleton
    size_t own_bytes;
    int n_pes;
    gpsh_pe_death_fn on_death;
    void *on_death_arg;
    size_t handler;
    bool has_handler;
} client;

static int fail_pmix(pmix_status_t rc, const char *what)
{
    return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP, "%s failed: %s (PMIx status %d)", what, PMIx_Error_string(rc), (int)rc);
}

// Value of a job attribute, or NULL. Never waits for anything remote.
static pmix_value_t *job_value(const pmix_proc_t *proc, const char *key)
{
    pmix_value_t *value = NULL;
    pmix_info_t optional;
    PMIX_INFO_LOAD(&optional, PMIX_OPTIONAL, NULL, PMIX_BOOL);
    pmix_status_t rc = PMIx_Get(proc, key, &optional, 1, &value);
    PMIX_INFO_DESTRUCT(&optional);
    return rc == PMIX_SUCCESS ? value : NULL;
}

// Launchers differ in the integer type of one and the same attribute.
static bool value_number(const pmix_value_t *v, uint64_t *number)
{
    switch (v->type) {
    case PMIX_UINT16:
        *number = v->data.uint16;
        return true;
    case PMIX_UINT32:
        *number = v->data.uint32;
        return true;
    case PMIX_UINT64:
        *number = v->data.uint64;
        return true;
    case PMIX_SIZE:
        *number = v->data.size;
        return true;
    case PMIX_INT:
        *number = (uint64_t)v->data.integer;
        return v->data.integer >= 0;
    case PMIX_INT32:
        *number = (uint64_t)v->data.int32;
        return v->data.int32 >= 0;
    default:
        return false;
    }
}

static bool job_number(const pmix_proc_t *proc, const char *key, uint64_t *number)
{
    pmix_value_t *v = job_value(proc, key);
    bool found = v && value_number(v, number);
    if (v)
        PMIX_VALUE_RELEASE(v);
    return found;
}

// malloc'ed, or NULL if there is none, or an empty or nonsensical one.
static char *job_string(const pmix_proc_t *proc, const char *key)
{
    pmix_value_t *v = job_value(proc, key);
    char *text = NULL;
    if (v && v->type == PMIX_STRING && v->data.string && v->data.string[0] && strcmp(v->data.string, "(null)") != 0)
        text = strdup(v->data.string);
    if (v)
        PMIX_VALUE_RELEASE(v);
    return text;
}

static pmix_proc_t whole_job(void)
{
    pmix_proc_t all;
    PMIX_LOAD_PROCID(&all, client.me.nspace, PMIX_RANK_WILDCARD);
    return all;
}

static int compare_pes(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

// Fills node_pes from "3,0,2": launchers give the ranks in any order. False: not a list of distinct PEs with ours in it.
static bool node_pes_parse(struct gpsh_bootstrap *b, const char *text)
{
    int n = 0;
    bool mine = false;
    while (*text && n < b->n_pes) {
        char *end;
        long pe = strtol(text, &end, 10);
        if (end == text || pe < 0 || pe >= b->n_pes || (*end != ',' && *end != '\0'))
            return false;
        b->node_pes[n++] = (int)pe;
        mine |= pe == b->my_pe;
        text = end + (*end == ',');
    }
    if (*text || !mine)
        return false;
    qsort(b->node_pes, (size_t)n, sizeof(*b->node_pes), compare_pes);
    for (int i = 1; i < n; i++) {
        if (b->node_pes[i] == b->node_pes[i - 1])
            return false;
    }
    b->node_n_pes = n;
    return true;
}

// For a launcher that does not list the local peers: those with our host name.
static bool node_pes_by_hostname(struct gpsh_bootstrap *b)
{
    char *mine = job_string(&client.me, PMIX_HOSTNAME);
    b->node_n_pes = 0;
    for (int pe = 0; mine && pe < b->n_pes; pe++) {
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, client.me.nspace, (pmix_rank_t)pe);
        char *theirs = job_string(&proc, PMIX_HOSTNAME);
        if (theirs && strcmp(mine, theirs) == 0)
            b->node_pes[b->node_n_pes++] = pe;
        free(theirs);
    }
    free(mine);
    return b->node_n_pes > 0;
}

static int find_node(struct gpsh_bootstrap *b)
{
    pmix_proc_t all = whole_job();
    b->node_pes = malloc((size_t)b->n_pes * sizeof(*b->node_pes));
    if (!b->node_pes)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the list of %d PEs", b->n_pes);
    char *peers = job_string(&all, PMIX_LOCAL_PEERS);
    bool found = (peers && node_pes_parse(b, peers)) || node_pes_by_hostname(b);
    if (!found)
        gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP, "the launcher does not tell which of the %d PEs are on this node (its list is '%s')",
                  b->n_pes, peers ? peers : "");
    free(peers);
    if (!found)
        return GPUSHMEM_ERR_BOOTSTRAP;
    for (int i = 0; i < b->node_n_pes; i++) {
        if (b->node_pes[i] == b->my_pe)
            b->node_my_pe = i;
    }
    return 0;
}

// The launcher's session directory, if it is what we need: ours alone, and short enough for a socket's path.
static void find_dir(struct gpsh_bootstrap *b)
{
    struct stat st;
    pmix_proc_t all = whole_job();
    char *dir = job_string(&all, PMIX_NSDIR);
    if (dir && strlen(dir) <= LONGEST_DIR && lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
        (st.st_mode & 077) == 0 && access(dir, W_OK | X_OK) == 0)
        snprintf(b->dir, sizeof(b->dir), "%s", dir);
    free(dir);
}

// The namespace, as far as it fits and as a file name may have it. A longer one is told apart by a hash (FNV-1a).
static void make_job_id(struct gpsh_bootstrap *b)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
    uint32_t hash = 2166136261u;
    for (const char *c = client.me.nspace; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    if (strlen(client.me.nspace) < sizeof(b->job_id))
        memcpy(b->job_id, client.me.nspace, strlen(client.me.nspace) + 1);
    else
        snprintf(b->job_id, sizeof(b->job_id), "%.50s-%08x", client.me.nspace, hash);
    for (char *c = b->job_id; *(c += strspn(c, allowed));)
        *c = '_';
}

static int init_singleton(struct gpsh_bootstrap *b)
{
    static const char *const sizes[][2] = {
        {"SLURM_STEP_NUM_TASKS", "srun --mpi=pmix"}, {"PMI_SIZE", "a launcher with PMIx"}, {"OMPI_COMM_WORLD_SIZE", "mpirun with PMIx"}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const char *size = getenv(sizes[i][0]);
        if (size && atoi(size) > 1)
            GPSH_LOG(WARN, "bootstrap", "%s is %s, but there is no PMIx server: each process is a job of its own; use %s",
                     sizes[i][0], size, sizes[i][1]);
    }
    b->node_pes = calloc(1, sizeof(*b->node_pes));
    if (!b->node_pes)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the list of PEs");
    b->n_pes = b->node_n_pes = 1;
    b->singleton = true;
    snprintf(b->job_id, sizeof(b->job_id), "singleton-%d", (int)getpid());
    return 0;
}

static int read_job(struct gpsh_bootstrap *b)
{
    uint64_t n_pes;
    pmix_proc_t all = whole_job();
    if (!job_number(&all, PMIX_JOB_SIZE, &n_pes))
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP, "the launcher does not tell the size of job %s", client.me.nspace);
    if (n_pes == 0 || n_pes > INT32_MAX || client.me.rank >= n_pes)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP, "the launcher calls this process rank %u of %llu", client.me.rank,
                         (unsigned long long)n_pes);
    b->n_pes = client.n_pes = (int)n_pes;
    b->my_pe = (int)client.me.rank;
    b->launched_by_us = strncmp(client.me.nspace, "gpushmem-", 9) == 0;
    make_job_id(b);
    find_dir(b);
    return find_node(b);
}

// At the end of the process. A forked child has no thread of the PMIx library and must leave it alone.
static void leave_pmix(void)
{
    if (client.pid == getpid() && !client.active)
        PMIx_Finalize(NULL, 0);
}

static int join_pmix(const char *nspace)
{
    if (client.pid == getpid())
        return 0;
    if (client.pid != 0)
        return gpsh_fail(GPUSHMEM_ERR_STATE,
                         "process %d initialised the library and forked this one, which cannot take part in the job: start "
                         "PEs with the launcher only, or init after fork",
                         (int)client.pid);
    pmix_status_t rc = PMIx_Init(&client.me, NULL, 0);
    if (rc != PMIX_SUCCESS)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "PMIX_NAMESPACE is %s, so a launcher started this process, but its PMIx server does not answer: %s "
                         "(PMIx status %d); is the launcher still running? To start without one, unset PMIX_NAMESPACE",
                         nspace, PMIx_Error_string(rc), (int)rc);
    client.pid = getpid();
    if (atexit(leave_pmix) != 0)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for one more exit handler");
    return 0;
}

int gpsh_bootstrap_init(struct gpsh_bootstrap *b)
{
    memset(b, 0, sizeof(*b));
    const char *nspace = getenv("PMIX_NAMESPACE");
    if (!nspace)
        return init_singleton(b);
    int error = join_pmix(nspace);
    if (!error)
        error = read_job(b);
    if (error) {
        free(b->node_pes);
        b->node_pes = NULL;
        return error;
    }
    client.active = true;
    GPSH_LOG(DEBUG, "bootstrap", "PE %d of %d, number %d of %d on this node, job %s, directory '%s'", b->my_pe, b->n_pes,
             b->node_my_pe, b->node_n_pes, b->job_id, b->dir);
    return 0;
}

static void round_key(char *key, size_t bytes, uint32_t round)
{
    snprintf(key, bytes, "gpushmem.blob.%u", round);
}

static int publish(const void *packed, size_t bytes)
{
    char key[48];
    round_key(key, sizeof(key), client.round);
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    value.data.bo.bytes = (char *)packed;
    value.data.bo.size = bytes;
    pmix_status_t rc = PMIx_Put(PMIX_GLOBAL, key, &value);
    if (rc != PMIX_SUCCESS)
        return fail_pmix(rc, "PMIx_Put of this PE's data");
    rc = PMIx_Commit();
    return rc == PMIX_SUCCESS ? 0 : fail_pmix(rc, "PMIx_Commit of this PE's data");
}

int gpsh_bootstrap_put(struct gpsh_bootstrap *b, const void *blob, size_t bytes)
{
    client.round++;
    struct blob_header header = {
        .magic = BLOB_MAGIC, .version = BLOB_VERSION, .round = client.round, .pe = (uint32_t)b->my_pe, .bytes = bytes};
    char *packed = malloc(sizeof(header) + bytes);
    if (!packed)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %zu bytes to be published", bytes);
    memcpy(packed, &header, sizeof(header));
    if (bytes)
        memcpy(packed + sizeof(header), blob, bytes);
    if (b->singleton) {
        free(client.own_blob);
        client.own_blob = packed;
        client.own_bytes = sizeof(header) + bytes;
        return 0;
    }
    int error = publish(packed, sizeof(header) + bytes);
    free(packed);
    return error;
}

// Blocking form of an asynchronous call that answers with a status and perhaps a number. Who waits may give up; then
// the answer, if it comes, releases the reply.
struct reply {
    pthread_mutex_t mutex;
    pthread_cond_t arrived_cond;
    bool arrived;
    bool abandoned;
    pmix_status_t status;
    size_t number;
};

static struct reply *reply_create(void)
{
    pthread_condattr_t monotonic;
    struct reply *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&r->arrived_cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return r;
}

static void reply_destroy(struct reply *r)
{
    pthread_cond_destroy(&r->arrived_cond);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}

static void reply_arrived(pmix_status_t status, size_t number, void *arg)
{
    struct reply *r = arg;
    pthread_mutex_lock(&r->mutex);
    r->status = status;
    r->number = number;
    r->arrived = true;
    bool abandoned = r->abandoned;
    pthread_cond_signal(&r->arrived_cond);
    pthread_mutex_unlock(&r->mutex);
    if (abandoned)
        reply_destroy(r);
}

static void reply_status_arrived(pmix_status_t status, void *arg)
{
    reply_arrived(status, 0, arg);
}

// Waits `ms` at most, -1: for ever. True if the answer is there.
static bool reply_wait(struct reply *r, long ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    int error = 0;
    pthread_mutex_lock(&r->mutex);
    while (!r->arrived && error == 0)
        error = ms < 0 ? pthread_cond_wait(&r->arrived_cond, &r->mutex)
                       : pthread_cond_timedwait(&r->arrived_cond, &r->mutex, &until);
    bool arrived = r->arrived;
    pthread_mutex_unlock(&r->mutex);
    return arrived;
}

// Gives up, unless the answer arrives just now. True if it did.
static bool reply_abandon(struct reply *r)
{
    pthread_mutex_lock(&r->mutex);
    bool arrived = r->arrived;
    r->abandoned = true;
    pthread_mutex_unlock(&r->mutex);
    return arrived;
}

// A launcher need not tell that a PE died on its way here, so a long wait is remarked, and bounded on request.
static bool fence_wait(const struct gpsh_bootstrap *b, struct reply *r, const char *what)
{
    long limit_ms = b->wait_timeout_ms > 0 ? b->wait_timeout_ms : -1;
    long quiet_ms = limit_ms > 0 && limit_ms < REMARK_AFTER_MS ? limit_ms : REMARK_AFTER_MS;
    if (reply_wait(r, quiet_ms))
        return true;
    if (limit_ms == quiet_ms)
        return false;
    GPSH_LOG(WARN, "bootstrap", "%s has been waiting for other PEs for %ld s; did one of them end?", what, quiet_ms / 1000);
    return reply_wait(r, limit_ms < 0 ? -1 : limit_ms - quiet_ms);
}

static int collecting_fence(const struct gpsh_bootstrap *b, const char *what)
{
    if (b->singleton)
        return 0;
    struct reply *r = reply_create();
    if (!r)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a fence");
    pmix_info_t collect;
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, NULL, PMIX_BOOL);
    pmix_status_t rc = PMIx_Fence_nb(NULL, 0, &collect, 1, reply_status_arrived, r);
    if (rc == PMIX_SUCCESS) {
        if (!fence_wait(b, r, what) && !reply_abandon(r))
            return gpsh_fail(GPUSHMEM_ERR_TIMEOUT,
                             "%s waited %lld ms in vain (GPUSHMEM_WAIT_TIMEOUT_MS): not all of the %d PEs came here", what,
                             (long long)b->wait_timeout_ms, b->n_pes);
        rc = r->status;
    }
    reply_destroy(r);
    PMIX_INFO_DESTRUCT(&collect);
    if (rc == PMIX_ERR_PARTIAL_SUCCESS)
        return gpsh_fail(GPUSHMEM_ERR_PE_FAILED, "%s: a PE died in the meantime", what);
    return rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED ? 0 : fail_pmix(rc, what);
}

int gpsh_bootstrap_exchange(struct gpsh_bootstrap *b)
{
    return collecting_fence(b, "the exchange through the launcher");
}

int gpsh_bootstrap_fence(struct gpsh_bootstrap *b)
{
    return collecting_fence(b, "the barrier of the launcher");
}

// Checks what claims to be the blob of `pe` and copies what it holds.
static int unpack(int pe, const char *packed, size_t packed_bytes, void **blob, size_t *bytes)
{
    struct blob_header header;
    if (packed_bytes < sizeof(header))
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA, "PE %d published %zu bytes, less than the header of %zu", pe, packed_bytes,
                         sizeof(header));
    memcpy(&header, packed, sizeof(header));
    if (header.magic != BLOB_MAGIC || header.version != BLOB_VERSION)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d published data of version %u (magic %08x), this library reads version %d: all PEs must use "
                         "the same release",
                         pe, header.version, header.magic, BLOB_VERSION);
    if (header.pe != (uint32_t)pe || header.round != client.round)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA, "what PE %d published is of PE %u, round %u (now is round %u)", pe, header.pe,
                         header.round, client.round);
    if (header.bytes != packed_bytes - sizeof(header))
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA, "PE %d published %llu bytes, but %zu arrived", pe,
                         (unsigned long long)header.bytes, packed_bytes - sizeof(header));
    void *copy = malloc(header.bytes ? header.bytes : 1);
    if (!copy)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the %llu bytes PE %d published",
                         (unsigned long long)header.bytes, pe);
    memcpy(copy, packed + sizeof(header), header.bytes);
    *blob = copy;
    *bytes = header.bytes;
    return 0;
}

int gpsh_bootstrap_get(struct gpsh_bootstrap *b, int pe, void **blob, size_t *bytes)
{
    if (pe < 0 || pe >= b->n_pes)
        return gpsh_fail(GPUSHMEM_ERR_PE, "PE %d is outside 0..%d", pe, b->n_pes - 1);
    if (b->singleton) {
        if (!client.own_blob)
            return gpsh_fail(GPUSHMEM_ERR_STATE, "PE 0 published nothing yet");
        return unpack(pe, client.own_blob, client.own_bytes, blob, bytes);
    }
    char key[48];
    round_key(key, sizeof(key), client.round);
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, client.me.nspace, (pmix_rank_t)pe);
    // After a fence that collected everything is here; a missing key must not wait for the peer to put it.
    pmix_info_t immediate;
    pmix_value_t *value = NULL;
    PMIX_INFO_LOAD(&immediate, PMIX_IMMEDIATE, NULL, PMIX_BOOL);
    pmix_status_t rc = PMIx_Get(&proc, key, &immediate, 1, &value);
    PMIX_INFO_DESTRUCT(&immediate);
    if (rc != PMIX_SUCCESS)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA, "PE %d did not publish its data of round %u: %s (PMIx status %d)", pe,
                         client.round, PMIx_Error_string(rc), (int)rc);
    int error = value->type == PMIX_BYTE_OBJECT
                    ? unpack(pe, value->data.bo.bytes, value->data.bo.size, blob, bytes)
                    : gpsh_fail(GPUSHMEM_ERR_PEER_DATA, "PE %d published a value of PMIx type %d, not bytes", pe, value->type);
    PMIX_VALUE_RELEASE(value);
    return error;
}

// True in the PMIx library's own thread, which must not wait for an answer that only itself can receive.
static _Thread_local bool in_library_thread;

// Runs in that thread.
static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t n_info,
                     pmix_info_t *results, size_t n_results, pmix_event_notification_cbfunc_fn_t done, void *done_arg)
{
    const pmix_proc_t *dead = source;
    in_library_thread = true;
    for (size_t i = 0; i < n_info; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC) && info[i].value.type == PMIX_PROC)
            dead = info[i].value.data.proc;
    }
    bool ours = dead && strcmp(dead->nspace, client.me.nspace) == 0 && dead->rank < (pmix_rank_t)client.n_pes;
    if (ours && dead->rank != client.me.rank && client.on_death) {
        char reason[128];
        snprintf(reason, sizeof(reason), "the launcher reports that it ended (%s)", PMIx_Error_string(status));
        client.on_death((int)dead->rank, reason, client.on_death_arg);
    }
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

int gpsh_bootstrap_on_death(struct gpsh_bootstrap *b, gpsh_pe_death_fn fn, void *arg)
{
    static pmix_status_t deaths[] = {PMIX_ERR_PROC_ABORTED, PMIX_ERR_PROC_ABORTED_BY_SIG, PMIX_ERR_PROC_TERM_WO_SYNC,
                                     PMIX_ERR_PROC_KILLED_BY_CMD, PMIX_ERR_PROC_REQUESTED_ABORT};
    client.on_death_arg = arg;
    client.on_death = fn;
    if (b->singleton || client.has_handler)
        return 0;
    struct reply *r = reply_create();
    if (!r)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for an event handler");
    PMIx_Register_event_handler(deaths, sizeof(deaths) / sizeof(deaths[0]), NULL, 0, on_event, reply_arrived, r);
    reply_wait(r, -1);
    pmix_status_t rc = r->status;
    client.handler = r->number;
    client.has_handler = rc == PMIX_SUCCESS;
    reply_destroy(r);
    return rc == PMIX_SUCCESS ? 0 : fail_pmix(rc, "asking the launcher for news of PEs that end");
}

struct abort_order {
    int status;
    char *why;
};

static void *carry_out_abort(void *arg)
{
    struct abort_order *order = arg;
    PMIx_Abort(order->status, order->why, NULL, 0);
    free(order->why);
    free(order);
    return NULL;
}

static int abort_from_other_thread(int status, const char *why)
{
    pthread_t thread;
    struct abort_order *order = malloc(sizeof(*order));
    char *copy = strdup(why);
    if (order && copy) {
        *order = (struct abort_order){.status = status, .why = copy};
        if (pthread_create(&thread, NULL, carry_out_abort, order) == 0) {
            pthread_detach(thread);
            return 0;
        }
    }
    free(order);
    free(copy);
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory or thread to ask the launcher for the end of the job");
}

int gpsh_bootstrap_abort(struct gpsh_bootstrap *b, int status, const char *why)
{
    if (b->singleton)
        return 0;
    if (in_library_thread)
        return abort_from_other_thread(status, why);
    pmix_status_t rc = PMIx_Abort(status, why, NULL, 0);
    return rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED ? 0 : fail_pmix(rc, "asking the launcher to end the job");
}

static void forget_deaths(void)
{
    if (client.has_handler)
        PMIx_Deregister_event_handler(client.handler, NULL, NULL);
    client.has_handler = false;
    client.on_death = NULL;
}

int gpsh_bootstrap_finalize(struct gpsh_bootstrap *b)
{
    if (!b->singleton)
        forget_deaths();
    client.active = false;
    free(client.own_blob);
    client.own_blob = NULL;
    free(b->node_pes);
    *b = (struct gpsh_bootstrap){0};
    return 0;
}
