// SPDX-License-Identifier: BSD-3-Clause
// The launcher's ends of the lines to its PEs (core/launcher.h): what PEs say, and the memory
// descriptors that it hands on between those of a node. Nobody else can reach them; what a process
// of another user says, to which a PE has passed its line on (su), is not heard.
#ifndef GPSH_LINES_H
#define GPSH_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/job_segment.h"
#include "core/launcher.h"
#include "run_options.h"

enum { GPSH_LINE_TEXT = 2047, GPSH_LINE_FDS = 4 };

// A memory file of a node's PEs.
struct gpsh_line_file {
    int fd;        // -1: none
    int32_t units; // of each part
};

struct gpsh_line {
    int fd; // -1: none
    // What this PE has given in `round`, until all PEs of its node have it.
    int32_t round;
    int fds[GPSH_LINE_FDS], n_fds;
    bool has_all; // of its node's
    // What it asks for; `wanted` 0: nothing.
    int32_t wanted_round;
    int first, wanted;
    // The part of a file that it asks for; `units` 0: none.
    int32_t use, units, question;
    bool heard[GPSH_SHARES]; // of the file that is open here; all have: it is closed
    bool ended;              // and asks for nothing any more
    struct gpsh_line_file files[GPSH_SHARES]; // in the line of the node's first PE
};

struct gpsh_lines {
    int epoll; // readable when a PE says something
    int n_pes, n_nodes;
    bool refused; // the kernel took some descriptors not: serve again in a moment
    bool no_room; // some have not come, as too many are open here: PEs wait for them in vain
    struct gpsh_line lines[GPSH_RUN_MAX_PES];
};

// Something that a PE has said, with its text.
typedef void gpsh_line_said_fn(int pe, const struct gpsh_line_message *message, const char *text,
                               void *arg);

// Opens a line for each PE; pe_ends [n_pes] are the PEs' ends, for the caller to close. 0 or an
// errno.
int gpsh_lines_open(struct gpsh_lines *l, int n_pes, int n_nodes, int *pe_ends);
// Takes what is there and passes it on, but for descriptors, which are handed to who asks for them.
// Does not block.
void gpsh_lines_read(struct gpsh_lines *l, gpsh_line_said_fn *said, void *arg);
// A PE has ended: nobody will ask for what it has given.
void gpsh_lines_forget(struct gpsh_lines *l, int pe);

#endif
