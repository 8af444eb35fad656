// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // SO_PASSCRED
#include "bootstrap/fd_exchange.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/launcher_answer.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/fd_message.h"
#include "core/launcher.h"
#include "core/scratch.h"

struct message {
    uint32_t magic;
    int32_t pe;
};

enum { MAGIC = 0x67707364, LONGEST_TMPDIR = 32, LOOK_MS = 20 };

static int make_own_dir(struct gpsh_fd_exchange *x)
{
    if (gpsh_scratch_dir("gpushmem", LONGEST_TMPDIR, x->own_dir, sizeof x->own_dir) == 0)
        return 0;
    int status = gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                           "cannot make the directory %s for sockets: %s; set TMPDIR to an "
                           "absolute path of at most %d characters that can be written",
                           x->own_dir, strerror(errno), LONGEST_TMPDIR);
    x->own_dir[0] = '\0';
    return status;
}

int gpsh_fd_exchange_open(struct gpsh_fd_exchange *x, const struct gpsh_bootstrap *b,
                          int generation)
{
    *x = (struct gpsh_fd_exchange){
        .by_launcher = b->launched_by_us, .line = b->line, .job = b->job_round, .socket = -1};
    if (x->by_launcher || b->node_n_pes == 1)
        return 0;
    const char *dir = b->dir;
    if (!*dir || strlen(dir) + 32 > sizeof x->path) {
        int status = make_own_dir(x);
        if (status)
            return status;
        dir = x->own_dir;
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/heap.%d.%d", dir, b->my_pe, generation);
    memcpy(x->path, address.sun_path, sizeof x->path);
    int on = 1;
    x->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (x->socket < 0 || bind(x->socket, (struct sockaddr *)&address, sizeof address) ||
        setsockopt(x->socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on)) {
        int status = gpsh_fail(GPUSHMEM_ERR_SYSTEM, "the socket %s could not be made (%s)",
                               address.sun_path, strerror(errno));
        gpsh_fd_exchange_close(x);
        return status;
    }
    return 0;
}

int gpsh_fd_exchange_ms(const struct gpsh_bootstrap *b)
{
    enum { UNLIMITED_MS = 60000 };
    return b->wait_timeout_ms > 0 ? (int)b->wait_timeout_ms : UNLIMITED_MS;
}

void gpsh_fd_exchange_close(struct gpsh_fd_exchange *x)
{
    if (x->socket >= 0) {
        close(x->socket);
        unlink(x->path);
    }
    x->socket = -1;
    if (x->own_dir[0])
        rmdir(x->own_dir);
    x->own_dir[0] = '\0';
}

// 1 sent, 0 the receiver's queue is full, negative: error.
static int send_to(struct gpsh_fd_exchange *x, int my_pe, const char *path,
                   const struct gpsh_fd_set *mine)
{
    struct message body = {.magic = MAGIC, .pe = my_pe};
    struct iovec part = {.iov_base = &body, .iov_len = sizeof body};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    struct msghdr header = {
        .msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &part, .msg_iovlen = 1};
    if (gpsh_fd_message_send(x->socket, &header, mine->fds, mine->count, false) >= 0)
        return 1;
    // ETOOMANYREFS: too many descriptors of this user are on their way; they will be received.
    if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS)
        return 0;
    int error = errno;
    if (error == ECONNREFUSED || error == ENOENT) { // nobody is there any more
        int dead = gpsh_bootstrap_check("handing over memory", true);
        if (dead)
            return dead;
    }
    return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "memory could not be passed to the PE at %s (%s)", path,
                     strerror(error));
}

// The room for descriptors is always enough: some could not be opened.
static int too_many_open(int pe)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                     "the memory of PE %d cannot be mapped: this process may have no more than "
                     "%llu files open; raise that (ulimit -n), or close some before gpushmem_init",
                     pe, (unsigned long long)limit.rlim_cur);
}

// 1 and *pe: received, with count -1 if this process has no room for the descriptors; 0: nothing
// there. Messages from other users or with strange contents are dropped.
static int receive(struct gpsh_fd_exchange *x, struct gpsh_fd_set *set, int *pe)
{
    struct message body = {0};
    struct iovec part = {.iov_base = &body, .iov_len = sizeof body};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    struct gpsh_fd_sender who;
    set->count = GPSH_FDS_MAX;
    ssize_t got = gpsh_fd_message_receive(x->socket, &header, set->fds, &set->count, &who);
    if (got < 0)
        return errno == EAGAIN ? 0
                               : gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                                           "receiving peers' memory failed (%s)", strerror(errno));
    set->pid = who.pid;
    bool ours = got == sizeof body && body.magic == MAGIC && who.uid == geteuid();
    bool cut_short = header.msg_flags & MSG_CTRUNC;
    if (!ours || cut_short)
        gpsh_fds_close(set->fds, set->count);
    if (ours && cut_short)
        set->count = -1;
    *pe = body.pe;
    return ours;
}

