// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// The agent of a staged heap, or of atomics: takes the requests that arrive in the mailboxes,
// carries them out through one in-order queue, and counts them in the words that the senders read.
// It waits for nobody.
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "core/thread.h"
#include "transport/direct.h"
#include "transports/verbs/stage/verbs_staging.h"

enum {
    TASKS = 1024, // under way at a time, over all mailboxes
    CHECK_EVERY = 1 << 12,
    // What the thread does after passes that find nothing. Threads of this process that wait make
    // passes too (progress): then this thread only stands by.
    SPINS = 64,
    YIELDS = 512,
    NAP_NS = 20000,
    HELPED_NAP_NS = 100000,
};

struct mailbox {
    uint64_t taken, done;
    uint64_t refused; // STAGE_REFUSED_*: the words of this mailbox end here
};

// A request in the queue.
struct task {
    uint32_t box;
    bool fetch; // an atomic whose previous value goes to the slot
    char *payload;
};

struct verbs_agent {
    struct gpsh_verbs *verbs;
    const struct gpsh_queue_ops *ops;
    struct gpsh_queue *queue;
    uint64_t heap_bytes;          // as far as it has grown
    uint64_t *arrived, *answered; // [n_boxes] in the area
    char *slots;
    struct mailbox *boxes;
    uint32_t n_boxes, n_slots, slot_bytes;
    uint64_t took;                    // requests
    uint64_t begun, marked, finished; // tasks
    uint32_t vain;                    // passes in a row that found the queue at work
    struct task tasks[TASKS];
    pthread_mutex_t lock; // held by the thread that makes a pass
    _Atomic uint32_t helped;
    struct gpsh_thread thread;
    atomic_bool stop;
};

static void answer(struct verbs_agent *agent, uint32_t box)
{
    const struct mailbox *mailbox = &agent->boxes[box];
    // What a get left in the slot is there before the count that says so. Pairs with the sender's
    // two reads.
    __atomic_store_n(&agent->answered[box], mailbox->done | mailbox->refused, __ATOMIC_RELEASE);
}

static void refuse(struct verbs_agent *agent, uint32_t box, uint64_t reason)
{
    agent->boxes[box].refused = reason;
    answer(agent, box);
}

static char *base_of(const struct verbs_agent *agent, const struct stage_request *request)
{
    return agent->verbs->env.regions[request->op.region].base;
}

static bool is_valid(const struct verbs_agent *agent, const struct stage_request *request,
                     uint64_t number)
{
    const struct gpsh_request *op = &request->op;
    if (request->number != number || op->bytes > agent->slot_bytes - STAGE_HEADER ||
        op->region >= GPSH_REGIONS || (op->region != GPSH_HEAP && op->kind != GPSH_OP_AMO))
        return false;
    return gpsh_request_is_valid(op, op->region == GPSH_HEAP
                                         ? __atomic_load_n(&agent->heap_bytes, __ATOMIC_RELAXED)
                                         : agent->verbs->env.regions[op->region].bytes);
}

static int execute(struct verbs_agent *agent, const struct stage_request *request, char *payload)
{
    unsigned result = (unsigned)(agent->begun % TASKS);
    const struct gpsh_op op =
        gpsh_request_op(&request->op, payload, &agent->queue->results[result]);
    return gpsh_queue_do(agent->ops, agent->queue, &op, base_of(agent, request), result);
}

// An atomic on memory of the host where the heap is a GPU's: the processor's, at once. False: not
// yet, since earlier requests of the mailbox are still in the queue.
static bool by_processor(struct verbs_agent *agent, uint32_t box,
                         const struct stage_request *request, char *payload)
{
    struct mailbox *mailbox = &agent->boxes[box];
    uint64_t old = 0;
    if (mailbox->done != mailbox->taken)
        return false;
    const struct gpsh_op op = gpsh_request_op(&request->op, payload, &old);
    gpsh_direct_do(&op, base_of(agent, request));
    memcpy(payload, &old, sizeof old);
    mailbox->taken++;
    mailbox->done++;
    answer(agent, box);
    return true;
}

