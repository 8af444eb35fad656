// SPDX-License-Identifier: BSD-3-Clause
// Joining: call the meeting, be told where the parent listens, call the parent. Then a first
// exchange, of who is on which node and where everybody listens.
#define _GNU_SOURCE // what pthread and sockets need
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/bootstrap_ways.h"
#include "bootstrap/node_key.h"
#include "bootstrap/tcp_dial.h"
#include "bootstrap/tcp_tree.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"

enum { MOST_SLACK_MS = 5000 };

// How long a PE waits. The place where all meet decides first what is wrong, so a PE gives it an
// eighth more.
static int64_t tcp_patience_ms(const struct gpsh_settings *settings)
{
    int64_t slack = settings->bootstrap_timeout_ms / 8 + 50;
    return settings->bootstrap_timeout_ms + (slack < MOST_SLACK_MS ? slack : MOST_SLACK_MS);
}

struct tcp_job {
    struct gpsh_tcp_tree *tree;
    struct gpsh_parcel *bundle;     // of the last exchange
    struct gpsh_blob_place *places; // [n_pes] in it
    void *own;                      // what was put
    size_t own_bytes;
    bool exchanged; // the bundle is that of what was put last
};

// One job at a time.
static struct gpsh_deaths deaths = GPSH_DEATHS_INITIALIZER;

// What PEs tell each other first.
struct member {
    struct gpsh_tcp_address listens;
    struct gpsh_node_key node;
    uint8_t random[GPSH_SECRET_BYTES]; // PE 0's makes the secret that the PEs use from then on
};

struct joining {
    struct gpsh_uniqueid id;
    const struct gpsh_settings *settings;
    struct gpsh_bootstrap *b;
    struct tcp_job *job;
    struct gpsh_tcp_address listens;
    uint64_t deadline_ns;
};

// Else the meeting says so, to all.
static bool tcp_is_possible(const struct gpsh_bootstrap *b)
{
    return b->n_pes >= 1 && b->n_pes <= GPSH_TCP_MOST_PES && b->my_pe >= 0 && b->my_pe < b->n_pes;
}

// This PE can be reached by others where it can be reached by those who called it: at the address
// by which it reaches the meeting.
static int tcp_listen(int fd, struct gpsh_hello *hello, void *arg)
{
    struct joining *j = arg;
    struct sockaddr_storage here = {0};
    socklen_t bytes = sizeof here;
    if (tcp_is_possible(j->b) && !j->job->tree) {
        const char *setting = j->settings->bootstrap_interface;
        int n = 1;
        if (*setting)
            n = gpsh_tcp_address_choose(setting, &j->listens, 1);
        else if (getsockname(fd, (struct sockaddr *)&here, &bytes) ||
                 !gpsh_tcp_address_from((struct sockaddr *)&here, &j->listens))
            return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                             "the address by which others reach this process is not known: %s",
                             strerror(errno));
        if (n < 0)
            return n;
        j->job->tree = gpsh_tcp_tree_create(&j->id, j->b->my_pe, j->b->n_pes, &j->listens, &deaths);
        if (!j->job->tree)
            return gpsh_last_error_code();
    }
    hello->listens = j->listens;
    return 0;
}

static int tcp_meeting_ended(int error, int64_t waited_ms)
{
    if (error == ETIMEDOUT)
        return gpsh_fail(GPUSHMEM_ERR_TIMEOUT,
                         "the process that made the unique id did not say within %g s "
                         "(GPUSHMEM_BOOTSTRAP_TIMEOUT_MS) that all PEs have come: is it stopped?",
                         (double)waited_ms / 1000);
    return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                     "the process that made the unique id ended before all PEs had come (%s)",
                     strerror(error ? error : ECONNRESET));
}

// What the meeting says: a parent, or what is wrong.
static int tcp_read_answer(const struct gpsh_parcel *said, int *parent,
                           struct gpsh_tcp_address *where)
{
    char sentence[GPSH_SENTENCE_BYTES];
    const struct gpsh_frame *frame = &said->frame;
    if (frame->type == GPSH_FRAME_PARENT) {
        *parent = frame->pe;
        memcpy(where, said->payload, sizeof *where);
        return 0;
    }
    gpsh_frame_text(said->payload, frame->bytes, sentence, sizeof sentence);
    return gpsh_fail(frame->type == GPSH_FRAME_FAIL ? -(int)frame->round : GPUSHMEM_ERR_PEER_DATA,
                     "%s", sentence);
}

static void meeting_said(struct gpsh_tcp_link *link, struct gpsh_parcel *parcel)
{
    gpsh_parcel_release(link->kept);
    link->kept = parcel;
}

static void meeting_ended(struct gpsh_tcp_link *link)
{
    (void)link; // its state says so
}

