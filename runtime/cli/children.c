// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // pipe2, sched_setaffinity
#include "children.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"

enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127, SWEEP_ROUNDS = 2000 };

static bool is_program(const char *path, int *reason)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        *reason = errno;
        return false;
    }
    if (S_ISREG(st.st_mode) && access(path, X_OK) == 0)
        return true;
    *reason = S_ISDIR(st.st_mode) ? EISDIR : EACCES;
    return false;
}

char *gpsh_program_find(const char *program, int *exit_status)
{
    int reason = ENOENT;
    const char *search = strchr(program, '/') ? NULL : getenv("PATH");
    if (!search && is_program(program, &reason))
        return strdup(program);

    while (search && *search) {
        char path[PATH_MAX];
        int ignored;
        size_t length = strcspn(search, ":");
        snprintf(path, sizeof(path), "%.*s/%s", length ? (int)length : 1, length ? search : ".",
                 program);
        if (is_program(path, &ignored))
            return strdup(path);
        if (ignored == EACCES)
            reason = EACCES;
        search += length + (search[length] == ':');
    }
    *exit_status = reason == ENOENT || reason == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
    if (strchr(program, '/'))
        gpsh_cli_say("run", "cannot start '%s': %s", program, strerror(reason));
    else if (reason == EACCES)
        gpsh_cli_say("run", "'%s' is in PATH but not executable", program);
    else if (is_program(program, &reason))
        gpsh_cli_say("run", "there is no program '%s' in PATH; did you mean ./%s?", program,
                     program);
    else
        gpsh_cli_say("run", "there is no program '%s' in PATH", program);
    return NULL;
}

// Runs in the forked child of a process with threads: only async-signal-safe calls. `report` closes
// at exec.
static _Noreturn void become_program(const struct gpsh_child_plan *plan, pid_t launcher, int report)
{
    setpgid(0, 0);
    // The PE must not outlive the launcher, which may have died before this took effect.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher)
        _exit(EXIT_NOT_EXECUTABLE);
    // Before the program can start children of its own, whoever survives the launcher must know of
    // this group.
    pid_t group = getpid();
    int error = write(plan->announce, &group, sizeof(group)) < 0 ? errno : 0;
    for (int fd = 0; fd < 3 && !error; fd++) {
        if (plan->stdio[fd] >= 0 && dup2(plan->stdio[fd], fd) < 0)
            error = errno;
    }
    if (!error && plan->cpus && sched_setaffinity(0, sizeof(*plan->cpus), plan->cpus) < 0)
        error = errno;
    if (!error) {
        signal(SIGPIPE, SIG_DFL);
        sigprocmask(SIG_SETMASK, plan->signals, NULL);
        execve(plan->path, plan->argv, plan->environment);
        error = errno;
    }
    if (write(report, &error, sizeof(error)) < 0) {
        // The launcher sees the exit status instead.
    }
    _exit(EXIT_NOT_EXECUTABLE);
}

int gpsh_child_start(struct gpsh_child *c, const struct gpsh_child_plan *plan)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return errno;
    pid_t launcher = getpid();
    pid_t pid = fork();
    if (pid < 0) {
        int error = errno;
        close(report[0]);
        close(report[1]);
        return error;
    }
    if (pid == 0)
        become_program(plan, launcher, report[1]);
    setpgid(pid, pid); // whoever of the two comes first; the other's call fails harmlessly
    close(report[1]);

    int error = 0;
    while (read(report[0], &error, sizeof(error)) < 0 && errno == EINTR)
        continue;
    close(report[0]);
    if (error) {
        waitpid(pid, NULL, 0);
        return error;
    }
    *c = (struct gpsh_child){.pid = pid, .running = true};
    return 0;
}

bool gpsh_child_check(struct gpsh_child *c)
{
    siginfo_t info = {0};
    if (!c->running || waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        info.si_pid == 0)
        return false;
    c->running = false;
    c->how = info.si_code;
    c->status = info.si_status;
    return true;
}

bool gpsh_child_failed(const struct gpsh_child *c)
{
    return !c->running && (c->how != CLD_EXITED || c->status != 0);
}

void gpsh_child_signal(const struct gpsh_child *c, int signal)
{
    if (c->pid > 0)
        kill(-c->pid, signal);
}

void gpsh_child_describe(const struct gpsh_child *c, char *text, size_t bytes)
{
    if (c->how == CLD_EXITED)
        snprintf(text, bytes, "exited with code %d", c->status);
    else
        snprintf(text, bytes, "was killed by signal %d (%s%s)", c->status, strsignal(c->status),
                 c->how == CLD_DUMPED ? ", core dumped" : "");
}

int gpsh_child_exit_status(const struct gpsh_child *c)
{
    return c->how == CLD_EXITED ? c->status : 128 + c->status;
}

// Returns how many children there were. Orphans belong to any thread of the process that adopted
// them.
static int visit_children(void (*visit)(pid_t pid, const struct gpsh_child *pes, int n_pes),
                          const struct gpsh_child *pes, int n_pes)
{
    int pid, n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        char path[300];
        snprintf(path, sizeof(path), "/proc/self/task/%s/children", task->d_name);
        FILE *list = task->d_name[0] == '.' ? NULL : fopen(path, "re");
        for (; list && fscanf(list, "%d", &pid) == 1; n++)
            visit(pid, pes, n_pes);
        if (list)
            fclose(list);
    }
    if (tasks)
        closedir(tasks);
    return n;
}

static void bury(pid_t pid, const struct gpsh_child *pes, int n_pes)
{
    for (int pe = 0; pe < n_pes; pe++)
        if (pes[pe].pid == pid)
            return;
    waitpid(pid, NULL, WNOHANG);
}

void gpsh_children_bury(const struct gpsh_child *pes, int n_pes)
{
    visit_children(bury, pes, n_pes);
}

static void end(pid_t pid, const struct gpsh_child *pes, int n_pes)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, WNOHANG);
}

void gpsh_children_sweep(void)
{
    // A killed process hands its own children over to us, so this takes as many rounds as the tree
    // is deep. Bounded, because a process in an uninterruptible wait does not die.
    for (int round = 0; round < SWEEP_ROUNDS && visit_children(end, NULL, 0) > 0; round++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}
