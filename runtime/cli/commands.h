// SPDX-License-Identifier: BSD-3-Clause
// The subcommands of the program `gpushmem`. argv[0] is the subcommand's own name; the result is
// the exit status.
#ifndef GPSH_COMMANDS_H
#define GPSH_COMMANDS_H

#include <stdbool.h>

int gpsh_cmd_run(int argc, char **argv);
int gpsh_cmd_info(int argc, char **argv);
int gpsh_cmd_topo(int argc, char **argv);
int gpsh_cmd_doctor(int argc, char **argv);
int gpsh_cmd_perf(int argc, char **argv);
int gpsh_cmd_stat(int argc, char **argv);
int gpsh_cmd_trace(int argc, char **argv);

// GPUs that the CUDA driver finds. With 0 gpushmem_last_error() says why.
int gpsh_cli_gpus(void);

// The table of `gpushmem info --collectives`. The program's exit status.
int gpsh_cli_print_collectives(void);

// The table of `gpushmem info --providers`. The program's exit status.
int gpsh_cli_print_providers(void);

// Prints what a compiler needs to compile and to link, as pkg-config does. 0, or 1 after a
// sentence: this program is not installed beside headers and library.
int gpsh_cli_print_flags(bool compile, bool link);

// What `gpushmem info` says of the machine: GPUs, and ports of RDMA devices with how far these are
// from those.
void gpsh_cli_print_devices(void);

// Joins the job as one of its PEs; PE 0 prints, for readers or as JSON. An exit status.
int gpsh_cli_print_peers(bool json);

// Joins the parts of the trace FILE that PEs of this `gpushmem run` have left, and says so. Nothing
// if there are none, or FILE is NULL or empty.
void gpsh_trace_join_left(const char *file, int run_pid);

#endif
