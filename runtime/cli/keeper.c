// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // pipe2, sched_setaffinity
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/launcher.h"
#include "run_options.h"

enum {
    EXIT_NOT_EXECUTABLE = 126,
    SWEEP_ROUNDS = 2000,
    ROUND_NS = 1000000,
    OUT_OF_THE_WAY = 64,
    WAKE_MS = 200,
    FINISH_MS = 10000 // for all rounds of a sweep, and more
};

enum word { BORN, STARTED, ENDED, STOPPED, AWAKE };

// What the keeper writes to the launcher.
struct report {
    enum word word;
    int pe;
    pid_t pid;  // BORN, STARTED
    int how;    // ENDED: as siginfo_t has it
    int status; // STARTED: 0 or an errno; ENDED, STOPPED: as siginfo_t has it
};

// The keeper's own. A PE that ended stays a zombie until the sweep, so that its process id, which
// is that of its group as well, is given to nobody else.
static struct {
    int socket;
    int signals; // signalfd for SIGCHLD
    struct {
        pid_t pid; // 0: not started
        bool ended;
    } pes[GPSH_RUN_MAX_PES];
    int n_pes;
    int streams[3]; // the launcher's standard input, output and error, while PEs are started
} keeper;

static void report(const struct report *r)
{
    while (send(keeper.socket, r, sizeof(*r), MSG_NOSIGNAL) < 0 && errno == EINTR)
        continue;
}

// ------------------------------------------------------------------------------------------
// a PE's way to its program

// Shells and their scripts use small numbers as they like.
static int hand_down(int fd)
{
    int high = fcntl(fd, F_DUPFD, OUT_OF_THE_WAY);
    return high >= 0 ? high : fcntl(fd, F_DUPFD, 3);
}

static bool hand_down_job(const struct gpsh_child_plan *plan)
{
    struct stat segment, line, error;
    char text[160];
    int s = hand_down(plan->segment), l = hand_down(plan->line);
    if (s < 0 || l < 0 || fstat(s, &segment) < 0 || fstat(l, &line) < 0)
        return false;
    int n = snprintf(text, sizeof(text), "%d:%llu %d:%llu", s, (unsigned long long)segment.st_ino,
                     l, (unsigned long long)line.st_ino);
    if (plan->says_by_line && fstat(STDERR_FILENO, &error) == 0)
        snprintf(text + n, sizeof(text) - (size_t)n, " %llu:%llu", (unsigned long long)error.st_dev,
                 (unsigned long long)error.st_ino);
    return setenv(GPSH_LAUNCHER_JOB, text, 1) == 0;
}

static bool tell_place(const struct gpsh_child_plan *plan)
{
    char text[16];
    for (int i = 0; i < GPSH_CHILD_SETTINGS; i++) {
        snprintf(text, sizeof(text), "%d", plan->settings[i].value);
        if (setenv(plan->settings[i].name, text, 1) < 0)
            return false;
    }
    return true;
}