static int index_of(const int *pes, int n, int pe)
{
    for (int i = 0; i < n; i++)
        if (pes[i] == pe)
            return i;
    return -1;
}

// What fails for one PE's memory is kept until all is handed over: the other PEs wait for what this
// one sends, and would learn nothing from its silence.
struct handover {
    struct gpsh_fd_exchange *x;
    const int *pes;
    int n, expected; // PEs, descriptors of each
    gpsh_fd_take_fn *take;
    void *arg;
    bool *came; // [n]
    int failed; // 0, or the first failure
    char why[GPSH_ERROR_BYTES];
};

static void note_failure(struct handover *h, int status)
{
    if (status >= 0 || h->failed)
        return;
    h->failed = status;
    snprintf(h->why, sizeof h->why, "%s", gpsh_last_error());
}

static int fail_set(const struct handover *h, const struct gpsh_fd_set *set, int pe)
{
    return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                     "PE %d sent %d memory descriptors; each PE of this node sends %d, and only "
                     "once",
                     pe, set->count, h->expected);
}

// 1: something new came from a PE, 0: nothing did.
static int take_one(struct handover *h, const struct gpsh_fd_set *set, int pe)
{
    int at = index_of(h->pes, h->n, pe);
    if (at < 0 || h->came[at]) {
        note_failure(h, fail_set(h, set, pe));
        return 0;
    }
    h->came[at] = true;
    if (set->count < 0)
        note_failure(h, too_many_open(pe));
    else if (set->count != h->expected)
        note_failure(h, fail_set(h, set, pe));
    else if (!h->failed)
        note_failure(h, h->take(h->arg, at, set));
    return 1;
}

// Takes everything that has arrived. Returns the number of new sets, or a negative status.
static int drain(struct handover *h)
{
    for (int fresh = 0;;) {
        struct gpsh_fd_set set = {.count = 0};
        int pe = -1, status = receive(h->x, &set, &pe);
        if (status <= 0)
            return status < 0 ? status : fresh;
        fresh += take_one(h, &set, pe);
        gpsh_fds_close(set.fds, set.count);
    }
}

static int late(const struct handover *h, int self, int timeout_ms)
{
    int at = 0;
    while (at < h->n - 1 && (at == self || h->came[at]))
        at++;
    return gpsh_fail(GPUSHMEM_ERR_TIMEOUT,
                     "PE %d of this node did not hand over its memory within %d ms "
                     "(GPUSHMEM_WAIT_TIMEOUT_MS); is it stopped?",
                     h->pes[at], timeout_ms);
}

static int await_peers(const struct handover *h, bool all_sent)
{
    struct pollfd ready = {.fd = h->x->socket, .events = POLLIN};
    if (poll(&ready, 1, all_sent ? LOOK_MS : 1) == 0 && h->x->waits)
        h->x->waits(false);
    return gpsh_bootstrap_check("handing over memory", false);
}

static int exchange_all(struct handover *h, int my_pe, const char *const *paths,
                        const struct gpsh_fd_set *mine, int timeout_ms)
{
    int n = h->n, self = index_of(h->pes, n, my_pe), sent = 1, got = 1;
    uint64_t deadline_ns = gpsh_clock_in(timeout_ms);
    while (sent < n || got < n) {
        // Everybody starts with the PE after itself, so that no single queue is everybody's first.
        int progress = 0, status = 0;
        while (sent < n && (status = send_to(h->x, my_pe, paths[(self + sent) % n], mine)) != 0) {
            note_failure(h, status);
            sent++;
            progress = 1;
        }
        status = drain(h);
        if (status < 0)
            return status;
        got += status;
        if (progress || status)
            continue;
        status = await_peers(h, sent == n);
        if (status < 0)
            return status;
        if (gpsh_clock_ns() <= deadline_ns)
            continue;
        // What has come meanwhile is taken first, however late this process is. Of strangers
        // nothing counts.
        status = drain(h);
        got += status > 0 ? status : 0;
        if (status < 0)
            return status;
        if (!status)
            return late(h, self, timeout_ms);
    }
    return 0;
}

// ------------------------------------------------------------------------------------------
// by way of the launcher

// The number of the last exchange, the same on all PEs, though the process of one may be newer.
static uint32_t rounds, of_job;

