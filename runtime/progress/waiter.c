// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // sched_yield
#include "progress/waiter.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "core/call_names.h"
#include "core/clock.h"
#include "core/config.h"
#include "core/cpu.h"
#include "core/hooks.h"
#include "core/launcher.h"
#include "job/job.h"
#include "observe/hang_report.h"
#include "observe/status_request.h"
#include "progress/cores.h"

enum {
    // with a core for every PE: looks at the condition until the hooks are run, a few microseconds
    SPINS = 64,
    // the same where the hooks carry out what peers ask for, so that each look between two runs is
    // time that a peer waits
    SPINS_SERVING = 8,
    // and times the hooks are run, some 20 us, until the first yield, since threads may outnumber
    // cores too
    PATIENCE_ALONE = 8,
    // with fewer cores: yields until sleeping. Where a bell wakes the sleeper, so many as let each
    // PE of a node have its turn; where none does, until idle waiters would starve the threads that
    // work
    PATIENCE_BELL = 32,
    PATIENCE_NAP = 512,
    // PEs of a node which all find within 50 ms what no bell tells of. They take 5 % of a processor
    // for that, as 400 do that look every 160 ms; every 20 ms these would take 28 %.
    FEW_PES = 64,
    DOZE_AFTER_NS = 4000000,
    DOZE_PART = 64, // of the time a wait has lasted
    DOZE_LIMIT_NS = 200000,
    ASK_NS = 50000000,
    // steps before the first look at the clock for the report of hangs
    STEPS_UNTIMED = 1024,
    STEPS_UNTIMED_SHARED = 32,
    SHOW_NS = 1000000000, // a wait that lasts is shown to other processes, anew each time
};

unsigned gpsh_waiter_mask = SPINS - 1;
static unsigned own_core_mask = SPINS - 1;

static struct gpsh_hooks hooks;

void gpsh_waiter_drive(gpsh_waiter_hook *drive)
{
    gpsh_hooks_add(&hooks, (gpsh_hook *)drive);
}

// The program's own hook. It is stored after its argument, so a thread that sees it sees that, too.
static int (*_Atomic program)(void *);
static void *_Atomic program_argument;

void gpsh_waiter_ask(int (*hook)(void *argument), void *argument)
{
    atomic_store(&program_argument, argument);
    atomic_store(&program, hook);
}

static bool run_hooks(void)
{
    bool pending = false;
    for (int i = 0; i < GPSH_HOOKS && hooks.list[i]; i++)
        pending |= ((gpsh_waiter_hook *)hooks.list[i])();
    return pending;
}

void gpsh_waiter_share(bool cores_are_shared)
{
    gpsh_waiter_mask = cores_are_shared ? 0 : own_core_mask;
}

void gpsh_waiter_serve(bool serves_peers)
{
    own_core_mask = serves_peers ? SPINS_SERVING - 1 : SPINS - 1;
}

bool gpsh_waiter_shares(void)
{
    return gpsh_waiter_mask == 0;
}

static void nap(uint64_t ns)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

// A wait that has lasted milliseconds leaves the core to others (the NIC's software among them) for
// a small part of the time it has lasted: it ends at most that part later.
static void doze(struct gpsh_waiter *waiter)
{
    uint64_t now = gpsh_clock_ns();
    if (waiter->began_ns == 0)
        waiter->began_ns = now;
    uint64_t lasted = now - waiter->began_ns;
    if (lasted > DOZE_AFTER_NS)
        nap(lasted / DOZE_PART < DOZE_LIMIT_NS ? lasted / DOZE_PART : DOZE_LIMIT_NS);
}

// The sleep comes a step after the bell has begun to count this PE, since the caller has to look at
// its condition in between.
static void sleep_by_bell(struct gpsh_waiter *waiter)
{
    unsigned sleeps = (waiter->spins - PATIENCE_BELL) / 2;
    bool soon = gpsh_job()->boot->node_n_pes <= FEW_PES || gpsh_settings()->wait_timeout_ms > 0 ||
                atomic_load_explicit(&program, memory_order_relaxed);
    if (waiter->listens)
        gpsh_bell_sleep(waiter->bell, waiter->heard, gpsh_bell_sleep_ms(sleeps, soon));
    else
        waiter->heard = gpsh_bell_listen(waiter->bell);
    if (waiter->listens)
        gpsh_bell_leave(waiter->bell);
    waiter->listens = !waiter->listens;
}

