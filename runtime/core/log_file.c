// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // O_CLOEXEC, O_NOFOLLOW, F_DUPFD_CLOEXEC, makedev
#include "core/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

// The descriptor that such a name stands for, or -1.
static int own_descriptor(const char *name)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(name, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(name, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char *end;
        size_t length = strlen(folders[i]);
        if (strncmp(name, folders[i], length) != 0 || name[length] < '0' || name[length] > '9')
            continue;
        long fd = strtol(name + length, &end, 10);
        if (!*end && fd <= INT_MAX)
            return (int)fd;
    }
    return -1;
}

static bool is_acceptable(int fd, const struct stat *st)
{
    if (S_ISREG(st->st_mode))
        return st->st_uid == geteuid() && st->st_nlink == 1;
    return S_ISCHR(st->st_mode) && (isatty(fd) || st->st_rdev == makedev(1, 3)); // /dev/null
}

int gpsh_log_file_open(const char *name)
{
    struct stat st;
    int own = own_descriptor(name);
    if (own >= 0)
        return fcntl(own, F_DUPFD_CLOEXEC, 3);
    int fd = open(
        name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && is_acceptable(fd, &st) && fcntl(fd, F_SETFL, O_APPEND) == 0)
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}