static int tcp_meet(struct joining *j, struct gpsh_tcp_loop *loop, int *parent,
                    struct gpsh_tcp_address *where)
{
    static const struct gpsh_tcp_link_ops meeting_ops = {.frame = meeting_said,
                                                         .ended = meeting_ended};
    struct gpsh_tcp_dial dial = {
        .id = &j->id,
        .addresses = j->id.address,
        .n = j->id.n_addresses,
        .hello = {.purpose = GPSH_PURPOSE_REGISTER, .pe = j->b->my_pe, .n_pes = j->b->n_pes},
        .prepare = tcp_listen,
        .arg = j,
        .whom = "the process that made the unique id",
        .deadline_ns = j->deadline_ns};
    struct gpsh_tcp_link *link = gpsh_tcp_dial(loop, &dial);
    if (!link)
        return gpsh_last_error_code();
    link->ops = &meeting_ops;
    while (!link->kept && link->state == GPSH_TCP_OPEN && gpsh_clock_ns() < j->deadline_ns)
        gpsh_tcp_loop_turn(loop, gpsh_clock_left_ms(j->deadline_ns), NULL);
    int status = link->kept
                     ? tcp_read_answer(link->kept, parent, where)
                     : tcp_meeting_ended(link->state == GPSH_TCP_OPEN ? ETIMEDOUT : link->error,
                                         tcp_patience_ms(j->settings));
    gpsh_tcp_link_destroy(link);
    return status;
}

// Before the tree's thread runs: this one serves the tree meanwhile.
static int tcp_call_parent(struct joining *j, int parent, const struct gpsh_tcp_address *where)
{
    char whom[16];
    struct gpsh_tcp_dial dial = {.id = &j->id,
                                 .addresses = where,
                                 .n = 1,
                                 .hello = {.purpose = GPSH_PURPOSE_CHILD,
                                           .pe = j->b->my_pe,
                                           .n_pes = j->b->n_pes,
                                           .listens = j->listens},
                                 .whom = whom,
                                 .deadline_ns = j->deadline_ns};
    snprintf(whom, sizeof whom, "PE %d", parent);
    struct gpsh_tcp_link *link = gpsh_tcp_dial(&j->job->tree->loop, &dial);
    if (!link)
        return gpsh_last_error_code();
    gpsh_tcp_tree_add_link(j->job->tree, link, parent);
    return 0;
}

// ------------------------------------------------------------------------------------------
// exchange

static int tcp_run_exchange(struct gpsh_bootstrap *b, const void *blob, size_t bytes,
                            int64_t timeout_ms)
{
    static const char what[] = GPSH_BOOTSTRAP_EXCHANGE;
    struct tcp_job *job = b->data;
    struct gpsh_parcel *bundle;
    int status = gpsh_tcp_tree_exchange(job->tree, blob, bytes, timeout_ms, what, &bundle);
    if (status)
        return status;
    gpsh_parcel_release(job->bundle);
    job->bundle = bundle;
    int n = gpsh_bundle_parse(bundle->payload, bundle->frame.bytes, job->places, b->n_pes);
    return n == b->n_pes ? 0
                         : gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                                     "%s brought something that is no list of the data of %d PEs: "
                                     "all must run the same release of gpushmem",
                                     what, b->n_pes);
}

static int tcp_put(struct gpsh_bootstrap *b, const void *blob, size_t bytes)
{
    struct tcp_job *job = b->data;
    free(job->own);
    job->own_bytes = bytes;
    job->exchanged = false;
    return gpsh_bootstrap_copy(b->my_pe, blob, bytes, &job->own);
}

static int tcp_exchange(struct gpsh_bootstrap *b)
{
    struct tcp_job *job = b->data;
    int status = tcp_run_exchange(b, job->own, job->own_bytes, b->wait_timeout_ms);
    job->exchanged = !status;
    return status;
}

static int tcp_get(struct gpsh_bootstrap *b, int pe, void **blob, size_t *bytes)
{
    const struct tcp_job *job = b->data;
    if (!job->exchanged)
        return gpsh_fail(GPUSHMEM_ERR_STATE, "nothing of this round was exchanged yet");
    *bytes = job->places[pe].bytes;
    return gpsh_bootstrap_copy(pe, job->places[pe].data, *bytes, blob);
}

// ------------------------------------------------------------------------------------------
// trouble, and the end

static struct gpsh_tcp_tree *tcp_tree(const struct gpsh_bootstrap *b)
{
    const struct tcp_job *job = b->data;
    return job->tree;
}

static int tcp_abort(struct gpsh_bootstrap *b, int status, const char *why, bool all)
{
    struct tcp_job *job = b->data;
    gpsh_tcp_tree_end_job(job->tree, status, why, all);
    return 0;
}

static void tcp_finalize(struct gpsh_bootstrap *b)
{
    struct tcp_job *job = b->data;
    gpsh_tcp_tree_destroy(job->tree);
    gpsh_deaths_close(&deaths);
    gpsh_parcel_release(job->bundle);
    free(job->places);
    free(job->own);
    free(job);
}

static const struct gpsh_bootstrap_ops tcp_ops = {
    .put = tcp_put,
    .exchange = tcp_exchange,
    .get = tcp_get,
    .abort = tcp_abort,
    .tree = tcp_tree,
    .finalize = tcp_finalize,
};

// ------------------------------------------------------------------------------------------
// joining

