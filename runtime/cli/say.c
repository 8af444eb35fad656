// SPDX-License-Identifier: BSD-3-Clause
#include "say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/printable.h"

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
    if (more < 0)
        line[used] = '\0';
    gpsh_printable(line, sizeof(line) - 1); // it may repeat what a PE, a file or a setting says
    size_t length = strlen(line);
    line[length++] = '\n';
    if (redirection.take) {
        redirection.take(line, length, redirection.arg);
    } else if (write(STDERR_FILENO, line, length) < 0) {
        // Nobody is left to be told.
    }
    errno = saved_errno;
}

int gpsh_cli_fail(const char *command)
{
    gpsh_cli_say(command, "%s", gpsh_last_error());
    return 1;
}
