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

// The keeper is no child of the launcher, so that whoever kills the launcher with all its
// descendants (as CTest does after a time limit) does not reach it, nor do signals to the
// launcher's process group and terminal. It holds no pipe that others read.
static _Noreturn void become_keeper(int from_launcher, int done, const char *dir)
{
    setsid();
    pid_t pid = fork();
    if (pid != 0)
        _exit(pid < 0);
    prctl(PR_SET_NAME, "gpushmem-keeper");
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    // Both pipes to numbers above those that come next, then down again: whatever they were,
    // neither is overwritten.
    int high_in = fcntl(from_launcher, F_DUPFD, 16);
    int high_done = fcntl(done, F_DUPFD, 16);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    dup2(high_in, 3);
    dup2(high_done, 4);
    for (int fd = 5; fd < 1024; fd++)
        close(fd);
    keep(3, dir);
}

int gpsh_keeper_start(struct gpsh_keeper *k, const char *dir)
{
    int to_keeper[2], done[2], status = 0, error = 0;
    if (pipe2(to_keeper, O_CLOEXEC) < 0)
        return errno;
    if (pipe2(done, O_CLOEXEC) < 0) {
        error = errno;
        goto err_close_to_keeper;
    }
    pid_t pid = fork();
    if (pid == 0)
        become_keeper(to_keeper[0], done[1], dir);
    error = pid < 0 ? errno : 0;
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status != 0)
        error = EAGAIN; // the second fork failed
    if (error)
        goto err_close_done;
    close(to_keeper[0]);
    close(done[1]);
    k->pipe = to_keeper[1];
    k->done = done[0];
    return 0;

err_close_done:
    close(done[0]);
    close(done[1]);
err_close_to_keeper:
    close(to_keeper[0]);
    close(to_keeper[1]);
    return error;
}

void gpsh_keeper_finish(struct gpsh_keeper *k)
{
    char nothing;
    pid_t message = ALL_WELL;
    while (write(k->pipe, &message, sizeof(message)) < 0 && errno == EINTR)
        continue;
    close(k->pipe);
    while (read(k->done, &nothing, 1) < 0 && errno == EINTR)
        continue;
    close(k->done);
}
