// SPDX-License-Identifier: BSD-3-Clause
// The command line of `gpushmem run`.
#ifndef GPSH_RUN_OPTIONS_H
#define GPSH_RUN_OPTIONS_H

#include <stdbool.h>

enum { GPSH_RUN_MAX_PES = 4096, GPSH_RUN_EXIT_TIMEOUT = 124 };

enum gpsh_run_on_failure {
    GPSH_RUN_ON_FAILURE_ABORT,
    GPSH_RUN_ON_FAILURE_CONTINUE,
    GPSH_RUN_ON_FAILURE_UNSET
};

struct gpsh_run_options {
    int n_pes;
    int n_nodes;         // pretended nodes
    double timeout_s;    // 0: none
    double grace_s;      // between SIGTERM and SIGKILL
    bool tag_output;     // put "[PE] " in front of each line
    bool quiet;          // no messages of the launcher
    unsigned bind_cores; // 0 or 1
    unsigned on_failure; // of enum gpsh_run_on_failure
    char **settings;     // VAR=VALUE strings of -x, NULL at the end; owned
    char **program;      // program and its arguments, NULL at the end
};

// True: run the job. False: leave with *exit_status (help was printed, or the command line is wrong
// and was explained).
bool gpsh_run_options_parse(struct gpsh_run_options *o, int argc, char **argv, int *exit_status);
void gpsh_run_options_release(struct gpsh_run_options *o);

#endif
