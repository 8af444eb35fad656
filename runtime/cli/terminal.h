// SPDX-License-Identifier: BSD-3-Clause
// The pseudo-terminal of PE 0 (--pty): what is typed goes to it as it is, also Ctrl-C, and what the
// PE writes to it comes out at the launcher's standard output.
#ifndef GPSH_TERMINAL_H
#define GPSH_TERMINAL_H

#include <stdbool.h>
#include <termios.h>

#include "output.h"

struct gpsh_terminal {
    int master;           // -1: none
    bool raw;             // standard input was a terminal, and is to be set back to `saved`
    struct termios saved; // of standard input
};

// Returns the PE's end, for its three standard descriptors, or -1 with errno. If standard input is
// a terminal, the new one has its settings and size, and it hands on every key from now on.
int gpsh_terminal_open(struct gpsh_terminal *t);
// The size of the window has changed.
void gpsh_terminal_resize(const struct gpsh_terminal *t);
// Takes what the PE has written. Does not block. When nobody has the PE's end open any more,
// `master` becomes -1 and standard input is set back: Ctrl-C is the launcher's again.
void gpsh_terminal_read(struct gpsh_terminal *t, struct gpsh_sink *sink);
// Takes what is left, and sets standard input back.
void gpsh_terminal_close(struct gpsh_terminal *t, struct gpsh_sink *sink);

#endif
