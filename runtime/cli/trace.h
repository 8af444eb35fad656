// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_CLI_TRACE_H
#define GPSH_CLI_TRACE_H

// Joins the parts of the trace FILE that PEs of this `gpushmem run` have left, and says so. Nothing
// if there are none, or FILE is NULL or empty.
void gpsh_trace_join_left(const char *file, int run_pid);

#endif