static int program_prepare(const struct gpsh_child_plan *plan)
{
    if (plan->directory && chdir(plan->directory) < 0)
        return errno;
    for (int fd = 0; fd < 3; fd++) {
        int from = plan->stdio[fd] < 3 ? keeper.streams[plan->stdio[fd]] : plan->stdio[fd];
        if (dup2(from, fd) < 0)
            return errno;
    }
    if (plan->terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
        return errno;
    if (plan->cpus && sched_setaffinity(0, sizeof(*plan->cpus), plan->cpus) < 0)
        return errno;
    if (!tell_place(plan) || !hand_down_job(plan))
        return errno;
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    sigprocmask(SIG_SETMASK, plan->signals, NULL);
    return 0;
}

// `answer` closes at exec.
static _Noreturn void become_program(const struct gpsh_child_plan *plan, pid_t parent, int answer)
{
    if (plan->terminal)
        setsid(); // a group of its own, too
    else
        setpgid(0, 0);
    // The PE must not outlive the keeper, which may have died before this took effect.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_NOT_EXECUTABLE);
    int error = program_prepare(plan);
    if (!error) {
        execv(plan->path, plan->argv);
        error = errno;
    }
    if (write(answer, &error, sizeof(error)) < 0) {
        // The launcher sees the exit status instead.
    }
    _exit(EXIT_NOT_EXECUTABLE);
}

// 0 and *pid, or the errno of what failed.
static int program_start(const struct gpsh_child_plan *plan, pid_t *pid)
{
    int answer[2], error = 0;
    if (pipe2(answer, O_CLOEXEC) < 0)
        return errno;
    pid_t parent = getpid();
    *pid = fork();
    if (*pid == 0)
        become_program(plan, parent, answer[1]);
    if (*pid < 0)
        error = errno;
    close(answer[1]);
    while (*pid > 0 && read(answer[0], &error, sizeof(error)) < 0 && errno == EINTR)
        continue;
    close(answer[0]);
    if (*pid > 0 && error)
        waitpid(*pid, NULL, 0);
    return error;
}

// The keeper reads and writes nothing of others: who reads the launcher's output would wait for its
// end, too.
static bool streams_set_aside(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++) {
        keeper.streams[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (keeper.streams[fd] < 0 || dup2(null, fd) < 0)
            return false;
    }
    close(null);
    return true;
}

// The end of a stream is seen by the launcher only when nobody but the PE can write to it.
static void close_plan(const struct gpsh_child_plan *plan)
{
    for (int fd = 0; fd < 3; fd++)
        if (plan->stdio[fd] > STDERR_FILENO)
            close(plan->stdio[fd]); // some are the same
    close(plan->line);
}

static void start_all(const struct gpsh_child_plan *plans, int n_pes)
{
    struct report r = {.word = STARTED, .status = streams_set_aside() ? 0 : errno};
    if (r.status)
        report(&r);
    for (r.pe = 0; r.pe < n_pes && !r.status; r.pe++) {
        r.status = program_start(&plans[r.pe], &r.pid);
        if (!r.status)
            keeper.pes[r.pe].pid = r.pid;
        report(&r);
    }
    for (int pe = 0; pe < n_pes; pe++)
        close_plan(&plans[pe]);
    for (int fd = 0; fd < 3; fd++)
        close(keeper.streams[fd]);
}

// ------------------------------------------------------------------------------------------
// processes of the job

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
                report(&(struct report){.word = STOPPED, .pe = pe, .status = info.si_status});
        }
    }
}

static void report_end(int pe)
{
    siginfo_t info = {0};
    if (keeper.pes[pe].pid == 0 || keeper.pes[pe].ended ||
        waitid(P_PID, (id_t)keeper.pes[pe].pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        info.si_pid == 0)
        return;
    keeper.pes[pe].ended = true;
    report(
        &(struct report){.word = ENDED, .pe = pe, .how = info.si_code, .status = info.si_status});
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
}

// False: the launcher has closed its end. What it writes asks for an answer, and says nothing else.
static bool answer_launcher(void)
{
    char question;
    ssize_t got = recv(keeper.socket, &question, sizeof(question), MSG_DONTWAIT);
    if (got > 0)
        report(&(struct report){.word = AWAKE});
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static void serve(void)
{
    bool wanted = true;
    struct pollfd polls[] = {{.fd = keeper.socket, .events = POLLIN},
                             {.fd = keeper.signals, .events = POLLIN}};
    do {
        polls[0].revents = polls[1].revents = 0;
        poll(polls, 2, -1);
        if (polls[1].revents)
            on_children();
        if (polls[0].revents)
            wanted = answer_launcher();
    } while (wanted);
}

static _Noreturn void keeper_live(const struct gpsh_child_plan *plans, int n_pes)
{
    sigset_t all;
    prctl(PR_SET_NAME, "gpushmem-keeper");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    keeper.signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (keeper.signals >= 0) {
        keeper.n_pes = n_pes;
        start_all(plans, n_pes);
        serve();
    }
    sweep();
    _exit(0);
}

// The keeper is no child of the launcher, so that it survives a kill of the launcher with all its
// descendants (as CTest does after a time limit). It has a session of its own: signals to the
// launcher's process group do not reach it, and a terminal neither stops the PEs when they write to
// it (stty tostop) nor hangs up on them.
static _Noreturn void become_keeper(const struct gpsh_child_plan *plans, int n_pes)
{
    setsid();
    pid_t pid = fork();
    if (pid > 0)
        report(&(struct report){.word = BORN, .pid = pid});
    if (pid != 0)
        _exit(pid < 0);
    keeper_live(plans, n_pes);
}

// ------------------------------------------------------------------------------------------
// the launcher's side

int gpsh_keeper_start(struct gpsh_keeper *k, const struct gpsh_child_plan *plans,
                      struct gpsh_child *pes, int n_pes, void (*forget)(void *arg), void *arg)
{
    int ends[2], status = 0, error = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return errno;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        forget(arg);
        keeper.socket = ends[1];
        become_keeper(plans, n_pes);
    }
    error = pid < 0 ? errno : 0;
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status != 0)
        error = EAGAIN; // the second fork failed
    close(ends[1]);
    if (error) {
        close(ends[0]);
        return error;
    }
    *k = (struct gpsh_keeper){.socket = ends[0], .pes = pes, .n_pes = n_pes};
    return 0;
}

