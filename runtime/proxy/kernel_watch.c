// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // nanosleep
#include "proxy/kernel_watch.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "core/config.h"
#include "core/error.h"
#include "core/launcher.h"
#include "core/log.h"
#include "core/thread.h"
#include "gpu/gpu_call.h"
#include "gpushmem/device_host.h"
#include "job/job.h"
#include "memory/heap.h"
#include "observe/board.h"
#include "observe/hang_report.h"
#include "observe/status_request.h"
#include "proxy/kernel_report.h"

// A waiting thread of a GPU looks at the host's words every few milliseconds. One of the emulation
// takes 64 turns for that, which may be long ones where many share a core: only who has not
// answered for a while does not wait.
enum { ANSWER_STEPS = 100, ANSWER_STEP_NS = 1000000, LOOK_S = 1, REST_S = 10 };
static const uint64_t look_ns = (uint64_t)LOOK_S * 1000000000, silence_ns = 3000000000;

// The commands of a ring that are under way.
struct stall {
    uint64_t completed, posts; // when last one of the two changed
    uint64_t since_ns;
    bool idle; // none was under way at the last look
};

static struct {
    struct gpsh_handle_host *host;
    struct stall *stalls; // [n_rings]
    int n_rings;
    struct gpsh_thread thread;
    _Atomic bool stop;
    _Atomic bool rests;   // it sleeps until somebody wakes it
    int32_t question;     // the last one that was asked
    uint64_t patience_ns; // of that
    uint64_t asked_ns;
} watch;

static void (*before_wait)(void);                // NULL: nobody has joined a job yet
static atomic_int in_launch_wait;                // threads of the program
static _Atomic uint64_t begun[GPSH_BOARD_WAITS]; // when, by their slots on the board; 0: none

void gpsh_kernel_watch_before_wait(void (*send_off)(void))
{
    before_wait = send_off;
}

// The thread of the library rests while there are no launch waits, and is woken at most once a
// second: a launch wait costs no system call, and a PE without any no wake-ups, or a few for its
// GPU (rest_s).
void gpushmem_launch_waiting(int change)
{
    static _Thread_local int slot;
    if (change > 0 && before_wait)
        before_wait();
    if (change > 0) {
        struct gpsh_wait_record record = {.since_ns = gpsh_clock_ns(),
                                          .awaited = GPSH_AWAITED_KERNEL,
                                          .pe = -1,
                                          .what = "gpushmem_launch_wait",
                                          .text = " for a kernel"};
        gpsh_board_show_wait(&slot, &record);
        if (slot)
            atomic_store_explicit(&begun[slot - 1], record.since_ns, memory_order_relaxed);
        atomic_fetch_add(&in_launch_wait, 1);
        if (atomic_load(&watch.rests) && atomic_exchange(&watch.rests, false))
            gpsh_status_requests_wake();
    } else {
        atomic_fetch_sub(&in_launch_wait, 1);
        if (slot)
            atomic_store_explicit(&begun[slot - 1], 0, memory_order_relaxed);
        gpsh_board_end_wait(slot);
        slot = 0;
    }
}

// ---- Questions ----

// Asks for waits that have lasted so long.
static void ask(uint64_t patience_ns)
{
    static uint32_t asked;
    const uint64_t unit = UINT64_C(1) << GPUSHMEM_QUESTION_UNIT_SHIFT;
    uint32_t number = 1 + asked++ % (GPUSHMEM_QUESTION_NUMBERS - 1);
    watch.question = (int32_t)(number << GPUSHMEM_QUESTION_NUMBER_SHIFT |
                               (uint32_t)((patience_ns + unit - 1) / unit));
    watch.patience_ns = patience_ns;
    watch.asked_ns = gpsh_clock_ns();
    __atomic_store_n(&watch.host->control.question, watch.question, __ATOMIC_RELEASE);
}

static void ask_nothing(void)
{
    watch.question = 0;
    __atomic_store_n(&watch.host->control.question, 0, __ATOMIC_RELEASE);
}

// What the first thread said that has waited for so long; false: none has answered yet.
static bool take_answer(char *text, size_t bytes)
{
    const struct gpushmem_device_fault *answer = &watch.host->faults[GPUSHMEM_FAULT_WAITING];
    if (!watch.question || __atomic_load_n(&answer->status, __ATOMIC_ACQUIRE) != watch.question)
        return false;
    gpsh_kernel_describe(answer, text, bytes);
    return true;
}

static void tell_of_call(const char *why)
{
    char text[GPSH_GPU_CALL_TEXT];
    struct gpsh_gpu_call call;
    if (!gpsh_gpu_long_call(look_ns, 0, &call))
        return;
    gpsh_gpu_call_describe(&call, text, sizeof text);
    GPSH_LOG(WARN, "gpu", "%s%s", why, text);
}

