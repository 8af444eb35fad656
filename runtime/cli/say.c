// SPDX-License-Identifier: BSD-3-Clause
#include "say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static struct {
    void (*take)(const char *line, size_t bytes, void *arg);
    void *arg;
} redirection;

void gpsh_cli_redirect(void (*take)(const char *line, size_t bytes, void *arg), void *arg)
{
    redirection.take = take;
    redirection.arg = arg;
}

void gpsh_cli_say(const char *command, const char *format, ...)
{
    char line[1024];
    int saved_errno = errno;
    int used = snprintf(line, sizeof(line), "gpushmem %s: ", command);

    va_list args;
    va_start(args, format);
    int more = vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, args);
    va_end(args);
    size_t length = (size_t)used + (more < 0 ? 0 : (size_t)more);
    if (length > sizeof(line) - 2)
        length = sizeof(line) - 2;
    line[length++] = '\n';
    if (redirection.take) {
        redirection.take(line, length, redirection.arg);
    } else if (write(STDERR_FILENO, line, length) < 0) {
        // Nobody is left to be told.
    }
    errno = saved_errno;
}
