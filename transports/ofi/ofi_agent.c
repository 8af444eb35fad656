// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "transports/ofi/ofi_agent.h"

#include <stdlib.h>

#include "transport/direct.h"
#include "transports/ofi/ofi_memory.h"
#include "transports/ofi/ofi_wire.h"

enum {
    // As many as all messages that are received at once may hold.
    TASKS = (OFI_RECEIVES + 1) * (OFI_PARCEL_BYTES / (int)sizeof(struct ofi_record)),
    CHECK_EVERY = 1 << 12,
};

// A record in the GPU's queue, or behind some that are.
struct task {
    struct ofi_message *message;
    const struct ofi_record *record;
    struct ofi_inbox *inbox;
    struct ofi_message *reply; // into which a get goes
    bool processor;
};

struct ofi_agent {
    const struct gpsh_queue_ops *ops; // NULL: the heap is the host's
    struct gpsh_queue *queue;
    struct ofi_inbox **due; // [n_due] that are to be replied to
    size_t n_due, due_room;
    struct task *tasks; // [TASKS]
    uint64_t begun, marked, finished;
    uint32_t vain;
};

int gpsh_ofi_agent_open(struct gpsh_ofi *ofi)
{
    struct ofi_agent *agent = calloc(1, sizeof *agent);
    ofi->agent = agent;
    if (agent)
        agent->ops = ofi->env.queues;
    if (agent && agent->ops)
        agent->tasks = calloc(TASKS, sizeof *agent->tasks);
    if (!agent || (agent->ops && !agent->tasks))
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the agent of %d PEs",
                         ofi->env.n_pes);
    return agent->ops ? agent->ops->open(TASKS, &agent->queue) : 0;
}

void gpsh_ofi_agent_close(struct gpsh_ofi *ofi)
{
    struct ofi_agent *agent = ofi->agent;
    if (!agent)
        return;
    if (agent->queue)
        agent->ops->close(agent->queue);
    free(agent->due);
    free(agent->tasks);
    free(agent);
    ofi->agent = NULL;
}

static void note_due(struct gpsh_ofi *ofi, struct ofi_inbox *inbox)
{
    struct ofi_agent *agent = ofi->agent;
    if (inbox->due)
        return;
    if (agent->n_due == agent->due_room) {
        size_t room = agent->due_room ? 2 * agent->due_room : 64;
        void *more = realloc(agent->due, room * sizeof *agent->due);
        if (!more)
            return; // a later record, or a ping, makes it due again
        agent->due = more;
        agent->due_room = room;
    }
    agent->due[agent->n_due++] = inbox;
    inbox->due = true;
}

// One to be filled; NULL without memory.
static struct ofi_message *reply_new(struct gpsh_ofi *ofi, const struct ofi_inbox *inbox)
{
    return gpsh_ofi_message(ofi, inbox->pe, OFI_REPLY, inbox->channel);
}

static void reply_send(struct gpsh_ofi *ofi, struct ofi_inbox *inbox, struct ofi_message *reply)
{
    reply->parcel->number = inbox->seen;
    reply->parcel->done = inbox->done;
    reply->parcel->refused = inbox->refused;
    reply->parcel->pinged = inbox->pinged;
    inbox->pinged = 0;
    gpsh_ofi_send(ofi, reply);
}

// Where `bytes` for a slot are to be written in the inbox's reply; NULL without memory.
static char *add_item(struct gpsh_ofi *ofi, struct ofi_inbox *inbox,
                      const struct ofi_record *record, uint32_t bytes)
{
    uint32_t more = (uint32_t)sizeof(struct ofi_item) + ofi_padded(bytes);
    if (inbox->reply &&
        sizeof(struct ofi_parcel) + inbox->reply->parcel->bytes + more > OFI_PARCEL_BYTES) {
        reply_send(ofi, inbox, inbox->reply);
        inbox->reply = NULL;
    }
    if (!inbox->reply)
        inbox->reply = reply_new(ofi, inbox);
    if (!inbox->reply)
        return NULL;
    struct ofi_parcel *parcel = inbox->reply->parcel;
    struct ofi_item *item = (struct ofi_item *)(void *)((char *)(parcel + 1) + parcel->bytes);
    *item = (struct ofi_item){record->op.slot, bytes, record->at};
    parcel->bytes += more;
    return (char *)(item + 1);
}

static void refuse(struct gpsh_ofi *ofi, struct ofi_inbox *inbox, enum ofi_refusal why)
{
    inbox->refused = (uint8_t)why;
    note_due(ofi, inbox);
}

// ------------------------------------------------------------------------------------------
// operations

static bool fetches(const struct ofi_record *record)
{
    return record->op.kind == GPSH_OP_AMO && record->op.fetch;
}

