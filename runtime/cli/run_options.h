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

// One program and its PEs, which follow those of the program before.
struct gpsh_run_app {
    int n_pes;
    const char *directory; // to start in; NULL: the launcher's
    char **program;        // program and its arguments, NULL at the end
    char *path;            // of the program, once it is found
};

enum { GPSH_RUN_MAX_APPS = 64 };

struct gpsh_run_options {
    struct gpsh_run_app apps[GPSH_RUN_MAX_APPS];
    int n_apps;
    int n_pes;               // of all
    int n_nodes;             // pretended nodes
    double timeout_s;        // 0: none
    double grace_s;          // between SIGTERM and SIGKILL
    bool tag_output;         // put "[PE] " in front of each line
    const char *output_file; // output of each PE goes to this name, a dot and its number; or NULL
    bool terminal;           // of its own for PE 0
    bool quiet;              // no messages of the launcher
    unsigned bind;           // of enum gpsh_bind
    int cores;               // for each PE; 0: not said
    bool report_bindings;
    unsigned on_failure; // of enum gpsh_run_on_failure
    char **settings;     // VAR=VALUE strings of -x, NULL at the end
};

// The program that a PE runs.
const struct gpsh_run_app *gpsh_run_app_of(const struct gpsh_run_options *o, int pe);

// True: run the job. False: leave with *exit_status (help was printed, or the command line is wrong
// and was explained). argv is changed.
bool gpsh_run_options_parse(struct gpsh_run_options *o, int argc, char **argv, int *exit_status);

#endif
