// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // pipe2, sched_setaffinity, nftw
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "keeper_wire.h"

enum { EXIT_NOT_EXECUTABLE = 126, SWEEP_ROUNDS = 2000, ROUND_NS = 1000000 };

// A PE that ended stays a zombie until the sweep, so that its process id, which is that of its
// group as well, is given to nobody else.
struct kept {
    pid_t pid; // 0: not started
    bool ended;
};

static struct {
    int socket;
    int signals; // signalfd for SIGCHLD
    struct kept *pes;
    int n_pes; // room
} keeper;

static void say(const struct gpsh_keeper_report *r)
{
    while (send(keeper.socket, r, sizeof(*r), MSG_NOSIGNAL) < 0 && errno == EINTR)
        continue;
}

static bool keep_room_for(int pe)
{
    if (pe < keeper.n_pes)
        return true;
    int wanted = pe < 32 ? 64 : 2 * pe;
    struct kept *grown = realloc(keeper.pes, (size_t)wanted * sizeof(*grown));
    if (!grown)
        return false;
    memset(grown + keeper.n_pes, 0, (size_t)(wanted - keeper.n_pes) * sizeof(*grown));
    keeper.pes = grown;
    keeper.n_pes = wanted;
    return true;
}

static int program_prepare(const struct gpsh_child_plan *plan)
{
    if (plan->directory && chdir(plan->directory) < 0)
        return errno;
    for (int fd = 0; fd < 3; fd++) {
        if (dup2(plan->stdio[fd], fd) < 0)
            return errno;
    }
    if (plan->terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
        return errno;
    if (plan->cpus && sched_setaffinity(0, sizeof(*plan->cpus), plan->cpus) < 0)
        return errno;
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    sigprocmask(SIG_SETMASK, plan->signals, NULL);
    return 0;
}

// `report` closes at exec.
static _Noreturn void become_program(const struct gpsh_keeper_request *r, const int *fds,
                                     pid_t parent, int report)
{
    struct gpsh_child_plan plan = {.stdio = {fds[1], fds[2], fds[3]}};
    if (r->terminal)
        setsid(); // a group of its own, too
    else
        setpgid(0, 0);
    // The PE must not outlive the keeper, which may have died before this took effect.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_NOT_EXECUTABLE);
    int error = gpsh_keeper_texts_read(r, fds[0], &plan) ? program_prepare(&plan) : errno;
    if (!error) {
        execve(plan.path, plan.argv, plan.environment);
        error = errno;
    }
    if (write(report, &error, sizeof(error)) < 0) {
        // The launcher sees the exit status instead.
    }
    _exit(EXIT_NOT_EXECUTABLE);
}

// 0 and *pid, or the errno of what failed.
static int program_start(const struct gpsh_keeper_request *r, const int *fds, pid_t *pid)
{
    int report[2], error = 0;
    if (!keep_room_for(r->pe))
        return ENOMEM;
    if (pipe2(report, O_CLOEXEC) < 0)
        return errno;
    pid_t parent = getpid();
    *pid = fork();
    if (*pid == 0)
        become_program(r, fds, parent, report[1]);
    if (*pid < 0)
        error = errno;
    close(report[1]);
    while (*pid > 0 && read(report[0], &error, sizeof(error)) < 0 && errno == EINTR)
        continue;
    close(report[0]);
    if (*pid > 0 && error)
        waitpid(*pid, NULL, 0);
    if (!error)
        keeper.pes[r->pe] = (struct kept){.pid = *pid};
    return error;
}

static void on_start(const struct gpsh_keeper_request *r, int fds[GPSH_KEEPER_FDS])
{
    struct gpsh_keeper_report started = {.word = GPSH_KEEPER_STARTED, .pe = r->pe};
    started.status = program_start(r, fds, &started.pid);
    for (int i = 0; i < GPSH_KEEPER_FDS; i++)
        close(fds[i]);
    say(&started);
}

// The numbers that a process has in each PID namespace, from that of /proc to its own, stand in a
// line of its status. Returns the one at `depth`, counted from 1; the last one if depth is 0, and
// then *n is how many there are.
static pid_t read_nspid(const char *path, int depth, int *n)
{
    char line[512];
    pid_t pid = 0;
    FILE *status = fopen(path, "re");
    while (status && !pid && fgets(line, sizeof(line), status)) {
        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        char *next = line + 6, *end;
        for (*n = 0; depth == 0 || *n < depth; next = end) {
            long number = strtol(next, &end, 10);
            if (end == next)
                break;
            pid = (pid_t)number;
            ++*n;
        }
    }
    if (status)
        fclose(status);
    return pid;
}

// /proc may be that of another PID namespace, as after unshare -p without --mount-proc. 0: `pid`
// has ended.
static pid_t from_proc(pid_t pid)
{
    static int depth; // of this process's namespace below that of /proc; the latter counts
    char path[64];
    int n = 0;
    if (depth == 0)
        depth = read_nspid("/proc/self/status", 0, &n) > 0 ? n : 1;
    if (depth == 1)
        return pid;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    pid_t ours = read_nspid(path, depth, &n);
    return n == depth ? ours : 0;
}

// Returns how many children there were.
static int visit_children(void (*visit)(pid_t pid))
{
    int pid, n = 0;
    FILE *list = fopen("/proc/thread-self/children", "re"); // one thread is all there is
    for (; list && fscanf(list, "%d", &pid) == 1; n++) {
        pid_t ours = from_proc(pid);
        if (ours > 0)
            visit(ours);
    }
    if (list)
        fclose(list);
    return n;
}

static void bury_orphan(pid_t pid)
{
    for (int pe = 0; pe < keeper.n_pes; pe++) {
        if (keeper.pes[pe].pid == pid)
            return;
    }
    waitpid(pid, NULL, WNOHANG);
}

// True if a child has stopped.
static bool next_stop(siginfo_t *info)
{
    *info = (siginfo_t){0};
    return waitid(P_ALL, 0, info, WSTOPPED | WNOHANG) == 0 && info->si_pid != 0;
}

static void report_stops(void)
{
    for (siginfo_t info; next_stop(&info);) {
        for (int pe = 0; pe < keeper.n_pes; pe++) {
            if (keeper.pes[pe].pid == info.si_pid)
                say(&(struct gpsh_keeper_report){
                    .word = GPSH_KEEPER_STOPPED, .pe = pe, .status = info.si_status});
        }
    }
}

static void report_end(int pe)
{
    struct kept *c = &keeper.pes[pe];
    siginfo_t info = {0};
    if (c->pid == 0 || c->ended ||
        waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
        return;
    c->ended = true;
    say(&(struct gpsh_keeper_report){
        .word = GPSH_KEEPER_ENDED, .pe = pe, .how = info.si_code, .status = info.si_status});
}

static void on_children(void)
{
    struct signalfd_siginfo info;
    while (read(keeper.signals, &info, sizeof(info)) == sizeof(info))
        continue;
    report_stops();
    for (int pe = 0; pe < keeper.n_pes; pe++)
        report_end(pe);
    visit_children(bury_orphan);
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, WNOHANG);
}

// A killed process hands its own children over to us, so this takes as many rounds as the tree is
// deep. Bounded, because a process in an uninterruptible wait does not die.
static void sweep(void)
{
    for (int pe = 0; pe < keeper.n_pes; pe++) {
        if (keeper.pes[pe].pid > 0)
            kill(-keeper.pes[pe].pid, SIGKILL);
    }
    for (int round = 0; round < SWEEP_ROUNDS && visit_children(end_child) > 0; round++)
        nanosleep(&(struct timespec){.tv_nsec = ROUND_NS}, NULL);
    free(keeper.pes);
    keeper.pes = NULL;
    keeper.n_pes = 0;
}

static void serve(void)
{
    struct pollfd polls[] = {{.fd = keeper.socket, .events = POLLIN},
                             {.fd = keeper.signals, .events = POLLIN}};
    for (;;) {
        struct gpsh_keeper_request r;
        int fds[GPSH_KEEPER_FDS];
        if (poll(polls, 2, -1) < 0)
            continue;
        if (polls[1].revents)
            on_children();
        if (!polls[0].revents)
            continue;
        if (!gpsh_keeper_receive(keeper.socket, &r, fds))
            return;
        if (r.word == GPSH_KEEPER_START) {
            on_start(&r, fds);
        } else {
            sweep();
            say(&(struct gpsh_keeper_report){.word = GPSH_KEEPER_SWEPT});
        }
    }
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    remove(path);
    return 0;
}

void gpsh_keeper_remove(const char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

_Noreturn void gpsh_keeper_live(int socket, const char *dir)
{
    sigset_t all;
    prctl(PR_SET_NAME, "gpushmem-keeper");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    keeper.socket = socket;
    keeper.signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (keeper.signals >= 0)
        serve();
    sweep();
    gpsh_keeper_remove(dir);
    _exit(0);
}
