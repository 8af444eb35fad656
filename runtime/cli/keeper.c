// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // pipe2, nftw
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALL_WELL = 0 }; // in place of a process group: nobody is left to be killed

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    remove(path);
    return 0;
}

static _Noreturn void keep(int from_launcher, const char *dir)
{
    pid_t *groups = NULL;
    size_t n = 0, room = 0;
    pid_t group;
    ssize_t got;
    while ((got = read(from_launcher, &group, sizeof(group))) != 0) {
        if (got != sizeof(group))
            continue; // interrupted: writes of this size are never split
        if (group == ALL_WELL) {
            n = 0;
            continue;
        }
        if (n == room) {
            pid_t *grown = realloc(groups, (room = room ? 2 * room : 64) * sizeof(*grown));
            if (!grown)
                continue;
            groups = grown;
        }
        groups[n++] = group;
    }
    for (size_t i = 0; i < n; i++)
        kill(-groups[i], SIGKILL);
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(groups);
    _exit(0);
}

int gpsh_keeper_start(struct gpsh_keeper *k, const char *dir)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    k->pid = fork();
    if (k->pid < 0) {
        int error = errno;
        close(ends[0]);
        close(ends[1]);
        return error;
    }
    if (k->pid == 0) {
        // Out of reach of signals to the launcher's process group and terminal, and of pipes others read.
        setsid();
        prctl(PR_SET_NAME, "gpushmem-keeper");
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        int null = open("/dev/null", O_RDWR);
        for (int fd = 0; fd < 3; fd++)
            dup2(null, fd);
        int from_launcher = dup2(ends[0], 3);
        for (int fd = 4; fd < 1024; fd++)
            close(fd);
        keep(from_launcher, dir);
    }
    close(ends[0]);
    k->pipe = ends[1];
    return 0;
}

void gpsh_keeper_finish(struct gpsh_keeper *k)
{
    pid_t message = ALL_WELL;
    while (write(k->pipe, &message, sizeof(message)) < 0 && errno == EINTR)
        continue;
    close(k->pipe);
    while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}