// By the processor. False without memory for the answer.
static bool do_now(struct gpsh_ofi *ofi, struct ofi_inbox *inbox, const struct ofi_record *record)
{
    uint64_t old = 0;
    void *local = (void *)(uintptr_t)(record + 1);
    if (record->op.kind == GPSH_OP_GET)
        local = add_item(ofi, inbox, record, record->op.bytes);
    if (!local)
        return false;
    const struct gpsh_op op = gpsh_request_op(&record->op, local, &old);
    gpsh_direct_do(&op, ofi->env.regions[record->op.region].base);
    if (!fetches(record))
        return true;
    char *to = add_item(ofi, inbox, record, sizeof old);
    if (to)
        memcpy(to, &old, sizeof old);
    return to;
}

// By the GPU's queue, unless it is on memory of the host: that comes after what is in the queue.
static int begin(struct gpsh_ofi *ofi, struct task *task)
{
    struct ofi_agent *agent = ofi->agent;
    const struct ofi_record *record = task->record;
    unsigned result = (unsigned)(agent->begun % TASKS);
    void *local = (void *)(uintptr_t)(record + 1);
    task->processor = record->op.region != GPSH_HEAP;
    if (task->processor)
        return 0;
    if (record->op.kind == GPSH_OP_GET) {
        task->reply = reply_new(ofi, task->inbox);
        if (!task->reply)
            return gpsh_last_error_code();
        struct ofi_item *item = (struct ofi_item *)(void *)(task->reply->parcel + 1);
        *item = (struct ofi_item){record->op.slot, record->op.bytes, record->at};
        task->reply->parcel->bytes = (uint32_t)sizeof *item + ofi_padded(record->op.bytes);
        local = item + 1;
    }
    const struct gpsh_op op = gpsh_request_op(&record->op, local, &agent->queue->results[result]);
    return gpsh_queue_do(agent->ops, agent->queue, &op, ofi->env.regions[GPSH_HEAP].base, result);
}

static enum ofi_refusal enqueue(struct gpsh_ofi *ofi, struct ofi_message *message,
                                struct ofi_inbox *inbox, const struct ofi_record *record)
{
    struct ofi_agent *agent = ofi->agent;
    struct task *task = &agent->tasks[agent->begun % TASKS];
    *task = (struct task){.message = message, .record = record, .inbox = inbox};
    int status = begin(ofi, task);
    if (status < 0) {
        GPSH_LOG(ERROR, "ofi", "an operation of PE %d on the heap failed: %s", inbox->pe,
                 gpsh_last_error());
        if (task->reply)
            gpsh_ofi_message_drop(ofi, task->reply);
        return status == GPUSHMEM_ERR_NO_MEMORY ? OFI_REFUSED_MEMORY : OFI_REFUSED_QUEUE;
    }
    message->held++;
    agent->begun++;
    return OFI_REFUSED_NOT;
}

static void finish(struct gpsh_ofi *ofi, struct task *task, uint64_t number)
{
    struct ofi_inbox *inbox = task->inbox;
    if (task->processor && !do_now(ofi, inbox, task->record))
        refuse(ofi, inbox, OFI_REFUSED_MEMORY);
    inbox->done++;
    if (task->reply) {
        reply_send(ofi, inbox, task->reply);
    } else if (!task->processor && fetches(task->record)) {
        char *to = add_item(ofi, inbox, task->record, 8);
        if (to)
            memcpy(to, &ofi->agent->queue->results[number % TASKS], 8);
        else
            refuse(ofi, inbox, OFI_REFUSED_MEMORY);
    }
    note_due(ofi, inbox);
    if (!--task->message->held)
        gpsh_ofi_received(ofi, task->message);
}

static void check_queue(struct gpsh_ofi *ofi)
{
    struct ofi_agent *agent = ofi->agent;
    if (agent->ops->check(agent->queue) >= 0)
        return;
    GPSH_LOG(ERROR, "ofi", "the heap is lost: %s", gpsh_last_error());
    for (; agent->finished < agent->begun; agent->finished++) {
        struct task *task = &agent->tasks[agent->finished % TASKS];
        refuse(ofi, task->inbox, OFI_REFUSED_QUEUE);
        if (task->reply)
            gpsh_ofi_message_drop(ofi, task->reply);
        if (!--task->message->held)
            gpsh_ofi_received(ofi, task->message);
    }
}

