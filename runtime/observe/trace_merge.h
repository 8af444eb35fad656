// SPDX-License-Identifier: BSD-3-Clause
// From the parts of a trace that the PEs left to one file: FILE.0.part, FILE.1.part, ... become
// FILE, which https://ui.perfetto.dev and chrome://tracing load.
#ifndef GPSH_TRACE_MERGE_H
#define GPSH_TRACE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "observe/trace_parts.h"

struct gpsh_trace_outcome {
    int n_parts, n_pes;
    int unfinished;   // parts whose PE has not come to finalize
    uint64_t records; // in the file
    uint64_t dropped; // older ones, overwritten
    int threads_left_out;
    int refused; // files beside them that are no parts, or damaged ones
    char why[256];
    int others;     // further jobs that have left parts
    bool elsewhere; // `file` is not the one asked for
    char file[512]; // that has the trace
};

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
