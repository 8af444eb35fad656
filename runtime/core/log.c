// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // O_CLOEXEC, O_NOFOLLOW, F_DUPFD_CLOEXEC, makedev
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/launcher.h"
#include "core/printable.h"

enum { LINE_BYTES = 1024 };

enum gpsh_log_level gpsh_log_threshold = GPSH_LOG_WARN;
static int log_fd = STDERR_FILENO;
static int log_pe = -1;

// ---- The file that GPUSHMEM_LOG_FILE names ----
//
// Whoever sets it chooses a name, and others may have put something there first: a pipe that nobody
// reads, a link to a file that is none of theirs.

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

// Opens it for appending, without waiting and without following a link: a regular file of this
// user's with no further name, which is made with mode 0600 if it is not there; a terminal;
// /dev/null; or what this process has open already, as /dev/stderr, /dev/stdout, /dev/fd/N or
// /proc/self/fd/N. -1 with errno otherwise.
static int open_file(const char *name)
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

// ---- The log ----

int gpsh_log_open(enum gpsh_log_level level, const char *file)
{
    gpsh_log_threshold = level;
    if (!file || !*file)
        return 0;
    int fd = open_file(file);
    if (fd < 0)
        return errno;
    gpsh_log_close();
    log_fd = fd;
    return 0;
}

void gpsh_log_set_pe(int pe)
{
    log_pe = pe;
}

void gpsh_log_close(void)
{
    if (log_fd != STDERR_FILENO)
        close(log_fd);
    log_fd = STDERR_FILENO;
}

void gpsh_log_write(enum gpsh_log_level level, const char *subsystem, const char *format, ...)
{
    static const char *const names[] = {"ERROR", "WARN", "INFO", "DEBUG", "TRACE"};
    int saved = errno;
    char line[LINE_BYTES];
    int prefix = log_pe >= 0 ? snprintf(line, sizeof line, "gpushmem[%d] ", log_pe)
                             : snprintf(line, sizeof line, "gpushmem ");
    int used = prefix + snprintf(line + prefix, sizeof line - (size_t)prefix,
                                 "%s %s: ", names[level], subsystem);
    va_list args;
    va_start(args, format);
    int body = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
    va_end(args);
    if (body < 0)
        line[used] = '\0';
    gpsh_printable(line + used, sizeof line - (size_t)used - 1); // one call is one line
    size_t length = strlen(line);
    // Levels above INFO interest only developers; there are too many lines for a detour.
    if (level <= GPSH_LOG_INFO && log_fd == STDERR_FILENO &&
        gpsh_launcher_log(line + prefix, length - (size_t)prefix)) {
        errno = saved;
        return;
    }
    line[length++] = '\n';
    ssize_t ignored = write(log_fd, line, length);
    (void)ignored; // nowhere left to report a failing log
    errno = saved;
}