void gpsh_waiter_leave(struct gpsh_waiter *waiter)
{
    if (waiter->listens)
        gpsh_bell_leave(waiter->bell);
    gpsh_board_end_wait(waiter->slot);
    waiter->listens = false;
    waiter->slot = 0;
}

// `pending`: operations of this PE need to be driven, so that sleeping would hold up others.
static void give_way(struct gpsh_waiter *waiter, bool pending)
{
    unsigned rounds = waiter->spins / SPINS;
    if (gpsh_waiter_shares()) {
        if (waiter->bell && !pending && waiter->spins >= PATIENCE_BELL)
            sleep_by_bell(waiter);
        else if (waiter->spins >= PATIENCE_NAP)
            nap(20000);
        else
            sched_yield();
        return;
    }
    if (waiter->spins == PATIENCE_ALONE * SPINS)
        gpsh_cores_part();
    if (rounds > PATIENCE_ALONE)
        sched_yield();
    if (!pending && rounds > PATIENCE_ALONE && waiter->spins % (16 * SPINS) == 0)
        doze(waiter);
}

void gpsh_waiter_miss(void)
{
    static _Thread_local unsigned misses;
    if (++misses % (gpsh_waiter_shares() ? SPINS : SPINS * PATIENCE_ALONE) == 0)
        sched_yield();
}

enum { ABOUT_BYTES = 160, NAME_BYTES = 68 };

static const char *about(const struct gpsh_waiter *waiter, char *text)
{
    text[0] = '\0';
    if (waiter->about)
        waiter->about(waiter->subject, text, ABOUT_BYTES);
    return text;
}

static void show_others(struct gpsh_waiter *waiter, uint64_t now_ns)
{
    struct gpsh_wait_record record = {.since_ns = waiter->began_ns ? waiter->began_ns : now_ns,
                                      .awaited = (int)waiter->awaited,
                                      .number = waiter->number,
                                      .team = waiter->team,
                                      .pe = waiter->awaited_pe};
    waiter->began_ns = record.since_ns;
    char name[sizeof record.what];
    snprintf(record.what, sizeof record.what, "%s",
             gpsh_call_name(waiter->what, name, sizeof name));
    about(waiter, record.text);
    gpsh_board_show_wait(&waiter->slot, &record);
}

static void answer_status_requests(struct gpsh_waiter *waiter)
{
    unsigned now = gpsh_status_requests() + 1;
    if (GPSH_UNLIKELY(now != waiter->asked && waiter->asked)) {
        char text[ABOUT_BYTES], name[NAME_BYTES];
        show_others(waiter, gpsh_clock_ns());
        GPSH_LOG(WARN, "wait", "SIGUSR1: in %s, waiting%s",
                 gpsh_call_name(waiter->what, name, sizeof name), about(waiter, text));
    }
    waiter->asked = now;
}

// The launcher makes one sentence of what all PEs wait for. Without one that listens, a PE does, a
// moment later, so that the others have shown their waits.
static void report_hang(struct gpsh_waiter *waiter, uint64_t now_ns)
{
    char text[ABOUT_BYTES], name[NAME_BYTES];
    waiter->reported = true;
    GPSH_LOG(WARN, "wait", "in %s for %lld s (GPUSHMEM_HANG_REPORT), waiting%s",
             gpsh_call_name(waiter->what, name, sizeof name),
             (long long)gpsh_settings()->hang_report, about(waiter, text));
    if (!gpsh_launcher_call())
        waiter->report_ns = now_ns + 2 * SHOW_NS;
}

// Again when the wait has lasted twice as long: others may have come late.
static void say_hang_report(struct gpsh_waiter *waiter, uint64_t now_ns)
{
    waiter->report_ns = now_ns + (now_ns - waiter->began_ns);
    gpsh_hang_report_log(gpsh_job()->boot->job_id, gpsh_job()->my_pe, gpsh_job()->n_pes);
}