// From what all have told: who is on this node, and where everybody listens.
static int tcp_read_members(struct gpsh_bootstrap *b, const struct gpsh_uniqueid *id,
                            const struct member *me)
{
    uint8_t secret[GPSH_SHA256_BYTES];
    struct tcp_job *job = b->data;
    struct gpsh_tcp_address *addresses = calloc((size_t)b->n_pes, sizeof *addresses);
    b->node_pes = calloc((size_t)b->n_pes, sizeof *b->node_pes);
    int status = addresses && b->node_pes ? 0
                                          : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                                                      "no memory for a list of %d PEs", b->n_pes);
    for (int pe = 0; pe < b->n_pes && !status; pe++) {
        struct member member;
        if (job->places[pe].bytes != sizeof member) {
            status = gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                               "PE %d describes itself in %llu bytes, not %zu: all PEs must run "
                               "the same release of gpushmem",
                               pe, (unsigned long long)job->places[pe].bytes, sizeof member);
            break;
        }
        memcpy(&member, job->places[pe].data, sizeof member);
        addresses[pe] = member.listens;
        if (pe == 0)
            gpsh_hmac_sha256(id->secret, sizeof id->secret, member.random, sizeof member.random,
                             secret);
        if (pe == b->my_pe)
            b->node_my_pe = b->node_n_pes;
        if (memcmp(&member.node, &me->node, sizeof me->node) == 0)
            b->node_pes[b->node_n_pes++] = pe;
    }
    if (status)
        gpsh_tcp_tree_give_up(job->tree, status);
    else
        gpsh_tcp_tree_set_peers(job->tree, NULL, addresses, secret);
    free(addresses);
    return status;
}

static int tcp_join(struct joining *j)
{
    int parent = 0;
    struct gpsh_tcp_address where;
    struct gpsh_tcp_loop loop;
    int status = 0, error = gpsh_tcp_loop_open(&loop);
    if (error)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                         "no file descriptors to join a job: %s; this process may have too few "
                         "(ulimit -n)",
                         strerror(error));
    status = tcp_meet(j, &loop, &parent, &where);
    gpsh_tcp_loop_close(&loop);
    if (!status && !j->job->tree)
        status = gpsh_fail(GPUSHMEM_ERR_INVALID,
                           "there is no PE %d in a job of %d PEs; ranks begin at 0, and all PEs "
                           "pass the same size",
                           j->b->my_pe, j->b->n_pes);
    if (!status && j->b->my_pe > 0)
        status = tcp_call_parent(j, parent, &where);
    if (!status)
        status = gpsh_tcp_tree_start(j->job->tree);
    if (status)
        return status;
    struct member me = {.listens = j->listens, .node = gpsh_node_key(j->settings->bootstrap_node)};
    error = gpsh_random(me.random, sizeof me.random);
    if (error)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "the kernel gives no random numbers: %s",
                         strerror(error));
    int left_ms = gpsh_clock_left_ms(j->deadline_ns);
    status = tcp_run_exchange(j->b, &me, sizeof me, left_ms ? left_ms : 1);
    return status ? status : tcp_read_members(j->b, &j->id, &me);
}

// gpushmem_init_mpi with the communicator of all processes would end here.
static void remark_mpi(int n_pes)
{
    const char *started = getenv("GPUSHMEM_RUN_SIZE");
    if (n_pes == 1 && started && atoi(started) > 1)
        GPSH_LOG(WARN, "bootstrap",
                 "gpushmem run started %s processes, and this one joins a job of one by a unique "
                 "id: gpushmem run is no launcher of MPI; start programs that use MPI with mpirun "
                 "or srun",
                 started);
}

int gpsh_bootstrap_tcp_init(struct gpsh_bootstrap *b, const struct gpushmem_uniqueid *id, int rank,
                            int n_pes, const struct gpsh_settings *settings)
{
    *b = (struct gpsh_bootstrap){.ops = &tcp_ops, .deaths = &deaths, .my_pe = rank, .n_pes = n_pes};
    struct joining j = {.b = b, .settings = settings};
    int status = gpsh_uniqueid_parse(id, &j.id);
    if (status)
        return status;
    size_t room = tcp_is_possible(b) ? (size_t)n_pes : 1;
    j.deadline_ns = gpsh_clock_in(tcp_patience_ms(settings));
    j.job = calloc(1, sizeof *j.job);
    if (j.job)
        j.job->places = calloc(room, sizeof *j.job->places);
    if (!j.job || !j.job->places || gpsh_deaths_open(&deaths, (int)room)) {
        if (j.job)
            free(j.job->places);
        free(j.job);
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a list of %d PEs", n_pes);
    }
    b->data = j.job;
    status = tcp_join(&j);
    if (status) {
        gpsh_bootstrap_finalize(b);
        return status;
    }
    uint64_t number;
    memcpy(&number, j.id.job, sizeof number);
    snprintf(b->job_id, sizeof b->job_id, "uid-%016llx", (unsigned long long)number);
    remark_mpi(n_pes);
    GPSH_LOG(DEBUG, "bootstrap", "PE %d of %d, number %d of %d on this node, by unique id",
             b->my_pe, b->n_pes, b->node_my_pe, b->node_n_pes);
    return 0;
}