static void answer_question(void)
{
    char text[GPSH_KERNEL_TEXT];
    bool answered = false;
    int waiting = atomic_load_explicit(&in_launch_wait, memory_order_relaxed);
    if (waiting)
        GPSH_LOG(WARN, "kernel", "SIGUSR1: %d thread%s of the program in gpushmem_launch_wait",
                 waiting, waiting == 1 ? "" : "s");
    ask(0);
    for (int i = 0; i < ANSWER_STEPS && !answered && !atomic_load(&watch.stop); i++) {
        nanosleep(&(struct timespec){.tv_nsec = ANSWER_STEP_NS}, NULL);
        answered = take_answer(text, sizeof text);
    }
    ask_nothing();
    tell_of_call("SIGUSR1: ");
    if (answered)
        GPSH_LOG(WARN, "kernel", "SIGUSR1: a kernel waits: %s", text);
    else if (waiting)
        GPSH_LOG(WARN, "kernel", "SIGUSR1: no thread of a kernel waits for a word or a barrier");
}

// ---- Rings ----

// Threads of kernels that wait for a command do not answer. The ring whose commands under way have
// not got on for longest; -1: they all have, within `patience_ns`.
static int stalled_ring(uint64_t now_ns, uint64_t patience_ns, uint64_t *lasted_ns)
{
    const struct gpsh_ring_counters *rings = gpsh_board_rings();
    int found = -1;
    *lasted_ns = patience_ns;
    for (int i = 0; rings && i < watch.n_rings; i++) {
        struct stall *stall = &watch.stalls[i];
        uint64_t completed = __atomic_load_n(&rings[i].completed, __ATOMIC_RELAXED);
        uint64_t posts = __atomic_load_n(&rings[i].posts, __ATOMIC_RELAXED);
        bool idle = __atomic_load_n(&rings[i].commands, __ATOMIC_RELAXED) <= completed;
        if (idle || stall->idle || completed != stall->completed || posts != stall->posts)
            *stall = (struct stall){completed, posts, now_ns, idle};
        if (now_ns - stall->since_ns >= *lasted_ns) {
            *lasted_ns = now_ns - stall->since_ns;
            found = i;
        }
    }
    return found;
}

static void describe_ring(int number, char *text, size_t bytes)
{
    const struct gpsh_ring_counters *ring = gpsh_board_rings() + number;
    snprintf(text, bytes,
             "command ring %d does not get on: commands read: %" PRIu64 ", complete: %" PRIu64,
             number, __atomic_load_n(&ring->commands, __ATOMIC_RELAXED),
             __atomic_load_n(&ring->completed, __ATOMIC_RELAXED));
}

// ---- Waits that do not end ----

// What is known of the launch waits that are under way, or of a call that the driver keeps.
struct launch_wait {
    int slot;      // on the board, of what a kernel waits for; 0: of none
    bool reported; // that
    bool of_call;  // it is a thread of the library that waits, for the driver
};

// When the oldest one of them began, 0: there is none that is shown.
static uint64_t oldest_launch_wait(void)
{
    uint64_t oldest = 0;
    for (int i = 0; i < GPSH_BOARD_WAITS; i++) {
        uint64_t since_ns = atomic_load_explicit(&begun[i], memory_order_relaxed);
        oldest = since_ns && (!oldest || since_ns < oldest) ? since_ns : oldest;
    }
    return oldest;
}

static void show(struct launch_wait *wait, uint64_t since_ns, const char *text)
{
    struct gpsh_wait_record record = {
        .since_ns = since_ns, .pe = -1, .what = "gpushmem_launch_wait"};
    snprintf(record.text, sizeof record.text, " for a kernel: %.140s", text);
    gpsh_board_show_wait(&wait->slot, &record);
}

static void show_none(struct launch_wait *wait)
{
    gpsh_board_end_wait(wait->slot);
    *wait = (struct launch_wait){0};
}

static void call_for_all(struct launch_wait *wait)
{
    wait->reported = true;
    if (!gpsh_launcher_call())
        gpsh_hang_report_log(gpsh_job()->boot->job_id, gpsh_job()->my_pe, gpsh_job()->n_pes);
}

static void report(struct launch_wait *wait, const char *text)
{
    GPSH_LOG(WARN, "kernel",
             "in gpushmem_launch_wait for more than %lld s (GPUSHMEM_HANG_REPORT), waiting for a "
             "kernel: %s",
             (long long)gpsh_settings()->hang_report, text);
    call_for_all(wait);
}

