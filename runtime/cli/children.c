// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // getpgid, strsignal
#include "children.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "say.h"

enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

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
