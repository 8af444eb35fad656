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
#include <errno.h>
#include <pmix.h>
#include <pthread.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bootstrap/bootstrap_job.h"
#include "bootstrap/bootstrap_ways.h"
#include "bootstrap/kvs_job.h"
#include "bootstrap/node_watch.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/thread.h"

enum { FEW_THREADS = 4096 };

// The PMIx library has one state per process, so this does, too.
static struct {
    pmix_proc_t me;
    pid_t pid;   // of the process that initialised PMIx, 0: nobody did
    bool active; // between our init and finalize
    size_t handler;
    bool has_handler;
    struct gpsh_kvs_job job; // with the deaths that the launcher told
} client = {.job = GPSH_KVS_JOB_INITIALIZER};

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

// What a call of libpmix that is under way will say. A thread that waits for it may give up; then
// the answer, if it ever comes, frees it.
struct answer {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool arrived, abandoned;
    pmix_status_t status;
};

static struct answer *answer_create(void)
{
    struct answer *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    pthread_mutex_init(&a->lock, NULL);
    gpsh_cond_init(&a->ended);
    return a;
}

static void answer_free(struct answer *a)
{
    pthread_cond_destroy(&a->ended);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static void answer_comes(pmix_status_t status, void *arg)
{
    struct answer *a = arg;
    pthread_mutex_lock(&a->lock);
    a->status = status;
    a->arrived = true;
    bool abandoned = a->abandoned;
    pthread_cond_signal(&a->ended);
    pthread_mutex_unlock(&a->lock);
    if (abandoned)
        answer_free(a);
}

static bool answer_came(void *arg, long ms)
{
    struct answer *a = arg;
    const uint64_t until_ns = gpsh_clock_in(ms);
    pthread_mutex_lock(&a->lock);
    for (int late = 0; !a->arrived && !late;)
        late = gpsh_cond_wait_until(&a->ended, &a->lock, until_ns);
    bool arrived = a->arrived;
    pthread_mutex_unlock(&a->lock);
    return arrived;
}

// It must not be touched any more, unless it has arrived just now, which is what true says.
static bool answer_abandon(struct answer *a)
{
    pthread_mutex_lock(&a->lock);
    bool arrived = a->arrived;
    a->abandoned = true;
    pthread_mutex_unlock(&a->lock);
    return arrived;
}

static void *init_pmix(void *answer)
{
    answer_comes(PMIx_Init(&client.me, NULL, 0), answer);
    return NULL;
}

// The PMIx library starts a thread, which inherits name and signal mask from the one that
// initialises it. That one is therefore not the caller, so that the program still takes its signals
// while a launcher is slow to answer. Some never do: OpenMPI's, when another PE is killed as it
// joins. What was given up is waited for again by a further init.
static int init_pmix_apart(const struct gpsh_bootstrap *b, pmix_status_t *status)
{
    static struct answer *joining;
    struct gpsh_thread thread;
    if (!joining) {
        joining = answer_create();
        if (!joining)
            return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory to wait for the launcher");
        int error = gpsh_thread_start(&thread, "gpushmem-pmix", init_pmix, joining);
        if (error) {
            answer_free(joining);
            joining = NULL;
            return error;
        }
        pthread_detach(thread.id);
    }
    if (!gpsh_kvs_wait(&client.job, b, "joining the launcher's job", answer_came, joining))
        return gpsh_fail(GPUSHMEM_ERR_TIMEOUT,
                         "the launcher's PMIx server has not answered for %lld ms "
                         "(GPUSHMEM_WAIT_TIMEOUT_MS): is the launcher stopped, or has another PE "
                         "ended as it joined?",
                         (long long)b->wait_timeout_ms);
    *status = joining->status;
    answer_free(joining);
    joining = NULL;
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

static int join_pmix(const struct gpsh_bootstrap *b)
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
    pmix_status_t rc = PMIX_ERROR;
    int error = init_pmix_apart(b, &rc);
    if (error)
        return error;
    if (rc != PMIX_SUCCESS)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "PMIX_NAMESPACE is set, so a launcher started this process, but its PMIx "
                         "server does not answer: %s (PMIx status %d)%s; is the launcher still "
                         "running? To be a job of one PE, set GPUSHMEM_BOOTSTRAP=single; `gpushmem "
                         "doctor` explains it under pmix",
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

static void note_event(int pe, pmix_status_t status)
{
    char reason[100];
    snprintf(reason, sizeof(reason), "the launcher reports that it ended (%s)",
             PMIx_Error_string(status));
    gpsh_kvs_note_death(&client.job, pe, reason);
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
                dead->rank < (pmix_rank_t)client.job.deaths.n_pes;
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
    int error = gpsh_kvs_job_open(&client.job, n_pes);
    if (error)
        return error;
    pmix_status_t number = PMIx_Register_event_handler(causes, sizeof(causes) / sizeof(causes[0]),
                                                       NULL, 0, on_event, NULL, NULL);
    client.has_handler = number >= 0;
    client.handler = client.has_handler ? (size_t)number : 0;
    return number >= 0 ? 0 : fail_pmix(number, "asking the launcher for news of PEs that end");
}

static const struct gpsh_bootstrap_ops pmix_ops;

int gpsh_bootstrap_pmix_init(struct gpsh_bootstrap *b, const struct gpsh_settings *settings)
{
    *b = (struct gpsh_bootstrap){.ops = &pmix_ops,
                                 .data = &client.job,
                                 .deaths = &client.job.deaths,
                                 .wait_timeout_ms = settings->wait_timeout_ms};
    int error = join_pmix(b);
    if (!error)
        error = gpsh_bootstrap_job_read(b, &client.me);
    if (!error)
        error = listen_for_deaths(b->n_pes);
    if (error) {
        gpsh_bootstrap_finalize(b);
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
    round_key(key, sizeof(key), client.job.round);
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
    void *packed;
    size_t packed_bytes;
    int status = gpsh_kvs_pack(&client.job, b->my_pe, blob, bytes, &packed, &packed_bytes);
    if (status)
        return status;
    status = publish(b, packed, packed_bytes);
    free(packed);
    return status;
}

static int fence_result(pmix_status_t rc)
{
    static const char what[] = GPSH_BOOTSTRAP_EXCHANGE;
    if (rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED)
        return 0;
    if (rc != PMIX_ERR_PARTIAL_SUCCESS)
        return fail_pmix(rc, what);
    int dead = gpsh_deaths_check(&client.job.deaths, what, GPSH_DEATHS_NEWS_MS);
    return dead ? dead
                : gpsh_fail(GPUSHMEM_ERR_PE_FAILED, "%s: a PE died while this PE waited", what);
}

static int pmix_exchange(struct gpsh_bootstrap *b)
{
    gpsh_node_watch_settle(client.job.nodes);
    struct answer *a = answer_create();
    if (!a)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory to wait for the other PEs");
    pmix_info_t collect;
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, NULL, PMIX_BOOL);
    pmix_status_t rc = PMIx_Fence_nb(NULL, 0, &collect, 1, answer_comes, a);
    if (rc == PMIX_SUCCESS) {
        bool came = gpsh_kvs_wait(&client.job, b, GPSH_BOOTSTRAP_EXCHANGE, answer_came, a);
        if (!came && !answer_abandon(a))
            return gpsh_kvs_given_up(&client.job, b);
        rc = a->status;
    }
    answer_free(a);
    PMIX_INFO_DESTRUCT(&collect);
    return fence_result(rc);
}

static int pmix_get(struct gpsh_bootstrap *b, int pe, void **blob, size_t *bytes)
{
    (void)b;
    char key[48];
    round_key(key, sizeof(key), client.job.round);
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, client.me.nspace, (pmix_rank_t)pe);
    // After a fence that collected everything is here; a missing key must not wait for the peer to
    // put it.
    pmix_info_t immediate;
    pmix_value_t *value = NULL;
    PMIX_INFO_LOAD(&immediate, PMIX_IMMEDIATE, NULL, PMIX_BOOL);
    pmix_status_t rc = PMIx_Get(&proc, key, &immediate, 1, &value);
    PMIX_INFO_DESTRUCT(&immediate);
    int dead = rc == PMIX_SUCCESS ? 0
                                  : gpsh_deaths_check(&client.job.deaths, GPSH_BOOTSTRAP_EXCHANGE,
                                                      GPSH_DEATHS_NEWS_MS);
    if (dead)
        return dead;
    if (rc != PMIX_SUCCESS)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d did not publish its data of round %u: %s (PMIx status %d)", pe,
                         client.job.round, PMIx_Error_string(rc), (int)rc);
    int error =
        value->type == PMIX_BYTE_OBJECT
            ? gpsh_kvs_unpack(&client.job, pe, value->data.bo.bytes, value->data.bo.size, blob,
                              bytes)
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
    struct gpsh_thread thread;
    struct abort_order *order = malloc(sizeof(*order));
    char *copy = strdup(why);
    if (order && copy) {
        *order = (struct abort_order){.status = status, .why = copy};
        if (gpsh_thread_start(&thread, "gpushmem-abort", carry_out_abort, order) == 0) {
            pthread_detach(thread.id);
            return 0;
        }
    }
    free(order);
    free(copy);
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                     "no memory or thread to ask the launcher for the end of the job");
}

