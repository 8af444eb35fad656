// SPDX-License-Identifier: BSD-3-Clause
// The subcommands of the program `gpushmem`. argv[0] is the subcommand's own name; the result is
// the exit status.
#ifndef GPSH_COMMANDS_H
#define GPSH_COMMANDS_H

#include <stddef.h>

int gpsh_cmd_run(int argc, char **argv);
int gpsh_cmd_info(int argc, char **argv);
int gpsh_cmd_topo(int argc, char **argv);
int gpsh_cmd_doctor(int argc, char **argv);
int gpsh_cmd_perf(int argc, char **argv);
int gpsh_cmd_stat(int argc, char **argv);
int gpsh_cmd_trace(int argc, char **argv);

// GPUs that the CUDA driver finds. With 0 gpushmem_last_error() says why.
int gpsh_cli_gpus(void);

#endif
