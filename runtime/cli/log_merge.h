// SPDX-License-Identifier: BSD-3-Clause
// What the library says in the PEs. Lines wait for a moment, so that a sentence which many PEs say
// is printed once: "gpushmem[0-63] WARN ...".
#ifndef GPSH_LOG_MERGE_H
#define GPSH_LOG_MERGE_H

#include <stdbool.h>
#include <stddef.h>

#include "run_options.h"

enum { GPSH_LOG_MERGE_MOST = 256 }; // lines that wait; then they are to be printed at once

struct gpsh_log_merge {
    int n_pes, n;
    double first_s, last_s; // monotonic times of what is waiting
    struct gpsh_log_merge_line {
        char *text;
        bool own; // the launcher's
        bool said[GPSH_RUN_MAX_PES];
    } lines[GPSH_LOG_MERGE_MOST];
};

// A line of a PE, without PE and newline.
void gpsh_log_merge_add(struct gpsh_log_merge *m, int pe, const char *text);
// A line of the launcher, with its newline, to come after those that wait. False: it cannot wait.
bool gpsh_log_merge_add_own(struct gpsh_log_merge *m, const char *text, size_t bytes);
// When the waiting lines are to be printed (monotonic seconds); 0: none wait.
double gpsh_log_merge_due_s(const struct gpsh_log_merge *m);
// Passes all waiting lines to `print`, each with its newline, in the order in which each was first
// said.
void gpsh_log_merge_print(struct gpsh_log_merge *m,
                          void (*print)(const char *line, size_t bytes, void *arg), void *arg);

#endif
