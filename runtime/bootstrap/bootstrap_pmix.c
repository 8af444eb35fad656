// SPDX-License-Identifier: BSD-3-Clause
// The bootstrap over a PMIx client (4.2 or newer). Uses only what works on every launcher tried:
// job information, Put, Commit, a fence that collects data, Get after it, Abort, event handlers. In
// particular every fence collects data, since one without returns at once on several Slurm nodes,
// and a client never sends events.
//
// libpmix 4.2 loses the job's attributes when it is finalized and initialised again, so the client
// stays initialised from the first init to the end of the process. PMIx_Finalize then tells the
// launcher that the process ends in order, which is said only if our own finalize was called.
#define _GNU_SOURCE // what pmix.h needs
#include "bootstrap/bootstrap_pmix.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pmix.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/bootstrap_job.h"
#include "bootstrap/node_watch.h"
#include "bootstrap/pmix_reply.h"
#include "core/error.h"
#include "core/log.h"
#include "core/thread.h"

enum {
    BLOB_MAGIC = 0x42535047,
    BLOB_VERSION = 2,
    REMARK_AFTER_MS = 10000,
    FEW_THREADS = 4096,
    LOOK_MS = 20,  // between two looks whether a PE that is waited for has died
    NEWS_MS = 500, // how much later than its consequences the news of a death may come
};

// What goes in front of every blob.
struct blob_header {
    uint32_t magic;
    uint32_t version;
    uint32_t round;
    uint32_t pe;
    uint64_t bytes;
    struct gpsh_node_card card;
};
static_assert(sizeof(struct blob_header) == 64, "no padding, which would be published");

// The PMIx library has one state per process, so this does, too.
static struct {
    pmix_proc_t me;
    pid_t pid;      // of the process that initialised PMIx, 0: nobody did
    bool active;    // between our init and finalize
    uint32_t round; // of the next put; never goes back, because keys outlive a finalize
    void *own_blob; // of a singleton
    size_t own_bytes;
    int n_pes;
    size_t handler;
    bool has_handler;
    // What the launcher told. A PE that died stays dead in later inits of this process.
    pthread_mutex_t deaths_lock;
    struct death {
        bool died;
        char reason[100];
    } * deaths;             // [n_pes]
    _Atomic int first_dead; // PE + 1; 0: none
    gpsh_pe_death_fn on_death;
    void *on_death_arg;
    struct gpsh_node_watch *nodes; // NULL: the launcher tells of deaths, or there is one node
} client = {.deaths_lock = PTHREAD_MUTEX_INITIALIZER};

static int fail_pmix(pmix_status_t rc, const char *what)
{
    return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP, "%s failed: %s (PMIx status %d)", what,
                     PMIx_Error_string(rc), (int)rc);
}

// At the end of the process. A forked child has no thread of the PMIx library and must leave it
// alone.
static void leave_pmix(void)
{
    if (client.pid == getpid() && !client.active)
        PMIx_Finalize(NULL, 0);
}

static void *init_pmix(void *status)
{
    *(pmix_status_t *)status = PMIx_Init(&client.me, NULL, 0);
    return NULL;
}

// The PMIx library starts a thread, which inherits name and signal mask from the one that
// initialises it. That one is therefore not the caller, so that the program still takes its signals
// while a launcher is slow to answer.
static int init_pmix_apart(pmix_status_t *status)
{
    pthread_t thread;
    int error = gpsh_thread_start(&thread, "gpushmem-pmix", init_pmix, status);
    if (error)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "cannot start a thread: %s%s", strerror(error),
                         error == EAGAIN ? "; raise the limit of processes (ulimit -u)" : "");
    pthread_join(thread, NULL);
    return 0;
}

// libpmix needs a thread, too, and does not say that it had none.
static const char *lack_of_threads(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur < FEW_THREADS
               ? "; the limit of processes and threads is low: raise it (ulimit -u)"
               : "";
}

static int join_pmix(void)
{
    if (client.pid == getpid())
        return 0;
    if (client.pid != 0)
        return gpsh_fail(
            GPUSHMEM_ERR_STATE,
            "process %d initialised the library and forked this one, which cannot take part in "
            "the job: start "
            "PEs with the launcher only, or init after fork",
            (int)client.pid);
    if (!getenv("HOME") && !getpwuid(geteuid())) // libpmix would crash
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "libpmix needs a home directory, and user %u has none in the user "
                         "database: set HOME, for example to /",
                         (unsigned)geteuid());
    pmix_status_t rc;
    int error = init_pmix_apart(&rc);
    if (error)
        return error;
    if (rc != PMIX_SUCCESS)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "PMIX_NAMESPACE is set, so a launcher started this process, but its PMIx "
                         "server does not answer: %s (PMIx status %d)%s; is the launcher still "
                         "running? To start without one, unset PMIX_NAMESPACE; `gpushmem doctor` "
                         "explains it under pmix",
                         PMIx_Error_string(rc), (int)rc, // the name itself may be a secret
                         lack_of_threads());
    client.pid = getpid();
    if (atexit(leave_pmix) != 0)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for one more exit handler");
    return 0;
}

