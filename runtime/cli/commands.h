// SPDX-License-Identifier: BSD-3-Clause
// The subcommands of the program `gpushmem`. argv[0] is the subcommand's own name; the result is
// the exit status.
#ifndef GPSH_COMMANDS_H
#define GPSH_COMMANDS_H

#include <stddef.h>

int gpsh_cmd_run(int argc, char **argv);
int gpsh_cmd_info(int argc, char **argv);
int gpsh_cmd_perf(int argc, char **argv);

// GPUs that the CUDA driver finds. With 0 gpushmem_last_error() says why.
int gpsh_cli_gpus(void);

// Where gpsh_cli_say writes from now on: to `take`, or with NULL to stderr, in one write.
void gpsh_cli_redirect(void (*take)(const char *line, size_t bytes, void *arg), void *arg);

// "gpushmem run: text" and a newline.
void gpsh_cli_say(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