// False if the mailbox's next request has to wait.
static bool take(struct verbs_agent *agent, uint32_t box)
{
    struct mailbox *mailbox = &agent->boxes[box];
    uint64_t slot = (uint64_t)box * agent->n_slots + mailbox->taken % agent->n_slots;
    char *at = agent->slots + slot * agent->slot_bytes;
    struct stage_request request; // once: a peer could change it between a check and its use
    memcpy(&request, at, sizeof request);
    if (!is_valid(agent, &request, mailbox->taken + 1)) {
        refuse(agent, box, STAGE_REFUSED_RANGE);
        return false;
    }
    if (request.op.region != GPSH_HEAP && agent->ops != &gpsh_host_queue_ops)
        return by_processor(agent, box, &request, at + STAGE_HEADER);
    if (execute(agent, &request, at + STAGE_HEADER) < 0) {
        GPSH_LOG(ERROR, "verbs", "a staged operation of PE %d failed: %s",
                 (int)(box / (uint32_t)agent->verbs->env.channels), gpsh_last_error());
        refuse(agent, box, STAGE_REFUSED_QUEUE);
        return false;
    }
    agent->tasks[agent->begun % TASKS] =
        (struct task){.box = box,
                      .payload = at + STAGE_HEADER,
                      .fetch = request.op.kind == GPSH_OP_AMO && request.op.fetch};
    agent->begun++;
    mailbox->taken++;
    return true;
}

static void take_all(struct verbs_agent *agent)
{
    for (uint32_t box = 0; box < agent->n_boxes; box++) {
        struct mailbox *mailbox = &agent->boxes[box];
        // Pairs with the NIC's write of the word, which comes after those of header and payload.
        uint64_t arrived = __atomic_load_n(&agent->arrived[box], __ATOMIC_ACQUIRE);
        while (mailbox->taken < arrived && !mailbox->refused &&
               agent->begun - agent->finished < TASKS && take(agent, box))
            agent->took++;
    }
}

static void finish(struct verbs_agent *agent)
{
    // Acquire: results and fetched data are visible after it.
    uint64_t done = __atomic_load_n(agent->queue->done, __ATOMIC_ACQUIRE);
    for (; agent->finished < done; agent->finished++) {
        unsigned index = (unsigned)(agent->finished % TASKS);
        const struct task *task = &agent->tasks[index];
        if (task->fetch)
            memcpy(task->payload, &agent->queue->results[index],
                   sizeof agent->queue->results[index]);
        agent->boxes[task->box].done++;
        if (!agent->boxes[task->box].refused)
            answer(agent, task->box);
    }
}

// A GPU that failed reaches no mark any more.
static void check_queue(struct verbs_agent *agent)
{
    if (agent->ops->check(agent->queue) >= 0)
        return;
    GPSH_LOG(ERROR, "verbs", "the staged heap is lost: %s", gpsh_last_error());
    for (uint32_t box = 0; box < agent->n_boxes; box++)
        refuse(agent, box, STAGE_REFUSED_QUEUE);
    agent->finished = agent->begun;
}

// True if it found something to do, or the queue at work.
static bool pass(struct verbs_agent *agent)
{
    uint64_t before = agent->took + agent->finished;
    take_all(agent);
    if (agent->begun != agent->marked) {
        if (agent->ops->mark(agent->queue, agent->begun) < 0)
            check_queue(agent);
        agent->marked = agent->begun;
    }
    finish(agent);
    bool busy = agent->begun != agent->finished, moved = agent->took + agent->finished != before;
    agent->vain = busy && !moved ? agent->vain + 1 : 0;
    if (agent->vain % CHECK_EVERY == CHECK_EVERY - 1)
        check_queue(agent);
    return busy || moved;
}