static void begin_round(uint32_t job)
{
    enum { MOST_IN_A_JOB = 1024 };
    rounds = job == of_job ? rounds + 1 : job * MOST_IN_A_JOB;
    of_job = job;
}

static int line_send(const struct gpsh_launcher_wait *wait, const struct gpsh_line_message *message,
                     const struct gpsh_fd_set *set)
{
    int error, status = 0;
    while ((error = gpsh_launcher_send(wait->line, message, NULL, 0, set ? set->fds : NULL,
                                       set ? set->count : 0)) != 0 &&
           !status) {
        // ETOOMANYREFS: too many descriptors of this user are on their way; they will be received.
        if (error != EAGAIN && error != ENOBUFS && error != ETOOMANYREFS)
            return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "memory could not be passed to the launcher (%s)",
                             strerror(error));
        status = gpsh_launcher_await(wait, POLLOUT);
    }
    return status;
}

// Takes the sets of up to `count` PEs from `first` on. How many there were; 0: no room for so many
// descriptors.
static int take_some(struct handover *h, const struct gpsh_launcher_wait *wait, int first,
                     int count, int self)
{
    int fds[GPSH_LINE_MOST_FDS];
    struct gpsh_line_message answer;
    const struct gpsh_line_message wish = {
        .word = GPSH_LINE_TAKE, .a = (int32_t)rounds, .b = first, .c = count};
    int status = line_send(wait, &wish, NULL);
    const int n = status ? status
                         : gpsh_launcher_answer(wait, GPSH_LINE_GIVEN, (int32_t)rounds, &answer,
                                                fds, GPSH_LINE_MOST_FDS);
    if (n <= 0)
        return n;
    const int each = answer.c > 0 ? n / answer.c : 0;
    if (answer.b != first || answer.c > count || each * answer.c != n || each > GPSH_FDS_MAX)
        status = gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                           "the launcher handed on %d memory descriptors of %d PEs, which is not "
                           "what was asked for",
                           n, answer.c);
    for (int i = 0; !status && i < answer.c; i++) {
        struct gpsh_fd_set set = {.count = each};
        memcpy(set.fds, fds + i * each, sizeof(int) * (size_t)each);
        if (first + i != self)
            take_one(h, &set, h->pes[first + i]);
    }
    gpsh_fds_close(fds, n);
    return status ? status : answer.c;
}

// Few descriptors are open at a time where few can be.
static int exchange_by_launcher(struct handover *h, int my_pe, const struct gpsh_fd_set *mine,
                                int timeout_ms)
{
    const struct gpsh_launcher_wait wait = {.line = h->x->line,
                                            .what = "handing over memory",
                                            .began_ns = gpsh_clock_ns(),
                                            .limit_ms = timeout_ms,
                                            .waits = h->x->waits};
    begin_round(h->x->job);
    const struct gpsh_line_message given = {.word = GPSH_LINE_GIVE, .a = (int32_t)rounds};
    int status = line_send(&wait, &given, mine);
    int most = GPSH_LINE_MOST_FDS / mine->count, self = index_of(h->pes, h->n, my_pe);
    for (int first = 0; first < h->n && !status;) {
        int left = h->n - first;
        int n = take_some(h, &wait, first, most < left ? most : left, self);
        if (n == 0 && most == 1)
            status = too_many_open(h->pes[first]);
        most = n == 0 ? (most + 1) / 2 : most;
        status = n < 0 ? n : status;
        first += n > 0 ? n : 0;
    }
    const struct gpsh_line_message over = {.word = GPSH_LINE_TAKE, .a = (int32_t)rounds};
    return status ? status : line_send(&wait, &over, NULL);
}

int gpsh_fd_exchange_run(struct gpsh_fd_exchange *x, int my_pe, const int *pes,
                         const char *const *paths, int n, const struct gpsh_fd_set *mine,
                         gpsh_fd_take_fn *take, void *arg, int timeout_ms)
{
    struct handover h = {.x = x,
                         .pes = pes,
                         .n = n,
                         .expected = mine->count,
                         .take = take,
                         .arg = arg,
                         .came = calloc((size_t)n, sizeof(bool))};
    if (!h.came)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %d PEs of this node", n);
    int status = x->by_launcher ? exchange_by_launcher(&h, my_pe, mine, timeout_ms)
                                : exchange_all(&h, my_pe, paths, mine, timeout_ms);
    if (!x->by_launcher && x->waits)
        x->waits(true);
    free(h.came);
    return h.failed ? gpsh_fail(h.failed, "%s", h.why) : status;
}
