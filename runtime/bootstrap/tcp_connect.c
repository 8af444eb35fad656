// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // SOCK_CLOEXEC
#include "bootstrap/tcp_connect.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/tcp_connection.h"
#include "core/clock.h"
#include "core/error.h"

enum {
    CONNECT_MS = 3000, // until the next address is tried
    GREETING_MS = 10000,
    TRIES = 3, // where somebody hung up
    PAUSE_MS = 100,
    PROOF_MS = 50,
};

struct call {
    const struct gpsh_uniqueid *id;
    struct gpsh_hello *hello;
    gpsh_tcp_prepare_fn *prepare;
    void *arg;
    const char *whom;
    uint64_t deadline_ns;
    int connected; // how often somebody answered at all
};

static uint64_t earlier(uint64_t deadline_ns, int ms)
{
    uint64_t then = gpsh_clock_ns() + (uint64_t)ms * 1000000;
    return then < deadline_ns ? then : deadline_ns;
}

// 0, ETIMEDOUT or another errno value.
static int await(int fd, short events, uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now = gpsh_clock_ns();
        if (now >= deadline_ns)
            return ETIMEDOUT;
        struct pollfd ready = {.fd = fd, .events = events};
        uint64_t ms = (deadline_ns - now) / 1000000 + 1;
        int n = poll(&ready, 1, ms < 60000 ? (int)ms : 60000);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return errno;
    }
}

int gpsh_tcp_receive(int fd, void *data, size_t bytes, uint64_t deadline_ns)
{
    uint8_t *to = data;
    while (bytes > 0) {
        int error = await(fd, POLLIN, deadline_ns);
        if (error)
            return error;
        ssize_t n = recv(fd, to, bytes, MSG_DONTWAIT);
        if (n == 0)
            return ECONNRESET;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return errno;
        to += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

// A connected socket, or -1 with *error.
static int connect_to(const struct gpsh_tcp_address *address, uint64_t deadline_ns, int *error)
{
    struct sockaddr_storage where;
    socklen_t bytes = gpsh_tcp_address_to(address, &where);
    int fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    if (fd < 0) {
        *error = errno;
        return -1;
    }
    *error = connect(fd, (struct sockaddr *)&where, bytes) ? errno : 0;
    if (*error == EINPROGRESS || *error == EINTR) {
        socklen_t size = sizeof *error;
        *error = await(fd, POLLOUT, earlier(deadline_ns, CONNECT_MS));
        if (!*error && getsockopt(fd, SOL_SOCKET, SO_ERROR, error, &size))
            *error = errno;
    }
    if (!*error) {
        gpsh_tcp_link_options(fd);
        return fd;
    }
    close(fd);
    return -1;
}

// Whether the process that answered is the one that was called. 0: yes, 1: try again, negative:
// never.
static int call_talk(struct call *c, int fd, const char *where)
{
    struct gpsh_greeting greeting;
    struct gpsh_confirmation answer;
    int error =
        gpsh_tcp_receive(fd, &greeting, sizeof greeting, earlier(c->deadline_ns, GREETING_MS));
    enum gpsh_greeted greeted =
        error ? GPSH_GREETED_STRANGE : gpsh_greeting_check(c->id, &greeting);
    if (greeted == GPSH_GREETED_VERSION)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "%s at %s speaks version %u of the protocol, this process version %d: use "
                         "the same release of gpushmem in all processes",
                         c->whom, where, greeting.version, GPSH_ID_VERSION);
    if (error == ETIMEDOUT) {
        gpsh_fail(
            GPUSHMEM_ERR_TIMEOUT,
            "at %s, where %s should be, somebody listens and does not answer: is that process "
            "stopped (SIGSTOP, a debugger)?",
            where, c->whom);
        return 1;
    }
    if (greeted != GPSH_GREETED_OK) {
        gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                  greeted == GPSH_GREETED_JOB
                      ? "at %s, where %s should be, another job listens: a unique id is good for "
                        "one job; was this one used before?"
                      : "at %s, where %s should be, something listens that is no gpushmem job",
                  where, c->whom);
        return 1;
    }
    int status = c->prepare ? c->prepare(fd, c->hello, c->arg) : 0;
    if (status)
        return status;
    error = gpsh_hello_make(c->id, &greeting, c->hello);
    if (!error && send(fd, c->hello, sizeof *c->hello, MSG_NOSIGNAL) != (ssize_t)sizeof *c->hello)
        error = ECONNRESET;
    if (!error)
        error = gpsh_tcp_receive(fd, &answer, sizeof answer, c->deadline_ns);
    if (error) {
        gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                  "%s at %s did not accept this process (%s): is the unique id the one of this "
                  "job, unchanged?",
                  c->whom, where, strerror(error));
        return 1;
    }
    return gpsh_confirmation_check(c->id, &greeting, c->hello, &answer)
               ? 0
               : gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                           "the process that listens at %s does not know the secret of the unique "
                           "id: it is not %s",
                           where, c->whom);
}

