// SPDX-License-Identifier: BSD-3-Clause
// The engine: takes work requests from the send queues in order, has them executed, and completes
// them in order. One pass is made by the device's thread, or by whoever polls an empty CQ.
#define _GNU_SOURCE // futex
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "softhca.h"

enum {
    BURST = 32,
    SPIN_NS = 20000,
    GPU_SPIN_NS = 200000,
    MAIL_LOOK_NS = 50000,
    LATE_WINDOW = 4,
    PATIENCE = 16,
    VAIN_POLLS = 16
};

static long futex(_Atomic uint32_t *word, int operation, uint32_t value,
                  const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

void shca_engine_wake(struct shca_segment *segment, int proc)
{
    struct shca_proc *target = &segment->procs[proc];
    atomic_fetch_add(&target->doorbell, 1);
    if (atomic_load(&target->asleep))
        futex(&target->doorbell, FUTEX_WAKE, INT_MAX, NULL);
}

void shca_engine_submit(struct shca_qp *qp)
{
    struct shca_device *device = qp->device;
    if (!atomic_exchange(&qp->queued, true)) {
        pthread_mutex_lock(&device->ready_lock);
        qp->next_ready = device->ready;
        device->ready = qp;
        pthread_mutex_unlock(&device->ready_lock);
    }
    shca_engine_wake(device->segment, device->proc);
}

static void activate(struct shca_device *device, struct shca_qp *qp)
{
    if (device->n_active == device->active_room) {
        uint32_t room = device->active_room ? 2 * device->active_room : 64;
        struct shca_qp **list = realloc(device->active, room * sizeof *list);
        if (!list)
            return;
        device->active = list;
        device->active_room = room;
    }
    qp->active = true;
    device->active[device->n_active++] = qp;
}

static void collect(struct shca_device *device)
{
    pthread_mutex_lock(&device->ready_lock);
    struct shca_qp *qp = device->ready;
    device->ready = NULL;
    pthread_mutex_unlock(&device->ready_lock);
    for (; qp; qp = qp->next_ready)
        if (!qp->active)
            activate(device, qp);
}

// The flag goes down before the queue is looked at again; a poster fills the queue before it looks
// at the flag.
static bool deactivate(struct shca_device *device, uint32_t at)
{
    struct shca_qp *qp = device->active[at];
    atomic_store(&qp->queued, false);
    if (atomic_load(&qp->head) != qp->exec && !atomic_exchange(&qp->queued, true))
        return false;
    qp->active = false;
    device->active[at] = device->active[--device->n_active];
    return true;
}

// Work requests completed by this process, for the settings that count them.
static atomic_long completed;

static void raise_event(struct shca_qp *qp)
{
    struct ibv_async_event event = {.event_type = (enum ibv_event_type)shca_settings.event};
    if (event.event_type == IBV_EVENT_QP_FATAL) {
        event.element.qp = &qp->ibv;
        if (!qp->by_devx)
            shca_context_event(qp->ibv.context, &event);
        atomic_store(&qp->entry->state, IBV_QPS_ERR);
        return;
    }
    event.element.port_num = 1;
    shca_device_event(qp->device, &event);
}

// sq_sig_all is what a provider's ibv_post_send makes of its WQEs.
static bool is_signalled(const struct shca_qp *qp, const struct shca_wqe *wqe)
{
    return (wqe->flags & IBV_SEND_SIGNALED) || (qp->init.sq_sig_all && !qp->mlx5);
}

static void complete(struct shca_qp *qp, const struct shca_wqe *wqe, int status)
{
    long number = shca_is_datagrams(qp) ? -2 : atomic_fetch_add(&completed, 1);
    qp->exec++;
    qp->moved = 0;
    qp->retrying = qp->imm_turn = false;
    qp->rnr_left = qp->attr.rnr_retry;
    qp->gap |= status != IBV_WC_SUCCESS && !wqe->counted;
    if (qp->mlx5)
        shca_mlx5_completed(qp, wqe, status, number == shca_settings.fail_after);
    if (status != IBV_WC_SUCCESS)
        atomic_store(&qp->entry->state, IBV_QPS_ERR);
    if (status != IBV_WC_SUCCESS || is_signalled(qp, wqe)) {
        struct shca_cqe cqe = {.qp = qp, .send = true, .retires = qp->exec};
        cqe.wc.wr_id = wqe->wr_id;
        cqe.wc.status = (enum ibv_wc_status)status;
        cqe.wc.opcode = shca_wc_opcode(wqe->opcode);
        cqe.wc.byte_len = (uint32_t)wqe->bytes;
        cqe.wc.qp_num = qp->ibv.qp_num;
        cqe.index = wqe->index;
        cqe.hw_opcode = wqe->hw_opcode;
        shca_cq_push(qp->ibv.send_cq, &cqe);
    }
    if (number == shca_settings.event_after)
        raise_event(qp);
}

static void flush_receives(struct shca_qp *qp)
{
    pthread_mutex_lock(&qp->lock);
    for (; qp->rq_tail != qp->rq_head; qp->rq_tail++) {
        struct shca_cqe cqe = {.qp = qp};
        cqe.wc.wr_id = qp->rq[qp->rq_tail % qp->init.cap.max_recv_wr].wr_id;
        cqe.wc.status = IBV_WC_WR_FLUSH_ERR;
        cqe.wc.opcode = IBV_WC_RECV;
        cqe.wc.qp_num = qp->ibv.qp_num;
        shca_cq_push(qp->ibv.recv_cq, &cqe);
    }
    pthread_mutex_unlock(&qp->lock);
}

// A NIC may be in the middle of requests when their queue pair fails: it writes what a read
// fetches, or reads what a write sends, until their flushed completions (FLUSH_US). The other end
// takes them in their order, and none behind one that it has not got.
static bool lingers(struct shca_qp *qp, uint64_t *wake_ns)
{
    uint64_t now = shca_now_ns(), head = atomic_load(&qp->head);
    if (!shca_settings.flush_us || qp->exec == head)
        return false;
    if (!qp->flush_ns)
        qp->flush_ns = now + (uint64_t)shca_settings.flush_us * 1000;
    if (now < qp->flush_ns) {
        *wake_ns = qp->flush_ns < *wake_ns ? qp->flush_ns : *wake_ns;
        return true;
    }
    qp->overtaking = true;
    for (uint64_t at = qp->exec; at != head && !qp->gap; at++) {
        struct shca_wqe *wqe = &qp->sq[at % qp->sq_depth];
        qp->gap = !wqe->early && shca_execute(qp, wqe) != IBV_WC_SUCCESS;
        if (!qp->gap)
            shca_packets_taken(qp, wqe);
    }
    qp->overtaking = false;
    return false;
}

// A queue pair in error completes everything at once. Returns false if a request is still in the
// hands of a peer.
static bool flush(struct shca_qp *qp)
{
    shca_mail_drop(qp);
    if (qp->mail >= 0)
        return false;
    for (uint64_t head = atomic_load(&qp->head); qp->exec != head;)
        complete(qp, &qp->sq[qp->exec % qp->sq_depth], IBV_WC_WR_FLUSH_ERR);
    flush_receives(qp);
    return true;
}

static int again_at(struct shca_qp *qp, uint64_t when)
{
    qp->retry_at = when;
    return SHCA_AGAIN;
}

// A NIC repeats what is not acknowledged (retry_cnt + 1) times, 4.096 us * 2^timeout apart.
static int no_answer(struct shca_qp *qp)
{
    uint64_t now = shca_now_ns(),
             budget = (qp->attr.retry_cnt + 1u) * (4096ull << qp->attr.timeout);
    if (!qp->retrying) {
        qp->retrying = true;
        qp->retry_until = qp->attr.timeout ? now + budget : UINT64_MAX;
    }
    if (now >= qp->retry_until)
        return IBV_WC_RETRY_EXC_ERR;
    uint64_t next = now + 200000;
    return again_at(qp, next < qp->retry_until ? next : qp->retry_until);
}

// The codes of the receiver-not-ready timer are 10 us * 2^(n/2), odd ones half a step up; 0 is the
// longest.
static uint64_t rnr_timer_ns(uint32_t code)
{
    if (code < 2)
        return code ? 10000 : 655360000;
    return (code % 2 ? 15000ull : 10000ull) << (code / 2);
}

static int not_ready(struct shca_qp *qp)
{
    if (!qp->rnr_left)
        return IBV_WC_RNR_RETRY_EXC_ERR;
    if (qp->attr.rnr_retry != 7)
        qp->rnr_left--;
    const struct shca_qp_entry *dest =
        &qp->peer->segment->qps[qp->attr.dest_qp_num & (SHCA_QPS - 1)];
    return again_at(qp, shca_now_ns() + rnr_timer_ns(dest->rnr_timer));
}

static bool fails_now(void)
{
    return shca_settings.fail_after >= 0 && atomic_load(&completed) == shca_settings.fail_after;
}

// The next requests are executed, and their answers lost: when they are repeated, the other end
// knows them already.
static void lose_answers(struct shca_qp *qp, uint64_t n)
{
    for (uint64_t at = qp->exec; at < qp->exec + n && at != atomic_load(&qp->head); at++) {
        struct shca_wqe *wqe = &qp->sq[at % qp->sq_depth];
        if (wqe->early || shca_execute(qp, wqe) != IBV_WC_SUCCESS)
            return;
        shca_packets_taken(qp, wqe);
        wqe->early = true;
        wqe->early_status = IBV_WC_SUCCESS;
    }
}

static int execute(struct shca_qp *qp, struct shca_wqe *wqe)
{
    if (shca_is_datagrams(qp))
        return shca_datagram_send(qp, wqe);
    if (wqe->opcode == SHCA_WR_NOP)
        return wqe->early_status;
    if (!qp->retrying && shca_link_goes_down(qp))
        lose_answers(qp, (uint64_t)shca_settings.down_lost);
    if (!shca_link_is_up(qp))
        return no_answer(qp);
    if (wqe->early)
        return wqe->early_status;
    if (fails_now())
        return (int)shca_settings.fail_status;
    int status = shca_late_take(qp, wqe) ? IBV_WC_SUCCESS : shca_execute(qp, wqe);
    if (status == SHCA_NO_ANSWER)
        return no_answer(qp);
    return status == SHCA_NOT_READY ? not_ready(qp) : status;
}

static bool fetches(const struct shca_wqe *wqe)
{
    return wqe->opcode == IBV_WR_RDMA_READ || wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
           wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

// Without a fence, writes may overtake the reads and atomics before them (InfiniBand specification,
// volume 1, section 10.8.3.3). Executes some of them now; they complete in their turn. Returns
// whether it executed any.
static bool overtake(struct shca_qp *qp)
{
    uint64_t head = atomic_load(&qp->head);
    bool any = false;
    for (uint64_t at = qp->exec + 1; at < head && at <= qp->exec + LATE_WINDOW; at++) {
        struct shca_wqe *wqe = &qp->sq[at % qp->sq_depth];
        if (wqe->opcode != IBV_WR_RDMA_WRITE || (wqe->flags & IBV_SEND_FENCE))
            return any;
        qp->overtaking = true;
        bool done = wqe->early || shca_late_take(qp, wqe) || // behind those that are late
                    shca_execute(qp, wqe) == IBV_WC_SUCCESS;
        qp->overtaking = false;
        if (!done)
            return any; // it will fail again, or go better, in its turn
        any |= !wqe->early;
        wqe->early = true;
    }
    return any;
}

// With DELAY_US what was overtaken stays behind for so long that others can act on the writes.
static bool is_overtaken(struct shca_qp *qp, const struct shca_wqe *wqe, uint64_t *wake_ns)
{
    if (!shca_settings.reorder || !fetches(wqe) || qp->mail >= 0 ||
        shca_random(qp->exec, 1) % 2 == 0)
        return false;
    if (!overtake(qp) || !shca_settings.delay_us)
        return false;
    qp->retry_at = shca_now_ns() + (uint64_t)shca_settings.delay_us * 1000;
    *wake_ns = qp->retry_at < *wake_ns ? qp->retry_at : *wake_ns;
    return true;
}

// A program may look this variable up and set it: its requests of at least so many bytes are then
// executed when it is 0 again, and those after them in their queue pairs.
__attribute__((visibility("default"))) _Atomic uint64_t gpushmem_softhca_hold_bytes;
enum { HOLD_LOOK_NS = 1000000 };

static bool is_held(const struct shca_wqe *wqe, uint64_t *wake_ns)
{
    uint64_t held = atomic_load_explicit(&gpushmem_softhca_hold_bytes, memory_order_relaxed);
    if (!held || wqe->bytes < held || wqe->opcode == IBV_WR_SEND)
        return false;
    uint64_t look = shca_now_ns() + HOLD_LOOK_NS;
    *wake_ns = look < *wake_ns ? look : *wake_ns;
    return true;
}

// As a fabric with adaptive routing does it: while the oldest write is on its way, every later one
// is placed at once. A fence makes a request, and those after it, wait for earlier reads and
// atomics, not for writes; reads and atomics themselves wait for everything before them.
static void misplace(struct shca_qp *qp)
{
    uint64_t head = atomic_load(&qp->head);
    bool fetching = false;
    for (uint64_t at = qp->exec + 1; at < head; at++) {
        struct shca_wqe *wqe = &qp->sq[at % qp->sq_depth];
        if (fetching && (wqe->flags & IBV_SEND_FENCE))
            return;
        fetching |= fetches(wqe);
        if (wqe->opcode != IBV_WR_RDMA_WRITE || wqe->early || !shca_write_passes(qp, wqe))
            continue; // one that fails does so in its turn
        qp->overtaking = true;
        wqe->early = shca_execute(qp, wqe) == IBV_WC_SUCCESS;
        qp->overtaking = false;
    }
}

static atomic_long fences;

// What Soft-RoCE's requester may do: it stops at a request with a fence, and nothing but the next
// post to the queue pair has it look again.
static bool stalls(struct shca_qp *qp, const struct shca_wqe *wqe)
{
    if (shca_settings.fence_stall < 0 || !(wqe->flags & IBV_SEND_FENCE))
        return false;
    uint64_t head = atomic_load(&qp->head);
    if (qp->fence_seen != qp->exec + 1) {
        qp->fence_seen = qp->exec + 1;
        qp->stalled_at = atomic_fetch_add(&fences, 1) == shca_settings.fence_stall ? head : 0;
    }
    return qp->stalled_at == head;
}

static bool waits(struct shca_qp *qp, const struct shca_wqe *wqe, uint64_t *wake_ns)
{
    if (stalls(qp, wqe))
        return true;
    if (is_held(wqe, wake_ns))
        return true;
    uint64_t until = wqe->ready_ns > qp->retry_at ? wqe->ready_ns : qp->retry_at;
    if (!until || shca_now_ns() >= until)
        return false;
    if (until < *wake_ns)
        *wake_ns = until;
    return true;
}

enum step { STEP_IDLE, STEP_WAITS, STEP_DONE };

static enum step step(struct shca_qp *qp, uint64_t *wake_ns)
{
    uint32_t state = atomic_load(&qp->entry->state);
    bool placed = shca_late_place(qp, state == IBV_QPS_ERR, wake_ns);
    if (state == IBV_QPS_ERR)
        return lingers(qp, wake_ns) || !flush(qp) ? STEP_WAITS : STEP_IDLE;
    if (state != IBV_QPS_RTS || qp->exec == atomic_load_explicit(&qp->head, memory_order_acquire))
        return placed ? STEP_IDLE : STEP_WAITS;
    struct shca_wqe *wqe = &qp->sq[qp->exec % qp->sq_depth];
    bool misplaced = wqe->early && shca_settings.misorder_us;
    if (!misplaced && waits(qp, wqe, wake_ns)) {
        if (shca_settings.misorder_us && qp->mail < 0 && wqe->opcode == IBV_WR_RDMA_WRITE)
            misplace(qp);
        return STEP_WAITS;
    }
    qp->retry_at = 0;
    if (is_overtaken(qp, wqe, wake_ns))
        return STEP_WAITS;
    if (fetches(wqe))
        shca_late_place(qp, true, wake_ns); // a read pushes the writes before it
    int status = execute(qp, wqe);
    if (status == IBV_WC_SUCCESS)
        shca_packets_taken(qp, wqe);
    if (status == SHCA_AGAIN) {
        uint64_t wake = qp->retry_at ? qp->retry_at : shca_now_ns() + MAIL_LOOK_NS;
        *wake_ns = wake < *wake_ns ? wake : *wake_ns;
        return STEP_WAITS;
    }
    complete(qp, wqe, status);
    return STEP_DONE;
}

// One turn of the queue pair at that place of the active list; returns how many requests it
// completed.
static uint32_t turn(struct shca_device *device, uint32_t at, uint32_t burst, uint64_t *wake_ns)
{
    struct shca_qp *qp = device->active[at];
    uint32_t done = 0;
    enum step last = STEP_DONE;
    if (!device->use_gpu && shca_mlx5_is_far(qp))
        return 0; // its completions are for the engine's thread to write
    qp->peer_seen = false;
    while (done < burst && last == STEP_DONE) {
        last = step(qp, wake_ns);
        done += last == STEP_DONE;
    }
    if (last == STEP_IDLE && !deactivate(device, at))
        done++;
    return done;
}

static uint32_t turns(struct shca_device *device, uint64_t *wake_ns)
{
    uint32_t done = 0;
    if (shca_settings.reorder) {
        for (uint32_t n = device->n_active; n && device->n_active; n--) {
            uint64_t dice = shca_random(device->turn++, 2);
            done += turn(device, (uint32_t)(dice % device->n_active), 1 + (uint32_t)(dice >> 60),
                         wake_ns);
        }
        return done;
    }
    for (uint32_t at = device->n_active; at-- > 0;)
        done += turn(device, at, BURST, wake_ns);
    return done;
}

// Peers made accesses that had to be refused: those queue pairs are in error now, and their owner
// is told.
static void look_at_insults(struct shca_device *device)
{
    if (!atomic_exchange(&device->segment->procs[device->proc].insulted, 0))
        return;
    for (uint32_t i = 1; i < device->segment->qp_top; i++) {
        struct shca_qp *qp = device->qps[i];
        if (!qp || !atomic_exchange(&qp->entry->insulted, 0))
            continue;
        struct ibv_async_event event = {.event_type = IBV_EVENT_QP_ACCESS_ERR,
                                        .element.qp = &qp->ibv};
        if (!qp->by_devx)
            shca_context_event(qp->ibv.context, &event);
        shca_engine_submit(qp);
    }
}

static uint32_t pass(struct shca_device *device, bool thread, uint64_t *wake_ns)
{
    if (atomic_load(&device->abandoned))
        return 0;
    device->use_gpu = thread;
    shca_mail_serve(device);
    look_at_insults(device);
    shca_mlx5_look(device);
    collect(device);
    uint32_t done = turns(device, wake_ns);
    if (thread)
        shca_gpu_finish(device); // completions are on their way; whoever comes next finds nothing
    return done;
}

// On a machine with fewer processors than polling threads, a thread whose poll finds nothing lets
// the others run.
void shca_engine_help(struct shca_device *device)
{
    static _Thread_local uint32_t in_vain;
    uint64_t wake_ns = UINT64_MAX;
    uint32_t done = 0;
    if (!atomic_load(&device->thread_waits) && !pthread_mutex_trylock(&device->engine_lock)) {
        done = pass(device, false, &wake_ns);
        pthread_mutex_unlock(&device->engine_lock);
    }
    in_vain = done ? 0 : in_vain + 1;
    if (in_vain % VAIN_POLLS == VAIN_POLLS - 1)
        sched_yield();
}

static bool has_news(struct shca_device *device)
{
    pthread_mutex_lock(&device->ready_lock);
    bool ready = device->ready;
    pthread_mutex_unlock(&device->ready_lock);
    return ready || shca_mail_waiting(device) ||
           atomic_load(&device->segment->procs[device->proc].insulted) ||
           atomic_load(&device->stop);
}

static void sleep_until(struct shca_device *device, uint64_t wake_ns)
{
    struct shca_proc *proc = &device->segment->procs[device->proc];
    uint32_t seen = atomic_load(&proc->doorbell);
    atomic_store(&proc->asleep, 1);
    uint64_t now = shca_now_ns();
    uint64_t span = wake_ns > now ? wake_ns - now : 0;
    if (span > 1000000000u)
        span = 1000000000u;
    struct timespec timeout = {(time_t)(span / 1000000000u), (long)(span % 1000000000u)};
    if (span && !has_news(device))
        futex(&proc->doorbell, FUTEX_WAIT, seen, &timeout);
    atomic_store(&proc->asleep, 0);
}

// Helpers that poll in a loop take the lock again and again, and a mutex is not fair. A thread that
// finds it taken lets them work, since that is its work too, but not for ever.
static void lock_for_thread(struct shca_device *device)
{
    for (int i = 0; i < PATIENCE; i++) {
        if (!pthread_mutex_trylock(&device->engine_lock))
            return;
        sched_yield();
    }
    atomic_store(&device->thread_waits, true);
    pthread_mutex_lock(&device->engine_lock);
    atomic_store(&device->thread_waits, false);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void *engine(void *arg)
{
    struct shca_device *device = arg;
    uint64_t idle_since = 0;
    if (shca_settings.mlx5)
        prctl(PR_SET_TIMERSLACK, 1000); // of this thread
    while (!atomic_load(&device->stop)) {
        uint64_t wake_ns = UINT64_MAX;
        lock_for_thread(device);
        uint32_t done = pass(device, true, &wake_ns);
        bool looks = device->queues;
        pthread_mutex_unlock(&device->engine_lock);
        uint64_t now = shca_now_ns();
        if (done || !idle_since)
            idle_since = now;
        // a GPU's host has cores enough
        if (now - idle_since < (device->gpu ? GPU_SPIN_NS : SPIN_NS)) {
            sched_yield();
            continue;
        }
        if (!looks) {
            sleep_until(device, wake_ns);
            idle_since = 0;
        } else { // whoever writes to a doorbell register wakes nobody
            sleep_until(device, earlier(wake_ns, now + (uint64_t)shca_settings.look_us * 1000));
        }
    }
    return NULL;
}

int shca_engine_start(struct shca_device *device)
{
    sigset_t all, before;
    device->block = malloc(sizeof *device->block);
    if (!device->block)
        return -1;
    atomic_store(&device->stop, false);
    sigfillset(&all); // the program's signals are not for this thread
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&device->thread, NULL, engine, device);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        free(device->block);
    return error ? -1 : 0;
}

void shca_engine_stop(struct shca_device *device)
{
    atomic_store(&device->stop, true);
    shca_engine_wake(device->segment, device->proc);
    pthread_join(device->thread, NULL);
    free(device->active);
    free(device->block);
    device->active = NULL;
    device->n_active = device->active_room = 0;
    device->block = NULL;
}

static void take_off(struct shca_device *device, struct shca_qp *qp)
{
    collect(device);
    for (uint32_t i = 0; i < device->n_active; i++)
        if (device->active[i] == qp)
            device->active[i--] = device->active[--device->n_active];
    qp->active = false;
    atomic_store(&qp->queued, false);
}

// Drops what is queued: the queue pair is reset or destroyed.
void shca_engine_forget(struct shca_qp *qp)
{
    struct shca_device *device = qp->device;
    for (bool busy = true; busy;) {
        pthread_mutex_lock(&device->engine_lock);
        uint64_t wake_ns = UINT64_MAX;
        take_off(device, qp);
        shca_late_place(qp, true, &wake_ns);
        shca_mail_drop(qp);
        busy = qp->mail >= 0;
        if (!busy) {
            qp->exec = qp->due = qp->moved = qp->retry_at = qp->flush_ns = 0;
            qp->retrying = qp->imm_turn = qp->gap = false;
            qp->peer = NULL;
            if (qp->mlx5)
                shca_mlx5_queue_reset(qp->mlx5);
            qp->rq_head = qp->rq_tail = 0;
            atomic_store(&qp->head, 0);
            atomic_store(&qp->tail, 0);
        }
        pthread_mutex_unlock(&device->engine_lock);
        if (busy)
            sched_yield();
    }
}
