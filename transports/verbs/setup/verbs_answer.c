// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// The other end of a rail that was lost: a PE whose queue pair has failed asks how far it got, that
// is which packet this PE's end of it would have taken next. The question is a word of this PE's
// control region, written by that PE over another rail; the answer is another word, which that PE
// reads. So the answer needs neither a queue pair of this PE nor its program, but a thread that
// looks: every few milliseconds, at a word for each PE, and only where there are several rails.
//
// Before it answers, this end goes to the error state as well: it takes nothing any more, so the
// answer stays true. The asker's end is in that state already, and what it had sent has arrived or
// is gone, after the time that passes here until the second look. What was taken last has as long
// to reach memory, for the answer is given at the third: what the asker sends then comes by another
// NIC, whose writes might be faster.
#include <errno.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/thread.h"
#include "transports/verbs/setup/verbs_setup.h"

enum { LOOK_MS = 10 };

// A question that stands, and what has been done about it.
struct verbs_asked {
    uint32_t question, psn; // psn: what the queue pair expected when it was ended
    bool ended, known;      // known: it has told the number,
    bool failed;            // though it was in error before
};

struct verbs_answerer {
    struct gpsh_verbs *verbs;
    struct gpsh_thread thread;
    pthread_mutex_t lock;
    pthread_cond_t stopped;
    bool stop;
    const _Atomic uint64_t *questions; // [n_pes], in the control region
    _Atomic uint64_t *answers;
    struct verbs_asked asked[]; // [n_pes]
};

// One that was reset is as one that stays in the error state.
static bool query(struct verbs_lane *lane, struct ibv_qp_attr *attr)
{
    struct ibv_qp_init_attr init;
    memset(attr, 0, sizeof *attr);
    bool told = !ibv_query_qp(lane->qp, attr, IBV_QP_STATE | IBV_QP_RQ_PSN, &init);
    uint32_t expected = atomic_load(&lane->expected); // set before the reset
    if (expected) {
        attr->qp_state = IBV_QPS_ERR;
        attr->rq_psn = expected;
    }
    return told || expected;
}

// The lane that is asked about, or NULL: there is none. The asker's end may be up, and this one not
// have heard of it yet: the caller holds the lock.
static struct verbs_lane *lane_of(const struct gpsh_verbs *verbs, int pe, uint32_t question)
{
    uint32_t channel = question & 0xffff, rail = question >> 16 & 0xff;
    if (channel >= (uint32_t)verbs->env.channels || rail >= verbs->n_rails ||
        question != verbs_question(channel, rail))
        return NULL;
    struct verbs_flow *flow = verbs_flow_at(&verbs->channels[channel], pe);
    return flow && rail < flow->n_rails && flow->lanes[rail].qp ? &flow->lanes[rail] : NULL;
}

// A NIC that forgets the number of a queue pair in error has no answer, nor has a queue pair that
// goes on. One that was in error already, as this PE has lost the rail too, cannot be compared: 0
// may be its number, but what was forgotten looks like that.
static uint32_t answer_of(const struct gpsh_verbs *verbs, int pe, const struct verbs_asked *asked)
{
    struct verbs_lane *lane = lane_of(verbs, pe, asked->question);
    struct ibv_qp_attr now;
    if (!asked->known || !lane || !query(lane, &now) || now.qp_state != IBV_QPS_ERR)
        return 0;
    uint32_t psn = now.rq_psn & (VERBS_PSNS - 1);
    if (psn != asked->psn || (asked->failed && !psn))
        return 0;
    GPSH_LOG(INFO, "verbs", "PE %d has lost %s in channel %u, whose packet %u is the next", pe,
             verbs->rails[asked->question >> 16 & 0xff].name, asked->question & 0xffff, psn);
    return VERBS_ANSWER_KNOWN | psn;
}

static void end_qp(struct verbs_lane *lane, struct verbs_asked *asked)
{
    struct ibv_qp_attr now;
    asked->ended = true;
    asked->known = lane && query(lane, &now);
    if (!asked->known)
        return;
    asked->psn = now.rq_psn & (VERBS_PSNS - 1);
    asked->failed = now.qp_state == IBV_QPS_ERR;
    gpsh_verbs_qp_kill(lane->qp);
}

static void settle(struct verbs_answerer *answerer, int pe, uint32_t question,
                   struct verbs_asked *asked)
{
    struct gpsh_verbs *verbs = answerer->verbs;
    pthread_mutex_lock(&verbs->queue_pairs);
    if (!asked->ended)
        end_qp(lane_of(verbs, pe, question), asked);
    else
        atomic_store(&answerer->answers[pe],
                     (uint64_t)question << 32 | answer_of(verbs, pe, asked));
    pthread_mutex_unlock(&verbs->queue_pairs);
}

static void look(struct verbs_answerer *answerer, int pe)
{
    uint32_t question = (uint32_t)atomic_load(&answerer->questions[pe]);
    struct verbs_asked *asked = &answerer->asked[pe];
    if (asked->question != question)
        *asked = (struct verbs_asked){.question = question};
    else if (!question || atomic_load(&answerer->answers[pe]) >> 32 == question)
        return;
    else
        settle(answerer, pe, question, asked);
}

// False when it is time to stop.
static bool rest(struct verbs_answerer *answerer)
{
    const uint64_t until_ns = gpsh_clock_in(LOOK_MS);
    pthread_mutex_lock(&answerer->lock);
    int error = 0;
    while (!answerer->stop && error != ETIMEDOUT)
        error = gpsh_cond_wait_until(&answerer->stopped, &answerer->lock, until_ns);
    bool stop = answerer->stop;
    pthread_mutex_unlock(&answerer->lock);
    return !stop;
}

static void *run(void *arg)
{
    struct verbs_answerer *answerer = arg;
    while (rest(answerer))
        for (const struct verbs_peer *peer = atomic_load(&answerer->verbs->newest); peer;
             peer = peer->next)
            look(answerer, peer->pe);
    return NULL;
}

static void destroy(struct verbs_answerer *answerer)
{
    pthread_cond_destroy(&answerer->stopped);
    pthread_mutex_destroy(&answerer->lock);
    free(answerer);
}

int gpsh_verbs_answerer_start(struct gpsh_verbs *verbs)
{
    size_t n_pes = (size_t)verbs->env.n_pes;
    if (verbs->answerer || !verbs->env.notes)
        return 0;
    struct verbs_answerer *answerer =
        calloc(1, sizeof *answerer + n_pes * sizeof answerer->asked[0]);
    if (!answerer)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the thread that answers for rails");
    char *notes = verbs->env.regions[GPSH_CONTROL].base + verbs->env.notes;
    answerer->verbs = verbs;
    answerer->questions = (_Atomic uint64_t *)(void *)notes + n_pes;
    answerer->answers = (_Atomic uint64_t *)(void *)notes + 2 * n_pes;
    gpsh_cond_init(&answerer->stopped);
    pthread_mutex_init(&answerer->lock, NULL);
    int status = gpsh_thread_start(&answerer->thread, "gpshmem-rails", run, answerer);
    if (status)
        destroy(answerer);
    else
        verbs->answerer = answerer;
    return status;
}

void gpsh_verbs_answerer_stop(struct gpsh_verbs *verbs)
{
    struct verbs_answerer *answerer = verbs->answerer;
    if (!answerer)
        return;
    pthread_mutex_lock(&answerer->lock);
    answerer->stop = true;
    pthread_cond_signal(&answerer->stopped);
    pthread_mutex_unlock(&answerer->lock);
    gpsh_thread_join(&answerer->thread);
    destroy(answerer);
    verbs->answerer = NULL;
}