bool gpsh_verbs_agent_help(struct gpsh_verbs *verbs)
{
    struct verbs_agent *agent = verbs->stage.agent;
    if (!agent || pthread_mutex_trylock(&agent->lock))
        return false;
    bool found = pass(agent);
    pthread_mutex_unlock(&agent->lock);
    atomic_fetch_add_explicit(&agent->helped, 1, memory_order_relaxed);
    return found;
}

static void nap(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static void rest(struct verbs_agent *agent, uint32_t idle)
{
    static _Thread_local uint32_t seen;
    uint32_t helped = atomic_load_explicit(&agent->helped, memory_order_relaxed);
    if (helped != seen)
        nap(HELPED_NAP_NS);
    else if (idle > YIELDS)
        nap(NAP_NS);
    else if (idle > SPINS)
        sched_yield();
    seen = helped;
}

static void *run(void *arg)
{
    struct verbs_agent *agent = arg;
    uint32_t idle = 0;
    while (!atomic_load_explicit(&agent->stop, memory_order_relaxed)) {
        pthread_mutex_lock(&agent->lock);
        bool found = pass(agent);
        pthread_mutex_unlock(&agent->lock);
        idle = found ? 0 : idle + (idle <= YIELDS);
        if (idle)
            rest(agent, idle);
    }
    return NULL;
}

int gpsh_verbs_agent_start(struct gpsh_verbs *verbs)
{
    const struct gpsh_region *area = &verbs->stage.area;
    int status = gpsh_verbs_area_create(verbs);
    if (status)
        return status;
    struct verbs_agent *agent = calloc(1, sizeof *agent);
    if (!agent)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the agent of the mailboxes");
    pthread_mutex_init(&agent->lock, NULL);
    verbs->stage.agent = agent;
    agent->verbs = verbs;
    agent->ops = verbs->stage.queues;
    agent->heap_bytes = verbs->env.regions[GPSH_HEAP].bytes;
    agent->n_boxes = (uint32_t)(verbs->env.n_pes * verbs->env.channels);
    agent->n_slots = verbs->stage.slots;
    agent->slot_bytes = verbs->stage.slot_bytes;
    struct gpsh_verbs_stage_layout at =
        gpsh_verbs_stage_layout(agent->n_boxes, agent->n_slots, agent->slot_bytes);
    agent->arrived = (uint64_t *)(void *)(area->base + at.arrived);
    agent->answered = (uint64_t *)(void *)(area->base + at.answered);
    agent->slots = area->base + at.slots;
    agent->boxes = calloc(agent->n_boxes, sizeof *agent->boxes);
    if (!agent->boxes)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %u mailboxes", agent->n_boxes);
    status = agent->ops->open(TASKS, &agent->queue);
    return status ? status : gpsh_thread_start(&agent->thread, "gpushmem-stage", run, agent);
}

int gpsh_verbs_serve_atomics(struct gpsh_transport *self)
{
    struct gpsh_verbs *verbs = (struct gpsh_verbs *)self;
    int status = verbs->stage.agent ? 0 : gpsh_verbs_agent_start(verbs);
    verbs->stage.atomics = self->agents = !status;
    return status;
}

void gpsh_verbs_agent_heap(struct gpsh_verbs *verbs, uint64_t bytes)
{
    if (verbs->stage.agent)
        __atomic_store_n(&verbs->stage.agent->heap_bytes, bytes, __ATOMIC_RELAXED);
}

void gpsh_verbs_agent_stop(struct gpsh_verbs *verbs)
{
    struct verbs_agent *agent = verbs->stage.agent;
    if (!agent)
        return;
    atomic_store(&agent->stop, true);
    gpsh_thread_join(&agent->thread);
    if (agent->queue)
        agent->ops->close(agent->queue);
    pthread_mutex_destroy(&agent->lock);
    free(agent->boxes);
    free(agent);
    verbs->stage.agent = NULL;
}