// True in the PMIx library's own thread, which must not wait for an answer that only itself can
// receive.
static _Thread_local bool in_library_thread;

static void note_death(int pe, const char *reason, void *unused)
{
    int none = 0;
    (void)unused;
    pthread_mutex_lock(&client.deaths_lock);
    struct death *death = &client.deaths[pe];
    bool news = !death->died;
    death->died = true;
    if (news)
        snprintf(death->reason, sizeof(death->reason), "%s", reason);
    gpsh_pe_death_fn tell = news ? client.on_death : NULL;
    void *arg = client.on_death_arg;
    pthread_mutex_unlock(&client.deaths_lock);
    atomic_compare_exchange_strong(&client.first_dead, &none, pe + 1);
    if (tell)
        tell(pe, death->reason, arg);
}

static void note_event(int pe, pmix_status_t status)
{
    char reason[100];
    snprintf(reason, sizeof(reason), "the launcher reports that it ended (%s)",
             PMIx_Error_string(status));
    note_death(pe, reason, NULL);
}

// Runs in that thread.
static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t *source,
                     pmix_info_t info[], size_t n_info, pmix_info_t *results, size_t n_results,
                     pmix_event_notification_cbfunc_fn_t done, void *done_arg)
{
    const pmix_proc_t *dead = source;
    in_library_thread = true;
    for (size_t i = 0; i < n_info; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC) && info[i].value.type == PMIX_PROC)
            dead = info[i].value.data.proc;
    }
    bool ours = dead && strcmp(dead->nspace, client.me.nspace) == 0 &&
                dead->rank < (pmix_rank_t)client.n_pes;
    if (ours && dead->rank != client.me.rank)
        note_event((int)dead->rank, status);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

// From the beginning: a PE that dies on its way through init is waited for by all others.
static int listen_for_deaths(int n_pes)
{
    static pmix_status_t causes[] = {PMIX_ERR_PROC_ABORTED, PMIX_ERR_PROC_ABORTED_BY_SIG,
                                     PMIX_ERR_PROC_TERM_WO_SYNC, PMIX_ERR_PROC_KILLED_BY_CMD,
                                     PMIX_ERR_PROC_REQUESTED_ABORT};
    if (client.has_handler)
        return 0;
    if (!client.deaths)
        client.deaths = calloc((size_t)n_pes, sizeof(*client.deaths));
    client.n_pes = n_pes;
    struct gpsh_pmix_reply *r = client.deaths ? gpsh_pmix_reply_create() : NULL;
    if (!r)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for an event handler");
    PMIx_Register_event_handler(causes, sizeof(causes) / sizeof(causes[0]), NULL, 0, on_event,
                                gpsh_pmix_reply_number, r);
    gpsh_pmix_reply_wait(r, -1);
    pmix_status_t rc = gpsh_pmix_reply_get(r, &client.handler);
    client.has_handler = rc == PMIX_SUCCESS;
    gpsh_pmix_reply_destroy(r);
    return rc == PMIX_SUCCESS ? 0 : fail_pmix(rc, "asking the launcher for news of PEs that end");
}

static void pmix_on_death(struct gpsh_bootstrap *b, gpsh_pe_death_fn fn, void *arg)
{
    pthread_mutex_lock(&client.deaths_lock);
    client.on_death_arg = arg;
    client.on_death = fn;
    pthread_mutex_unlock(&client.deaths_lock);
    for (int pe = 0; client.deaths && pe < b->n_pes; pe++) {
        pthread_mutex_lock(&client.deaths_lock);
        bool died = client.deaths[pe].died;
        pthread_mutex_unlock(&client.deaths_lock);
        if (died)
            fn(pe, client.deaths[pe].reason, arg);
    }
}

// A PE that died, or -1. Waits up to `ms` for news of one.
static int dead_pe(long ms)
{
    for (; ms > 0 && !atomic_load(&client.first_dead); ms -= LOOK_MS)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    return atomic_load(&client.first_dead) - 1;
}

static int fail_dead(int pe, const char *what)
{
    return gpsh_fail(GPUSHMEM_ERR_PE_FAILED, "%s: PE %d has failed: %s", what, pe,
                     client.deaths[pe].reason);
}

static int pmix_check(const char *what, bool wait_for_news)
{
    int dead = client.has_handler ? dead_pe(wait_for_news ? NEWS_MS : 0) : -1;
    return dead < 0 ? 0 : fail_dead(dead, what);
}

