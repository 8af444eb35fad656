// SPDX-License-Identifier: BSD-3-Clause
// From the parts of a trace that the PEs left to one file: FILE.0.part, FILE.1.part, ... become
// FILE, which https://ui.perfetto.dev and chrome://tracing load.
#ifndef GPSH_TRACE_MERGE_H
#define GPSH_TRACE_MERGE_H

#include "observe/trace_json.h"

// Writes FILE and deletes the parts. If FILE has been written since the job began, by another job
// of the same GPUSHMEM_TRACE, it stays, and the trace is written beside it (`outcome->file`). With
// `complete` it does so only if the part of every PE is there. A negative status with a sentence:
// FILE is as it was, and the parts are left. `outcome` says what the file has; n_parts 0: there are
// no parts, and nothing was done.
int gpsh_trace_merge(const char *file, const struct gpsh_trace_pick *pick, bool complete,
                     struct gpsh_trace_outcome *outcome);
// "the trace of 4 PEs is in t.json; PE ...", for a person.
void gpsh_trace_outcome_print(const char *file, const struct gpsh_trace_outcome *outcome,
                              char *text, size_t bytes);

#endif
