// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_TRACE_JSON_H
#define GPSH_TRACE_JSON_H

#include <stdbool.h>
#include <stdio.h>

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
// False: no memory. Errors of the file are its own (ferror).
bool gpsh_trace_json_write(FILE *out, const struct gpsh_trace_parts *parts,
                           struct gpsh_trace_outcome *outcome);

#endif