static const struct gpsh_bootstrap_ops pmix_ops;

int gpsh_bootstrap_pmix_init(struct gpsh_bootstrap *b)
{
    memset(b, 0, sizeof(*b));
    b->ops = &pmix_ops;
    if (!getenv("PMIX_NAMESPACE"))
        return gpsh_bootstrap_job_alone(b);
    int error = join_pmix();
    if (!error)
        error = gpsh_bootstrap_job_read(b, &client.me);
    if (!error)
        error = listen_for_deaths(b->n_pes);
    if (error) {
        free(b->node_pes);
        b->node_pes = NULL;
        return error;
    }
    client.active = true;
    GPSH_LOG(DEBUG, "bootstrap", "PE %d of %d, number %d of %d on this node, directory '%s'",
             b->my_pe, b->n_pes, b->node_my_pe, b->node_n_pes, b->dir);
    return 0;
}

static void round_key(char *key, size_t bytes, uint32_t round)
{
    snprintf(key, bytes, "gpushmem.blob.%u", round);
}

static int publish(const struct gpsh_bootstrap *b, const void *packed, size_t bytes)
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

static int pmix_put(struct gpsh_bootstrap *b, const void *blob, size_t bytes)
{
    client.round++;
    struct blob_header header = {.magic = BLOB_MAGIC,
                                 .version = BLOB_VERSION,
                                 .round = client.round,
                                 .pe = (uint32_t)b->my_pe,
                                 .bytes = bytes};
    gpsh_node_watch_describe(client.nodes, &header.card);
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
    int error = publish(b, packed, sizeof(header) + bytes);
    free(packed);
    return error;
}

// The wait also ends when a PE dies. A launcher need not report that, so a long wait is logged
// once, and GPUSHMEM_WAIT_TIMEOUT_MS can bound it.
static bool fence_wait(const struct gpsh_bootstrap *b, struct gpsh_pmix_reply *r, const char *what)
{
    long limit_ms = b->wait_timeout_ms > 0 ? b->wait_timeout_ms : LONG_MAX;
    bool remarked = false;
    for (long waited_ms = 0; waited_ms < limit_ms && dead_pe(0) < 0; waited_ms += LOOK_MS) {
        long left_ms = limit_ms - waited_ms;
        if (gpsh_pmix_reply_wait(r, left_ms < LOOK_MS ? left_ms : LOOK_MS))
            return true;
        if (b->waits)
            b->waits(false);
        if (waited_ms < REMARK_AFTER_MS || remarked)
            continue;
        remarked = true;
        GPSH_LOG(WARN, "bootstrap",
                 "%s has been waiting for other PEs for %d s; did one of them end?", what,
                 REMARK_AFTER_MS / 1000);
    }
    return false;
}

static int fence_result(pmix_status_t rc, const char *what)
{
    if (rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED)
        return 0;
    if (rc != PMIX_ERR_PARTIAL_SUCCESS)
        return fail_pmix(rc, what);
    int dead = dead_pe(NEWS_MS);
    return dead >= 0
               ? fail_dead(dead, what)
               : gpsh_fail(GPUSHMEM_ERR_PE_FAILED, "%s: a PE died while this PE waited", what);
}

static int fence_given_up(const struct gpsh_bootstrap *b, const char *what)
{
    int dead = dead_pe(0);
    if (dead >= 0)
        return fail_dead(dead, what);
    return gpsh_fail(GPUSHMEM_ERR_TIMEOUT,
                     "%s timed out after %lld ms (GPUSHMEM_WAIT_TIMEOUT_MS): not all of the %d PEs "
                     "came here",
                     what, (long long)b->wait_timeout_ms, b->n_pes);
}

static int collecting_fence(const struct gpsh_bootstrap *b, const char *what)
{
    if (b->singleton)
        return 0;
    gpsh_node_watch_settle(client.nodes);
    struct gpsh_pmix_reply *r = gpsh_pmix_reply_create();
    if (!r)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory to wait for the other PEs");
    pmix_info_t collect;
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, NULL, PMIX_BOOL);
    pmix_status_t rc = PMIx_Fence_nb(NULL, 0, &collect, 1, gpsh_pmix_reply_status, r);
    if (rc == PMIX_SUCCESS) {
        bool came = fence_wait(b, r, what);
        if (b->waits)
            b->waits(true);
        if (!came && !gpsh_pmix_reply_abandon(r))
            return fence_given_up(b, what);
        rc = gpsh_pmix_reply_get(r, NULL);
    }
    gpsh_pmix_reply_destroy(r);
    PMIX_INFO_DESTRUCT(&collect);
    return fence_result(rc, what);
}

static int pmix_exchange(struct gpsh_bootstrap *b)
{
    return collecting_fence(b, "the exchange through the launcher");
}