static uint64_t report_ns(void)
{
    return (uint64_t)gpsh_settings()->hang_report * 1000000000;
}

// A wait that is shown and has not been reported is asked for as the limit has it, in turn with any
// that lasts: kernels may make many waits, of which each ends.
static void look(struct launch_wait *wait, uint64_t since_ns)
{
    char text[GPSH_KERNEL_TEXT];
    uint64_t now_ns = gpsh_clock_ns(), stalled_ns;
    uint64_t limit_ns = report_ns();
    bool answered = take_answer(text, sizeof text), too_long = watch.patience_ns >= limit_ns;
    bool silent = !answered && watch.question && now_ns - watch.asked_ns >= silence_ns;
    int ring = stalled_ring(now_ns, look_ns, &stalled_ns);
    if (!answered && ring >= 0) {
        describe_ring(ring, text, sizeof text);
        answered = true;
        too_long = stalled_ns >= limit_ns;
    }
    if (answered)
        show(wait, since_ns, text);
    else if (silent && watch.patience_ns == look_ns)
        show_none(wait);
    if (answered && limit_ns && too_long && now_ns - since_ns >= limit_ns && !wait->reported)
        report(wait, text);
    bool late =
        wait->slot && limit_ns && !wait->reported && now_ns - since_ns + look_ns >= limit_ns;
    if (answered || silent || !watch.question)
        ask(late && watch.patience_ns != limit_ns ? limit_ns : look_ns);
}

// The driver keeps a thread of the library: that is why a kernel waits, whatever it says.
static void look_at_call(struct launch_wait *wait, const struct gpsh_gpu_call *call)
{
    struct gpsh_wait_record record = {
        .since_ns = call->since_ns,
        .pe = -1,
        .text = " for the CUDA driver: is a thread of the program in a copy of pageable memory, "
                "or in cudaFree, in the default stream?"};
    snprintf(record.what, sizeof record.what, "%s", call->thread);
    if (!wait->of_call)
        show_none(wait);
    wait->of_call = true;
    gpsh_board_show_wait(&wait->slot, &record);
    if (!wait->reported && report_ns() && call->lasted_ns >= report_ns()) {
        tell_of_call("");
        call_for_all(wait);
    }
}

static void mind(struct launch_wait *wait)
{
    struct gpsh_gpu_call call;
    uint64_t since_ns = oldest_launch_wait();
    if (gpsh_gpu_long_call(look_ns, 0, &call)) {
        look_at_call(wait, &call);
        return;
    }
    if (wait->of_call || !since_ns)
        show_none(wait);
    if (since_ns)
        look(wait, since_ns);
    else
        ask_nothing();
}

// Nobody tells of a call that the driver keeps, so a PE that may make one is looked at now and
// then.
static int rest_s(void)
{
    int64_t limit_s = gpsh_settings()->hang_report;
    if (!gpsh_heap()->device)
        return 0;
    return limit_s && limit_s < REST_S ? (int)limit_s : REST_S;
}

// Either this thread sees the wait of another that begins just now, or that one wakes it.
static bool may_rest(void)
{
    atomic_store(&watch.rests, true);
    bool rests = atomic_load(&in_launch_wait) == 0;
    if (!rests)
        atomic_store(&watch.rests, false);
    return rests;
}

// One that was woken looks once more before it rests again: short launch waits in a loop would wake
// it each time.
static void *run(void *unused)
{
    unsigned seen = gpsh_status_requests();
    struct launch_wait wait = {0};
    for (bool rested = false; !atomic_load(&watch.stop);) {
        unsigned ticket = gpsh_status_requests_ticket(), now = gpsh_status_requests();
        if (now != seen)
            answer_question();
        seen = now;
        mind(&wait);
        rested = !rested && !wait.of_call && may_rest();
        gpsh_status_requests_await(ticket, rested ? rest_s() : LOOK_S);
    }
    show_none(&wait);
    return unused;
}

int gpsh_kernel_watch_start(struct gpsh_handle_host *host)
{
    const struct gpsh_board *board = gpsh_board_own();
    watch.host = host;
    watch.n_rings = board ? board->sheet.n_rings : 0;
    watch.stalls = calloc((size_t)watch.n_rings + 1, sizeof *watch.stalls);
    if (!watch.stalls)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory to watch %d rings", watch.n_rings);
    atomic_store(&watch.stop, false);
    return gpsh_thread_start(&watch.thread, "gpushmem-report", run, NULL);
}

void gpsh_kernel_watch_stop(void)
{
    atomic_store(&watch.stop, true);
    if (watch.thread.runs)
        gpsh_status_requests_wake();
    gpsh_thread_join(&watch.thread);
    free(watch.stalls);
    watch.stalls = NULL;
}