static int pmix_abort(struct gpsh_bootstrap *b, int status, const char *why, bool all)
{
    (void)b, (void)all;
    if (in_library_thread)
        return abort_from_other_thread(status, why);
    pmix_status_t rc = PMIx_Abort(status, why, NULL, 0);
    return rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED
               ? 0
               : fail_pmix(rc, "asking the launcher to end the job");
}

static void stop_listening(void)
{
    if (client.has_handler)
        PMIx_Deregister_event_handler(client.handler, NULL, NULL);
    client.has_handler = false;
}

static void pmix_finalize(struct gpsh_bootstrap *b)
{
    (void)b;
    stop_listening();
    gpsh_kvs_job_leave(&client.job);
    client.active = false;
}

// Comes after the handler, which has found the PE in its job.
static void pmix_goodbye(void)
{
    stop_listening();
    client.active = false;
    leave_pmix();
}

// libpmix does not know which process asks: the launcher ends the caller with the others.
static const struct gpsh_bootstrap_ops pmix_ops = {
    .put = pmix_put,
    .exchange = pmix_exchange,
    .get = pmix_get,
    .abort = pmix_abort,
    .watch_nodes = gpsh_kvs_watch_nodes,
    .tree = gpsh_kvs_tree,
    .goodbye = pmix_goodbye,
    .finalize = pmix_finalize,
};
