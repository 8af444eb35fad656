// SPDX-License-Identifier: BSD-3-Clause
// Starts this program again as a job.
#ifndef PERF_LAUNCH_H
#define PERF_LAUNCH_H

#include <stdbool.h>

bool perf_is_launched(void);
// Becomes `gpushmem run -n pes -- this program argv...`, each PE on a core of its own if `bind` and
// if there are so many. Returns the exit status if that fails.
int perf_launch(int pes, bool bind, char **argv);
// This program, a PE, has said all about the status with which it will exit: `gpushmem run` adds
// nothing.
void perf_tell_result(int exit_status);

#endif