static void look_at_clock(struct gpsh_waiter *waiter)
{
    uint64_t now = gpsh_clock_ns();
    if (waiter->began_ns == 0)
        waiter->began_ns = now;
    if (waiter->look_ns == 0)
        waiter->look_ns = now + SHOW_NS;
    if (now < waiter->look_ns)
        return;
    waiter->look_ns = now + SHOW_NS;
    show_others(waiter, now);
    uint64_t limit_ns = (uint64_t)gpsh_settings()->hang_report * 1000000000;
    if (limit_ns && !waiter->reported && now - waiter->began_ns >= limit_ns)
        report_hang(waiter, now);
    if (waiter->report_ns && now >= waiter->report_ns)
        say_hang_report(waiter, now);
}

// Short waits do not come here, or return at once.
static void mind_length(struct gpsh_waiter *waiter)
{
    if (waiter->spins >= (gpsh_waiter_shares() ? STEPS_UNTIMED_SHARED : STEPS_UNTIMED))
        look_at_clock(waiter);
}

void gpsh_waiter_tell(struct gpsh_waiter *waiter)
{
    answer_status_requests(waiter);
    look_at_clock(waiter);
}

static int check_deadline(struct gpsh_waiter *waiter)
{
    int64_t limit_ms = gpsh_settings()->wait_timeout_ms;
    if (limit_ms <= 0)
        return 0;
    uint64_t now = gpsh_clock_ns();
    if (waiter->deadline_ns == 0)
        waiter->deadline_ns = now + (uint64_t)limit_ms * 1000000;
    if (now < waiter->deadline_ns)
        return 0;
    char text[ABOUT_BYTES];
    return gpsh_fail(GPUSHMEM_ERR_TIMEOUT,
                     "%s: timed out after %lld ms (GPUSHMEM_WAIT_TIMEOUT_MS)%s", waiter->what,
                     (long long)limit_ms, about(waiter, text));
}

// Fails if the program wants the wait to end.
static int ask_program(struct gpsh_waiter *waiter)
{
    int (*hook)(void *) = atomic_load_explicit(&program, memory_order_acquire);
    if (GPSH_LIKELY(hook == NULL))
        return 0;
    uint64_t now = gpsh_clock_ns();
    if (waiter->ask_ns == 0)
        waiter->ask_ns = now + ASK_NS;
    if (now < waiter->ask_ns)
        return 0;
    waiter->ask_ns = now + ASK_NS;
    if (hook(atomic_load(&program_argument)) == 0)
        return 0;
    char text[ABOUT_BYTES];
    return gpsh_fail(GPUSHMEM_ERR_TIMEOUT, "%s: ended by the program's wait hook%s", waiter->what,
                     about(waiter, text));
}

// A failure ends one wait of each thread, since that may have been for the failed PE. Waits that
// begin later are the decision of a program that knows (GPUSHMEM_ON_PE_FAILURE=notify: the rest
// goes on).
static bool is_news(unsigned failures)
{
    static _Thread_local unsigned told, told_in_generation;
    if (told_in_generation != (unsigned)gpsh_job()->generation) {
        told_in_generation = (unsigned)gpsh_job()->generation;
        told = 0;
    }
    bool news = failures > told;
    told = failures;
    return news;
}

static int fail_for_loss(const struct gpsh_waiter *waiter)
{
    char text[ABOUT_BYTES];
    int failed = atomic_load(&gpsh_job()->failed_pe);
    const struct gpsh_peer *peer = &gpsh_job()->peers[failed];
    int code = atomic_load(&peer->error);
    return gpsh_fail(code, "%s: PE %d %s while this PE waited%s: %s", waiter->what, failed,
                     code == GPUSHMEM_ERR_PE_FAILED ? "failed" : "was cut off", about(waiter, text),
                     peer->reason);
}

int gpsh_waiter_slow(struct gpsh_waiter *waiter)
{
    // Who waits for a flow drives it itself at each step: the hooks would be in its way.
    if (waiter->flows_tell && !gpsh_waiter_shares() && waiter->spins % SPINS)
        return 0;
    bool pending = run_hooks() || waiter->flows_tell;
    unsigned failures = atomic_load_explicit(&gpsh_job()->failures, memory_order_acquire);
    bool concerned = GPSH_UNLIKELY(failures != 0) && !waiter->flows_tell && !waiter->looks;
    bool news = concerned && is_news(failures);
    if (news || (concerned && waiter->for_all))
        return fail_for_loss(waiter);
    answer_status_requests(waiter);
    give_way(waiter, pending);
    mind_length(waiter);
    int status = check_deadline(waiter);
    return status < 0 ? status : ask_program(waiter);
}