static void drive_queue(struct gpsh_ofi *ofi)
{
    struct ofi_agent *agent = ofi->agent;
    if (agent->begun != agent->marked) {
        if (agent->ops->mark(agent->queue, agent->begun) < 0)
            check_queue(ofi);
        agent->marked = agent->begun;
    }
    uint64_t before = agent->finished;
    // Acquire: results and fetched bytes are visible after it.
    uint64_t done = __atomic_load_n(agent->queue->done, __ATOMIC_ACQUIRE);
    for (; agent->finished < done; agent->finished++)
        finish(ofi, &agent->tasks[agent->finished % TASKS], agent->finished);
    agent->vain = agent->finished == before && agent->begun != before ? agent->vain + 1 : 0;
    if (agent->vain % CHECK_EVERY == CHECK_EVERY - 1)
        check_queue(ofi);
}

// ------------------------------------------------------------------------------------------
// requests

// Everything in a record comes from another process.
static bool is_valid(const struct gpsh_ofi *ofi, const struct gpsh_request *op)
{
    return op->region < GPSH_REGIONS && (op->kind != GPSH_OP_GET || op->bytes <= OFI_ANSWER) &&
           gpsh_request_is_valid(op, gpsh_ofi_region_bytes(ofi, op->region));
}

static uint32_t payload_of(const struct ofi_record *record)
{
    bool put = record->op.kind == GPSH_OP_PUT || record->op.kind == GPSH_OP_PUT_SIGNAL;
    return put ? record->op.bytes : 0;
}

// The next record, or NULL at the end, or where the parcel ends too early.
static const struct ofi_record *next_record(const char **at, const char *end)
{
    const struct ofi_record *record = (const struct ofi_record *)(const void *)*at;
    if ((size_t)(end - *at) < sizeof *record)
        return NULL;
    uint64_t bytes = sizeof *record + ofi_padded(payload_of(record));
    if (bytes > (size_t)(end - *at))
        return NULL;
    *at += bytes;
    return record;
}

static enum ofi_refusal carry_out(struct gpsh_ofi *ofi, struct ofi_message *message,
                                  struct ofi_inbox *inbox, const struct ofi_record *record)
{
    if (ofi->agent->ops)
        return enqueue(ofi, message, inbox, record);
    if (!do_now(ofi, inbox, record))
        return OFI_REFUSED_MEMORY;
    inbox->done++;
    return OFI_REFUSED_NOT;
}

static void take_request(struct gpsh_ofi *ofi, struct ofi_message *message, struct ofi_inbox *inbox)
{
    const struct ofi_parcel *parcel = message->parcel;
    const char *at = (const char *)(parcel + 1), *end = at + parcel->bytes;
    if (parcel->number != inbox->seen + 1 && !inbox->refused)
        refuse(ofi, inbox, OFI_REFUSED_GAP);
    inbox->seen = parcel->number;
    while (at < end && !inbox->refused) {
        const struct ofi_record *record = next_record(&at, end);
        enum ofi_refusal why = record && is_valid(ofi, &record->op)
                                   ? carry_out(ofi, message, inbox, record)
                                   : OFI_REFUSED_RANGE;
        if (why)
            refuse(ofi, inbox, why);
    }
    if (!ofi->agent->ops)
        note_due(ofi, inbox);
}

static struct ofi_inbox *inbox_of(struct gpsh_ofi *ofi, const struct ofi_parcel *parcel)
{
    struct ofi_inbox **inboxes = &ofi_peer_of(ofi, (int)parcel->pe)->inboxes;
    if (!*inboxes)
        *inboxes = calloc((size_t)ofi->env.channels, sizeof **inboxes);
    if (!*inboxes)
        return NULL;
    struct ofi_inbox *inbox = &(*inboxes)[parcel->channel];
    inbox->pe = (int)parcel->pe;
    inbox->channel = parcel->channel;
    return inbox;
}

void gpsh_ofi_agent_take(struct gpsh_ofi *ofi, struct ofi_message *message)
{
    const struct ofi_parcel *parcel = message->parcel;
    struct ofi_inbox *inbox = inbox_of(ofi, parcel);
    if (inbox && parcel->kind == OFI_PING) {
        inbox->pinged = parcel->number + 1;
        note_due(ofi, inbox);
    } else if (inbox) {
        message->held = 1;
        take_request(ofi, message, inbox);
        message->held--;
    }
    if (!message->held)
        gpsh_ofi_received(ofi, message);
}

bool gpsh_ofi_agent_reply(struct gpsh_ofi *ofi)
{
    struct ofi_agent *agent = ofi->agent;
    if (agent->ops)
        drive_queue(ofi);
    for (size_t i = 0; i < agent->n_due; i++) {
        struct ofi_inbox *inbox = agent->due[i];
        struct ofi_message *reply = inbox->reply ? inbox->reply : reply_new(ofi, inbox);
        inbox->due = false;
        inbox->reply = NULL;
        if (reply)
            reply_send(ofi, inbox, reply);
    }
    agent->n_due = 0;
    return agent->ops && agent->begun != agent->finished;
}
