// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "core/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/launcher.h"
#include "core/log_file.h"
#include "core/printable.h"

enum { LINE_BYTES = 1024 };

enum gpsh_log_level gpsh_log_threshold = GPSH_LOG_WARN;
static int log_fd = STDERR_FILENO;
static int log_pe = -1;

int gpsh_log_open(enum gpsh_log_level level, const char *file)
{
    gpsh_log_threshold = level;
    if (!file || !*file)
        return 0;
    int fd = gpsh_log_file_open(file);
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