static void report_take(struct gpsh_keeper *k, const struct report *r)
{
    struct gpsh_child *c = &k->pes[r->pe];
    if (r->word == BORN)
        k->pid = r->pid;
    else
        k->asked_s = 0;
    if (r->word == STARTED && !r->status)
        *c = (struct gpsh_child){.pid = r->pid, .running = true};
    if (r->word == STOPPED)
        c->stopped_by = r->status;
    if (r->word != ENDED)
        return;
    c->ended = true;
    c->how = r->how;
    c->status = r->status;
}

// False: nothing is there (with MSG_DONTWAIT), or the keeper has ended.
static bool report_next(struct gpsh_keeper *k, struct report *r, int flags)
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

static void keeper_signal(const struct gpsh_keeper *k, int signal)
{
    if (k->pid > 0 && !k->lost)
        kill(k->pid, signal);
}

void gpsh_keeper_wake(struct gpsh_keeper *k)
{
    double now_s = gpsh_clock_s();
    if (k->asked_s == 0) {
        k->asked_s = now_s;
        if (send(k->socket, "?", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
            // It has ended, which the next read tells.
        }
    }
    keeper_signal(k, now_s - k->asked_s < GPSH_KEEPER_PATIENCE_S ? SIGCONT : SIGKILL);
}

// Without taking it: the PEs are to have it, once they are there.
static bool end_is_wanted(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGTERM) || sigismember(&pending, SIGHUP) ||
           sigismember(&pending, SIGINT) || sigismember(&pending, SIGQUIT);
}

int gpsh_keeper_started(struct gpsh_keeper *k, int *pe)
{
    struct report r;
    do {
        struct pollfd next = {.fd = k->socket, .events = POLLIN};
        while (poll(&next, 1, WAKE_MS) == 0)
            if (end_is_wanted())
                gpsh_keeper_wake(k);
        if (!report_next(k, &r, 0))
            return EPIPE;
    } while (r.word != STARTED);
    *pe = r.pe;
    return r.status;
}

void gpsh_keeper_read(struct gpsh_keeper *k)
{
    struct report r;
    while (report_next(k, &r, MSG_DONTWAIT))
        continue;
}

void gpsh_keeper_finish(struct gpsh_keeper *k)
{
    struct report r;
    struct pollfd end = {.fd = k->socket, .events = POLLIN};
    shutdown(k->socket, SHUT_WR);
    for (int ms = 0; k->socket >= 0 && !k->lost && ms < FINISH_MS + WAKE_MS;) {
        keeper_signal(k, ms < FINISH_MS ? SIGCONT : SIGKILL);
        if (poll(&end, 1, WAKE_MS) > 0)
            report_next(k, &r, MSG_DONTWAIT);
        else
            ms += WAKE_MS;
    }
    close(k->socket);
    for (int pe = 0; pe < k->n_pes; pe++)
        k->pes[pe].pid = 0;
}
