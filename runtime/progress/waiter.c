// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // sched_getaffinity, CPU_COUNT
#include "progress/waiter.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/hooks.h"
#include "observe/question.h"

// Patience is in units of 64 spins (a few microseconds).
enum {
    // with a core for every PE: some 20 us until the first yield, since threads may outnumber cores
    // too
    PATIENCE_ALONE = 8,
    // with fewer cores: yields until sleeping, so that idle waiters do not starve the threads that
    // work
    PATIENCE_SLEEP = 512,
    DOZE_AFTER_NS = 4000000,
    DOZE_PART = 64, // of the time a wait has lasted
    DOZE_LIMIT_NS = 200000,
};

static bool cores_are_shared;

static struct gpsh_hooks hooks;

void gpsh_waiter_drive(gpsh_waiter_hook *drive)
{
    gpsh_hooks_add(&hooks, (gpsh_hook *)drive);
}

static bool run_hooks(void)
{
    bool pending = false;
    for (int i = 0; i < GPSH_HOOKS && hooks.list[i]; i++)
        pending |= ((gpsh_waiter_hook *)hooks.list[i])();
    return pending;
}

void gpsh_waiter_init(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t allowed;
    // A PE bound to one core says nothing about the others' cores; a larger set is what the node's
    // PEs have together.
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 1)
        cores = CPU_COUNT(&allowed);
    cores_are_shared = gpsh.boot.node_n_pes > cores;
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

// `pending`: operations of this PE need to be driven, so that sleeping would hold up others.
static void give_way(struct gpsh_waiter *waiter, bool pending)
{
    unsigned rounds = waiter->spins / 64;
    if (cores_are_shared && rounds >= PATIENCE_SLEEP)
        nap(20000);
    else if (cores_are_shared || rounds > PATIENCE_ALONE)
        sched_yield();
    if (!cores_are_shared && !pending && rounds > PATIENCE_ALONE && rounds % 16 == 0)
        doze(waiter);
}

void gpsh_waiter_miss(void)
{
    static _Thread_local unsigned misses;
    if (++misses % (cores_are_shared ? 64 : 64 * PATIENCE_ALONE) == 0)
        sched_yield();
}

enum { ABOUT_BYTES = 160 };

static const char *about(const struct gpsh_waiter *waiter, char *text)
{
    text[0] = '\0';
    if (waiter->about)
        waiter->about(waiter->subject, text, ABOUT_BYTES);
    return text;
}

static void answer_questions(struct gpsh_waiter *waiter)
{
    unsigned now = gpsh_questions() + 1;
    if (GPSH_UNLIKELY(now != waiter->asked && waiter->asked)) {
        char text[ABOUT_BYTES];
        GPSH_LOG(WARN, "wait", "SIGUSR1: in %s, waiting%s", waiter->what, about(waiter, text));
    }
    waiter->asked = now;
}

static int check_deadline(struct gpsh_waiter *waiter)
{
    int64_t limit_ms = gpsh.settings.wait_timeout_ms;
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

// A failure ends one wait of each thread, since that may have been for the failed PE. Waits that
// begin later are the decision of a program that knows (GPUSHMEM_ON_PE_FAILURE=notify: the rest
// goes on).
static bool is_news(unsigned failures)
{
    static _Thread_local unsigned told, told_in_generation;
    if (told_in_generation != (unsigned)gpsh.generation) {
        told_in_generation = (unsigned)gpsh.generation;
        told = 0;
    }
    bool news = failures > told;
    told = failures;
    return news;
}

int gpsh_waiter_slow(struct gpsh_waiter *waiter)
{
    bool pending = run_hooks() || waiter->flows_tell;
    unsigned failures = atomic_load_explicit(&gpsh.failures, memory_order_acquire);
    bool concerned = GPSH_UNLIKELY(failures != 0) && !waiter->flows_tell && !waiter->looks;
    bool news = concerned && is_news(failures);
    if (news || (concerned && waiter->for_all)) {
        char text[ABOUT_BYTES];
        int failed = atomic_load(&gpsh.failed_pe);
        return gpsh_fail(GPUSHMEM_ERR_PE_FAILED, "%s: PE %d failed while this PE waited%s: %s",
                         waiter->what, failed, about(waiter, text), gpsh.peers[failed].reason);
    }
    answer_questions(waiter);
    give_way(waiter, pending);
    return check_deadline(waiter);
}
