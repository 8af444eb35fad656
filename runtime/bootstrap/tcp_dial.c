// SPDX-License-Identifier: BSD-3-Clause
#define _POSIX_C_SOURCE 200809L // nanosleep
#include "bootstrap/tcp_dial.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "core/clock.h"
#include "core/error.h"

enum {
    GREETING_MS = 10000,
    TRIES = 3, // where somebody hung up
    PAUSE_MS = 100,
};

struct call {
    const struct gpsh_tcp_dial *dial;
    int prepared; // what `prepare` returned
};

static int call_greeted(struct gpsh_tcp_link *link)
{
    struct call *call = link->owner;
    const struct gpsh_tcp_dial *dial = call->dial;
    call->prepared = dial->prepare ? dial->prepare(link->watch.fd, &link->hello, dial->arg) : 0;
    return call->prepared;
}

static void nothing(struct gpsh_tcp_link *link)
{
    (void)link;
}

static const struct gpsh_tcp_link_ops call_ops = {
    .greeted = call_greeted, .open = nothing, .ended = nothing};

static int fail_full(const struct gpsh_tcp_dial *dial, const char *where, int error)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (!gpsh_tcp_is_full(error))
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP, "%s at %s cannot be called: %s", dial->whom, where,
                         strerror(error));
    return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                     "this process has no descriptor to call %s at %s with (%s): it may have %llu "
                     "files open; raise that (ulimit -n), or look for files that are left open",
                     dial->whom, where, strerror(error), (unsigned long long)limit.rlim_cur);
}

static int fail_stranger(const struct gpsh_tcp_dial *dial, const struct gpsh_tcp_link *link,
                         const char *where)
{
    if (link->ending == GPSH_TCP_STRANGER && link->greeted == GPSH_GREETED_OK)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "the process that listens at %s does not know the secret of the unique "
                         "id: it is not %s",
                         where, dial->whom);
    if (link->greeted == GPSH_GREETED_VERSION)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "%s at %s speaks version %u of the protocol, this process version %d: use "
                         "the same release of gpushmem in all processes",
                         dial->whom, where, link->greeting.version, GPSH_ID_VERSION);
    return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                     link->greeted == GPSH_GREETED_JOB
                         ? "at %s, where %s should be, another job listens: a unique id is good "
                           "for one job; was this one used before?"
                         : "at %s, where %s should be, something listens that is no gpushmem job",
                     where, dial->whom);
}

// What has become of a call that is not open, as a sentence and a code.
static int fail_call(const struct gpsh_tcp_dial *dial, const struct gpsh_tcp_link *link)
{
    char where[GPSH_TCP_TEXT_BYTES];
    gpsh_tcp_address_text(&link->address, where);
    switch (link->ending) {
    case GPSH_TCP_REFUSED:
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "nobody listens at %s, where %s should be: the process there has ended, "
                         "or the unique id was used before (each is good for one start)",
                         where, dial->whom);
    case GPSH_TCP_FULL: return fail_full(dial, where, link->error);
    case GPSH_TCP_UNREACHED:
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "%s at %s cannot be reached: %s; a firewall, or the wrong network? "
                         "GPUSHMEM_BOOTSTRAP_INTERFACE names the interface to use",
                         dial->whom, where, strerror(link->error));
    case GPSH_TCP_SILENT:
        return gpsh_fail(GPUSHMEM_ERR_TIMEOUT,
                         "at %s, where %s should be, somebody listens and does not answer: is that "
                         "process stopped (SIGSTOP, a debugger)?",
                         where, dial->whom);
    case GPSH_TCP_REJECTED:
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "%s at %s did not accept this process (%s): is the unique id the one of "
                         "this job, unchanged?",
                         dial->whom, where, strerror(link->error ? link->error : ECONNRESET));
    default: return fail_stranger(dial, link, where);
    }
}

static int ms_until(uint64_t deadline_ns)
{
    int ms = gpsh_clock_left_ms(deadline_ns);
    return ms < GREETING_MS ? ms : GREETING_MS;
}

// Whether the same call may go well later. `tries`: how often somebody has answered and hung up.
static bool is_worth_it(const struct gpsh_tcp_link *link, int *tries)
{
    bool known = link->ending == GPSH_TCP_STRANGER &&
                 (link->greeted == GPSH_GREETED_OK || link->greeted == GPSH_GREETED_VERSION);
    if (link->ending == GPSH_TCP_UNREACHED)
        return true;
    return !known && link->ending >= GPSH_TCP_SILENT && link->ending <= GPSH_TCP_REJECTED &&
           ++*tries < TRIES;
}

// As the link would end by itself.
static void give_up(struct gpsh_tcp_link *link)
{
    link->ending = link->state == GPSH_TCP_CONNECTING ? GPSH_TCP_UNREACHED : GPSH_TCP_SILENT;
    link->error = ETIMEDOUT;
}

// An open link, or NULL: *code says why, and *again whether another try may help.
static struct gpsh_tcp_link *call_one(struct gpsh_tcp_loop *loop, const struct gpsh_tcp_dial *dial,
                                      const struct gpsh_tcp_address *address, int *tries, int *code,
                                      bool *again)
{
    struct call call = {.dial = dial};
    struct gpsh_tcp_link *link =
        gpsh_tcp_link_call(loop, dial->id, address, &dial->hello, GREETING_MS, &call_ops, &call);
    if (!link) {
        *code = gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a connection");
        return NULL;
    }
    while (link->state < GPSH_TCP_OPEN && gpsh_clock_ns() < dial->deadline_ns)
        gpsh_tcp_loop_turn(loop, ms_until(dial->deadline_ns), NULL);
    if (link->state == GPSH_TCP_OPEN)
        return link;
    if (link->state < GPSH_TCP_OPEN)
        give_up(link);
    *code = call.prepared ? call.prepared : fail_call(dial, link);
    *again |= is_worth_it(link, tries);
    gpsh_tcp_link_destroy(link);
    return NULL;
}

struct gpsh_tcp_link *gpsh_tcp_dial(struct gpsh_tcp_loop *loop, const struct gpsh_tcp_dial *dial)
{
    char sentence[GPSH_SENTENCE_BYTES] = "";
    int code = 0, first = 0, tries = 0;
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < dial->n; i++) {
            struct gpsh_tcp_link *link =
                call_one(loop, dial, &dial->addresses[i], &tries, &code, &again);
            if (link)
                return link;
            if (i == 0) { // the best address: what is said about the others explains less
                first = code;
                snprintf(sentence, sizeof sentence, "%.*s", (int)sizeof sentence - 1,
                         gpsh_last_error());
            }
        }
        if (again && gpsh_clock_ns() >= dial->deadline_ns) {
            first = GPUSHMEM_ERR_TIMEOUT;
            again = false;
        }
        if (again)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    }
    gpsh_fail(first, "%s", sentence);
    return NULL;
}
