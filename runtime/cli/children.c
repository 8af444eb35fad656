// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // getpgid, strsignal, O_PATH
#include "children.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
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

bool gpsh_child_check(struct gpsh_child *c)
{
    if (!c->running || !c->ended)
        return false;
    c->running = false;
    return true;
}

bool gpsh_child_failed(const struct gpsh_child *c)
{
    return !c->running && (c->how != CLD_EXITED || c->status != 0);
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
