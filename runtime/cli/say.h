// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_SAY_H
#define GPSH_SAY_H

#include <stddef.h>

// Where gpsh_cli_say writes from now on: to `take`, or with NULL to stderr, in one write.
void gpsh_cli_redirect(void (*take)(const char *line, size_t bytes, void *arg), void *arg);

// "gpushmem run: text" and a newline.
void gpsh_cli_say(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// The same of the thread's last failure. Returns the exit status 1.
int gpsh_cli_fail(const char *command);

#endif
