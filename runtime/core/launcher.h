// SPDX-License-Identifier: BSD-3-Clause
// What `gpushmem run` hands down to its PEs: two descriptors, by inheritance. One is the job's
// segment (bootstrap/job_segment.h), the other this PE's line to the launcher. Nothing of it has a
// name, so nobody who was not started by the launcher can reach it.
#ifndef GPSH_LAUNCHER_H
#define GPSH_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fd_message.h"

// The variable that says which descriptors: "SEGMENT:INODE LINE:INODE", and where the PE's standard
// error is the launcher's business also " DEVICE:INODE" of that. The inodes tell the descriptors
// from others that took their numbers.
#define GPSH_LAUNCHER_JOB "GPUSHMEM_RUN_JOB"

enum gpsh_line_word {
    GPSH_LINE_LOG,    // the text is a line for standard error, without PE and newline
    GPSH_LINE_CALL,   // this PE has waited for long: look what all PEs wait for
    GPSH_LINE_ABORT,  // end the job with exit status a; the text says why
    GPSH_LINE_RESULT, // this PE will exit with status a, about which it has said all, and which is
                      // no failure of the job
    GPSH_LINE_GIVE,   // descriptors for the PEs of this node, in round a of that
    GPSH_LINE_TAKE,   // wants those of round a, of c PEs of this node, b being the first; c 0: has
                      // all
    GPSH_LINE_GIVEN,  // the answer: those of c PEs from number b on, as many of each
    GPSH_LINE_SHARE,  // question a: wants a part of b units in a memory file of this node's PEs,
                      // for use c
    GPSH_LINE_SHARED, // the answer to a, with the file: its part is number b of it; without one:
                      // it gets none
};

// What PEs of a node share a file for. Each of them has a part of it, all of one size; the file
// lives as long as somebody has it open or mapped.
enum gpsh_line_share { GPSH_SHARE_HEAP, GPSH_SHARE_STATIC, GPSH_SHARES };
enum { GPSH_SHARE_UNIT = 4096 }; // bytes

// A message on the line, which is a SOCK_SEQPACKET: this, and after it the text, if there is one.
struct gpsh_line_message {
    int32_t word, a, b, c;
};

enum gpsh_launched {
    GPSH_LAUNCHED,     // by `gpushmem run`
    GPSH_NOT_LAUNCHED, // by something else
    GPSH_CUT_OFF,      // by it, but a process in between has closed the descriptors
};

// Finds the descriptors. They stay the process's.
enum gpsh_launched gpsh_launcher_find(int *segment, int *line);

// Sends a text to the launcher, which prints a sentence that many PEs say once, with their numbers.
// False: print it here, since there is no launcher that takes it, or standard error was redirected
// after the launch. Blocks for a second at most. Any thread.
bool gpsh_launcher_log(const char *text, size_t bytes);

// Calls the launcher to look what all PEs wait for. False, as above: this PE has to. Any thread.
bool gpsh_launcher_call(void);

// Sends a message and n descriptors (at most 4). 0 or an errno: EAGAIN if the launcher has taken
// nothing for a second. Any thread.
int gpsh_launcher_send(int line, const struct gpsh_line_message *head, const char *text,
                       size_t bytes, const int *fds, int n);

// Takes an answer and its descriptors, which are the caller's. How many, at most `most`, which is
// no more than GPSH_LINE_MOST_FDS; 0 also where this process has no room for all of them. Else an
// errno, negative: EPIPE, if the launcher has ended. Blocks. No other thread may read the line.
enum { GPSH_LINE_MOST_FDS = GPSH_FD_MESSAGE_MOST };
int gpsh_launcher_receive(int line, struct gpsh_line_message *answer, int *fds, int most);

#endif
