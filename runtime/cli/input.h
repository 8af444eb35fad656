// SPDX-License-Identifier: BSD-3-Clause
// Standard input of PE 0. A file or a pipe is handed to the PE as it is. A terminal is read by the
// launcher and copied into a pipe, because the PE is in a background process group, which may not
// read it.
#ifndef GPSH_INPUT_H
#define GPSH_INPUT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct gpsh_input {
    int to_pe;     // -1: nothing to copy (any more)
    bool terminal; // to_pe is one: its end of file is a character
    char text[4096];
    size_t bytes, sent;
};

// Returns the descriptor for PE 0 (to be closed by the caller), or -1: let it inherit.
int gpsh_input_open(struct gpsh_input *in);
// Copies whatever standard input is to the master of a pseudo-terminal.
void gpsh_input_to_terminal(struct gpsh_input *in, int master);
// What to poll for now; .fd is -1 for nothing.
struct pollfd gpsh_input_wants(const struct gpsh_input *in);
void gpsh_input_step(struct gpsh_input *in);
void gpsh_input_close(struct gpsh_input *in);

#endif
