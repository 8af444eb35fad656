// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // SOCK_CLOEXEC
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper_wire.h"

// The keeper is no child of the launcher, so that it survives a kill of the launcher with all its
// descendants (as CTest does after a time limit). It has a session of its own:
// signals to the launcher's process group do not reach it, and a terminal neither stops the PEs
// when they write to it (stty tostop) nor hangs up on them. It holds no standard stream that others
// read.
static _Noreturn void become_keeper(int socket, const char *dir)
{
    setsid();
    pid_t pid = fork();
    if (pid != 0)
        _exit(pid < 0);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    gpsh_keeper_live(socket, dir);
}

int gpsh_keeper_start(struct gpsh_keeper *k, const char *dir, struct gpsh_child *pes, int n_pes)
{
    int ends[2], status = 0, error = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return errno;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        become_keeper(ends[1], dir);
    }
    error = pid < 0 ? errno : 0;
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status != 0)
        error = EAGAIN; // the second fork failed
    close(ends[1]);
    if (error) {
        close(ends[0]);
        return error;
    }
    *k = (struct gpsh_keeper){.socket = ends[0], .pes = pes, .n_pes = n_pes, .dir = dir};
    return 0;
}

static void report_take(struct gpsh_keeper *k, const struct gpsh_keeper_report *r)
{
    if (r->word == GPSH_KEEPER_SWEPT)
        k->swept = true;
    if (r->pe < 0 || r->pe >= k->n_pes)
        return;
    struct gpsh_child *c = &k->pes[r->pe];
    if (r->word == GPSH_KEEPER_STOPPED)
        c->stopped_by = r->status;
    if (r->word != GPSH_KEEPER_ENDED)
        return;
    c->ended = true;
    c->how = r->how;
    c->status = r->status;
}

// False: nothing is there (with MSG_DONTWAIT), or the keeper has ended.
static bool report_next(struct gpsh_keeper *k, struct gpsh_keeper_report *r, int flags)
{
    ssize_t got = -1;
    while (!k->lost && (got = recv(k->socket, r, sizeof(*r), flags)) < 0 && errno == EINTR)
        continue;
    if (got == sizeof(*r)) {
        report_take(k, r);
        return true;
    }
    k->lost = got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK) || k->lost;
    return false;
}

int gpsh_keeper_launch(struct gpsh_keeper *k, int pe, const struct gpsh_child_plan *plan)
{
    struct gpsh_keeper_request r = {.word = GPSH_KEEPER_START,
                                    .pe = pe,
                                    .pinned = plan->cpus,
                                    .terminal = plan->terminal,
                                    .signals = *plan->signals};
    if (plan->cpus)
        r.cpus = *plan->cpus;
    int texts = gpsh_keeper_texts_write(plan, &r);
    if (texts < 0)
        return errno;
    const int fds[GPSH_KEEPER_FDS] = {texts, plan->stdio[0], plan->stdio[1], plan->stdio[2]};
    int error = gpsh_keeper_send(k->socket, &r, fds) ? 0 : errno;
    close(texts);
    k->lost = error == EPIPE || error == ECONNRESET;
    struct gpsh_keeper_report answer;
    while (!error) {
        if (!report_next(k, &answer, 0))
            return EPIPE;
        if (answer.word == GPSH_KEEPER_STARTED)
            break;
    }
    if (error || answer.status)
        return error ? error : answer.status;
    k->pes[pe] = (struct gpsh_child){.pid = answer.pid, .running = true};
    return 0;
}

void gpsh_keeper_read(struct gpsh_keeper *k)
{
    struct gpsh_keeper_report r;
    while (report_next(k, &r, MSG_DONTWAIT))
        continue;
}

void gpsh_keeper_sweep(struct gpsh_keeper *k)
{
    struct gpsh_keeper_report r;
    k->swept = false;
    if (gpsh_keeper_send(k->socket, &(struct gpsh_keeper_request){.word = GPSH_KEEPER_SWEEP}, NULL))
        while (!k->swept && report_next(k, &r, 0))
            continue;
    for (int pe = 0; pe < k->n_pes; pe++)
        k->pes[pe].pid = 0;
}

void gpsh_keeper_finish(struct gpsh_keeper *k)
{
    struct gpsh_keeper_report r;
    shutdown(k->socket, SHUT_WR);
    while (report_next(k, &r, 0))
        continue;
    close(k->socket);
    gpsh_keeper_remove(k->dir); // if the keeper was lost before it could
}