static int pmix_fence(struct gpsh_bootstrap *b)
{
    return collecting_fence(b, "the barrier of the launcher");
}

// Checks what claims to be the blob of `pe` and copies what it holds.
static int unpack(int pe, const char *packed, size_t packed_bytes, void **blob, size_t *bytes)
{
    struct blob_header header;
    if (packed_bytes < sizeof(header))
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d published %zu bytes, less than the header of %zu", pe, packed_bytes,
                         sizeof(header));
    memcpy(&header, packed, sizeof(header));
    if (header.magic != BLOB_MAGIC || header.version != BLOB_VERSION)
        return gpsh_fail(
            GPUSHMEM_ERR_PEER_DATA,
            "PE %d published data of version %u (magic %08x), this library reads version %d: "
            "all PEs must use "
            "the same release",
            pe, header.version, header.magic, BLOB_VERSION);
    if (header.pe != (uint32_t)pe || header.round != client.round)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d published data of PE %u, round %u; this PE is in round %u", pe,
                         header.pe, header.round, client.round);
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
    gpsh_node_watch_hear(client.nodes, pe, &header.card, note_death);
    return 0;
}

static int pmix_get(struct gpsh_bootstrap *b, int pe, void **blob, size_t *bytes)
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
    // After a fence that collected everything is here; a missing key must not wait for the peer to
    // put it.
    pmix_info_t immediate;
    pmix_value_t *value = NULL;
    PMIX_INFO_LOAD(&immediate, PMIX_IMMEDIATE, NULL, PMIX_BOOL);
    pmix_status_t rc = PMIx_Get(&proc, key, &immediate, 1, &value);
    PMIX_INFO_DESTRUCT(&immediate);
    if (rc != PMIX_SUCCESS && dead_pe(NEWS_MS) >= 0)
        return fail_dead(dead_pe(0), "the exchange through the launcher");
    if (rc != PMIX_SUCCESS)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d did not publish its data of round %u: %s (PMIx status %d)", pe,
                         client.round, PMIx_Error_string(rc), (int)rc);
    int error =
        value->type == PMIX_BYTE_OBJECT
            ? unpack(pe, value->data.bo.bytes, value->data.bo.size, blob, bytes)
            : gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                        "PE %d published a value of PMIx type %d, not bytes", pe, value->type);
    PMIX_VALUE_RELEASE(value);
    return error;
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
        if (gpsh_thread_start(&thread, "gpushmem-abort", carry_out_abort, order) == 0) {
            pthread_detach(thread);
            return 0;
        }
    }
    free(order);
    free(copy);
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                     "no memory or thread to ask the launcher for the end of the job");
}

static int pmix_abort(struct gpsh_bootstrap *b, int status, const char *why)
{
    if (b->singleton)
        return 0;
    if (in_library_thread)
        return abort_from_other_thread(status, why);
    pmix_status_t rc = PMIx_Abort(status, why, NULL, 0);
    return rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED
               ? 0
               : fail_pmix(rc, "asking the launcher to end the job");
}

static int pmix_watch_nodes(struct gpsh_bootstrap *b, const char *interface)
{
    if (b->singleton || b->node_n_pes == b->n_pes)
        return 0;
    client.nodes = gpsh_node_watch_open(b, interface);
    return client.nodes ? 0 : gpsh_last_error_code();
}

static void pmix_tell_death(struct gpsh_bootstrap *b, int pe, const char *reason)
{
    (void)b;
    gpsh_node_watch_tell(client.nodes, pe, reason);
}

static void pmix_expect_departures(struct gpsh_bootstrap *b, bool (*has_told)(int pe))
{
    (void)b;
    gpsh_node_watch_expect_departures(client.nodes, has_told);
}

static void forget_deaths(void)
{
    gpsh_node_watch_close(client.nodes);
    client.nodes = NULL;
    if (client.has_handler)
        PMIx_Deregister_event_handler(client.handler, NULL, NULL);
    client.has_handler = false;
    pthread_mutex_lock(&client.deaths_lock);
    client.on_death = NULL;
    pthread_mutex_unlock(&client.deaths_lock);
}

static int pmix_finalize(struct gpsh_bootstrap *b)
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

// libpmix does not know which process asks: the launcher ends the caller with the others.
static const struct gpsh_bootstrap_ops pmix_ops = {
    .put = pmix_put,
    .exchange = pmix_exchange,
    .get = pmix_get,
    .fence = pmix_fence,
    .on_death = pmix_on_death,
    .check = pmix_check,
    .abort = pmix_abort,
    .end_job = pmix_abort,
    .watch_nodes = pmix_watch_nodes,
    .tell_death = pmix_tell_death,
    .expect_departures = pmix_expect_departures,
    .finalize = pmix_finalize,
};
