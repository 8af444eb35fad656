// SPDX-License-Identifier: BSD-3-Clause
// Lines of the log by way of the launcher, which prints a sentence that many PEs say once, with
// their numbers.
#ifndef GPSH_LAUNCHER_LOG_H
#define GPSH_LAUNCHER_LOG_H

#include <stdbool.h>
#include <stddef.h>

// The variable in which `gpushmem run` tells the PEs where to send: "DEVICE:INODE:PATH" of the
// standard error that the launcher gave to the PE, and of a datagram socket.
#define GPSH_LAUNCHER_LOG "GPUSHMEM_RUN_LOG"

// A datagram: this, and after it the text without the PE and without a newline. No text: a call.
struct gpsh_launcher_line {
    int pe;
    char text[];
};

// Calls the launcher to look what all PEs wait for: this one has waited for long. False: there is
// none that listens.
bool gpsh_launcher_log_call(int pe);

// Sends a text of PE `pe` (negative: not known yet, then as GPUSHMEM_RUN_PE says). False: print it
// here, since there is no launcher that takes it, or standard error was redirected after the
// launch. Blocks for a second at most. Any thread; keeps nothing open.
bool gpsh_launcher_log_send(int pe, const char *text, size_t bytes);

#endif
