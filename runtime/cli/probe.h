// SPDX-License-Identifier: BSD-3-Clause
// A process of its own for what may crash or hang the one that does it.
#ifndef GPSH_PROBE_H
#define GPSH_PROBE_H

#include <stdbool.h>
#include <stddef.h>

struct gpsh_probe {
    int status;      // as waitpid has it
    bool late;       // it was killed at its limit
    char words[768]; // the beginning of what it wrote to its standard output
};

// Calls `run` in a child, whose exit status it returns, and waits for its end. limit_ms 0: without
// a limit. 0 or an errno. There must be no threads, unless `run` calls exec at once.
int gpsh_probe_run(struct gpsh_probe *probe, int (*run)(const void *arg), const void *arg,
                   int limit_ms);

#endif
