// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // environ, getpgid, strsignal, O_PATH
#include "children.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "say.h"

enum { EXIT_USAGE = 2, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

static bool is_program(int directory, const char *path, int *reason)
{
    struct stat st;
    if (fstatat(directory, path, &st, 0) < 0) {
        *reason = errno;
        return false;
    }
    if (S_ISREG(st.st_mode) && faccessat(directory, path, X_OK, 0) == 0)
        return true;
    *reason = S_ISDIR(st.st_mode) ? EISDIR : EACCES;
    return false;
}

// The first program of that name in the folders of PATH. *reason is set if there is none.
static char *program_search(int directory, const char *name, const char *folders, int *reason)
{
    *reason = ENOENT;
    while (*folders) {
        char path[PATH_MAX];
        int why;
        size_t length = strcspn(folders, ":");
        snprintf(path, sizeof(path), "%.*s/%s", length ? (int)length : 1, length ? folders : ".",
                 name);
        if (is_program(directory, path, &why))
            return strdup(path);
        if (why == EACCES)
            *reason = EACCES;
        folders += length + (folders[length] == ':');
    }
    return NULL;
}

static void program_explain(int directory, const char *program, int reason)
{
    int ignored;
    if (strchr(program, '/'))
        gpsh_cli_say("run", "cannot start '%s': %s", program, strerror(reason));
    else if (reason == EACCES)
        gpsh_cli_say("run", "'%s' is in PATH but not executable", program);
    else if (is_program(directory, program, &ignored))
        gpsh_cli_say("run", "there is no program '%s' in PATH; did you mean ./%s?", program,
                     program);
    else
        gpsh_cli_say("run", "there is no program '%s' in PATH", program);
}

void gpsh_environment_drop(const char *const *prefixes)
{
    char **kept = environ;
    for (char **e = environ; *e; e++) {
        bool drop = false;
        for (const char *const *p = prefixes; *p; p++)
            drop |= strncmp(*e, *p, strlen(*p)) == 0;
        if (!drop)
            *kept++ = *e;
    }
    *kept = NULL;
}

char *gpsh_program_find(const char *program, const char *directory, int *exit_status)
{
    int reason, at = directory ? open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC) : AT_FDCWD;
    *exit_status = EXIT_USAGE;
    if (directory && at < 0) {
        gpsh_cli_say("run", "--wdir '%s' is no directory to start in: %s", directory,
                     strerror(errno));
        return NULL;
    }
    char *found = NULL;
    if (!strchr(program, '/'))
        found = program_search(at, program, getenv("PATH") ? getenv("PATH") : "", &reason);
    else if (is_program(at, program, &reason))
        found = strdup(program);
    if (!found) {
        program_explain(at, program, reason);
        *exit_status = reason == ENOENT || reason == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
    }
    if (directory)
        close(at);
    return found;
}

bool gpsh_child_failed(const struct gpsh_child *c)
{
    return !c->running && (c->how != CLD_EXITED || (c->status != 0 && c->status != c->result));
}

void gpsh_child_signal(const struct gpsh_child *c, int signal)
{
    if (c->pid <= 0)
        return;
    kill(-c->pid, signal);
    if (c->running && getpgid(c->pid) != c->pid)
        kill(c->pid, signal);
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

// ---- Signals that are a question: only who listens gets them ----

enum { CLASSIC_SIGNALS = 0x7fffffff, CANNOT_BE_BLOCKED = 1 << (SIGKILL - 1) | 1 << (SIGSTOP - 1) };

// Who blocks a signal reads it from a signalfd. But shells and C libraries block all of them for an
// instant around a fork: whoever does so runs, and whoever reads all of them sleeps.
static bool takes_blocked(unsigned long long blocked, char state, int signal)
{
    const unsigned long long all = CLASSIC_SIGNALS & ~CANNOT_BE_BLOCKED;
    return blocked >> (signal - 1) & 1 && (state == 'S' || (blocked & all) != all);
}

static bool process_listens(pid_t pid, int signal)
{
    char path[32], line[256], state = 0;
    unsigned long long caught = 0, blocked = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *status = fopen(path, "re");
    if (!status)
        return false; // it has ended
    while (fgets(line, sizeof line, status)) {
        sscanf(line, "State: %c", &state);
        sscanf(line, "SigBlk: %llx", &blocked);
        sscanf(line, "SigCgt: %llx", &caught);
    }
    fclose(status);
    return caught >> (signal - 1) & 1 || takes_blocked(blocked, state, signal);
}

void gpsh_children_ask(pid_t group, int signal)
{
    DIR *proc = opendir("/proc");
    if (!proc)
        return;
    for (const struct dirent *e; (e = readdir(proc));) {
        pid_t pid = isdigit((unsigned char)e->d_name[0]) ? (pid_t)atoi(e->d_name) : 0;
        bool member = pid > 0 && (pid == group || getpgid(pid) == group);
        if (member && process_listens(pid, signal))
            kill(pid, signal);
    }
    closedir(proc);
}