static int call_is_full(const struct call *c, const char *where, int error)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                     "this process has no descriptor to call %s at %s with (%s): it may have %llu "
                     "files open; raise that (ulimit -n), or look for files that are left open",
                     c->whom, where, strerror(error), (unsigned long long)limit.rlim_cur);
}

// A descriptor, or a negative status; *again: it may be worth another try.
static int call_one(struct call *c, const struct gpsh_tcp_address *address, bool *again)
{
    char where[GPSH_TCP_TEXT_BYTES];
    int error, fd = connect_to(address, c->deadline_ns, &error);
    gpsh_tcp_address_text(address, where);
    *again = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
    if (fd < 0 && error == ECONNREFUSED)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "nobody listens at %s, where %s should be: the process there has ended, "
                         "or the unique id was used before (each is good for one start)",
                         where, c->whom);
    if (fd < 0 && gpsh_tcp_is_full(error))
        return call_is_full(c, where, error);
    if (fd < 0)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "%s at %s cannot be reached: %s; a firewall, or the wrong network? "
                         "GPUSHMEM_BOOTSTRAP_INTERFACE names the interface to use",
                         c->whom, where, strerror(error));
    c->connected++;
    int talked = call_talk(c, fd, where);
    if (talked == 0)
        return fd;
    close(fd);
    *again = talked > 0 && c->connected < TRIES;
    return talked < 0 ? talked : gpsh_last_error_code();
}

static enum gpsh_tcp_presence presence_of(int error)
{
    switch (error) {
    case ECONNREFUSED: return GPSH_TCP_ABSENT;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN: return GPSH_TCP_UNREACHED;
    default: return GPSH_TCP_UNSURE;
    }
}

// What the process at the other end of `fd` shows of itself.
static enum gpsh_tcp_presence prove(int fd, const struct gpsh_uniqueid *id,
                                    struct gpsh_hello *hello, uint64_t deadline_ns)
{
    struct gpsh_greeting greeting;
    struct gpsh_confirmation answer;
    int error = gpsh_tcp_receive(fd, &greeting, sizeof greeting, deadline_ns);
    if (error)
        return error == ETIMEDOUT ? GPSH_TCP_PRESENT : GPSH_TCP_HUNG_UP;
    enum gpsh_greeted greeted = gpsh_greeting_check(id, &greeting);
    if (greeted != GPSH_GREETED_OK)
        return GPSH_TCP_OTHER;
    // A PE that has greeted may hang up all the same: too many call, or it has no descriptor.
    hello->purpose = GPSH_PURPOSE_PROOF;
    if (gpsh_hello_make(id, &greeting, hello) ||
        send(fd, hello, sizeof *hello, MSG_NOSIGNAL) != (ssize_t)sizeof *hello ||
        gpsh_tcp_receive(fd, &answer, sizeof answer, deadline_ns) ||
        gpsh_confirmation_check(id, &greeting, hello, &answer))
        return GPSH_TCP_PRESENT;
    return GPSH_TCP_OTHER;
}

enum gpsh_tcp_presence gpsh_tcp_probe(const struct gpsh_uniqueid *id,
                                      const struct gpsh_tcp_address *address,
                                      struct gpsh_hello *hello, uint64_t deadline_ns)
{
    int error, fd = connect_to(address, deadline_ns, &error);
    if (fd < 0)
        return presence_of(error);
    enum gpsh_tcp_presence presence =
        id ? prove(fd, id, hello, earlier(deadline_ns, PROOF_MS)) : GPSH_TCP_PRESENT;
    close(fd);
    return presence;
}

bool gpsh_tcp_has_ended(enum gpsh_tcp_presence presence)
{
    return presence == GPSH_TCP_ABSENT || presence == GPSH_TCP_OTHER ||
           presence == GPSH_TCP_HUNG_UP;
}

int gpsh_tcp_dial(const struct gpsh_uniqueid *id, const struct gpsh_tcp_address *addresses, int n,
                  struct gpsh_hello *hello, gpsh_tcp_prepare_fn *prepare, void *arg,
                  const char *whom, uint64_t deadline_ns)
{
    struct call c = {.id = id,
                     .hello = hello,
                     .prepare = prepare,
                     .arg = arg,
                     .whom = whom,
                     .deadline_ns = deadline_ns};
    char sentence[GPSH_SENTENCE_BYTES] = "";
    int code = 0;
    for (;;) {
        bool worth_it = false;
        for (int i = 0; i < n; i++) {
            bool again;
            int fd = call_one(&c, &addresses[i], &again);
            if (fd >= 0)
                return fd;
            worth_it |= again;
            if (i == 0) { // the best address: what is said about the others explains less
                code = fd;
                snprintf(sentence, sizeof sentence, "%.*s", (int)sizeof sentence - 1,
                         gpsh_last_error());
            }
        }
        if (!worth_it)
            return gpsh_fail(code, "%s", sentence);
        if (gpsh_clock_ns() >= deadline_ns)
            return gpsh_fail(GPUSHMEM_ERR_TIMEOUT, "%s", sentence);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    }
}
