// SPDX-License-Identifier: BSD-3-Clause
// The standard streams of the PEs, as far as they pass through the launcher.
#ifndef GPSH_STREAMS_H
#define GPSH_STREAMS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

// The output of the PEs with --tag-output: read through pipes, written as whole lines with the PE
// in front.

// Where lines go: standard output or standard error of the launcher. Text waits for slow readers.
// Where both are the same file, pipe or terminal, all lines go through one sink: two would tear
// each other's lines.
struct gpsh_sink {
    int fd;
    char *text;
    size_t bytes, sent, room;
    bool broken; // nobody reads any more
    int error;   // an errno: text was lost, first for this reason
};

// One stream of one PE.
struct gpsh_stream {
    int fd; // -1: ended
    int pe;
    struct gpsh_sink *sink;
    char *line; // the unfinished one
    size_t bytes, room;
};

// Makes a pipe. Returns the end for the PE, or -1 with errno.
int gpsh_stream_open(struct gpsh_stream *s, int pe, struct gpsh_sink *sink);
// Whether there is room for more: a stream is not read while its sink is full, so that the PE waits
// as on a pipe.
bool gpsh_stream_wanted(const struct gpsh_stream *s);
// Takes what is there. At the end of file an unfinished line is finished.
void gpsh_stream_read(struct gpsh_stream *s);
// Takes what is still in the pipe and closes it, also while somebody holds the other end.
void gpsh_stream_close(struct gpsh_stream *s);

// Whether two descriptors lead to the same place.
bool gpsh_sink_is_shared(int fd, int other);

// A sink at standard output or error. A pipe is opened once more, so that writing does not block
// even if others fill it at the same time: O_NONBLOCK belongs to all who share a descriptor.
void gpsh_sink_open(struct gpsh_sink *k, int fd);
void gpsh_sink_close(struct gpsh_sink *k);
// Adds a text that ends with a newline after all lines that are waiting.
void gpsh_sink_add(struct gpsh_sink *k, const char *text, size_t bytes);
bool gpsh_sink_has_room(const struct gpsh_sink *k);
bool gpsh_sink_pending(const struct gpsh_sink *k);
// Writes as much as goes without blocking, given that poll said it is writable.
void gpsh_sink_write(struct gpsh_sink *k);
void gpsh_sink_flush(struct gpsh_sink *k);

// ---- Standard input ----

// Standard input of PE 0. A file or a pipe is handed to the PE as it is. A terminal is read by the
// launcher and copied into a pipe, because the PE is in a background process group, which may not
// read it.

struct gpsh_input {
    struct gpsh_sink to_pe; // .fd -1: nothing to copy (any more)
    bool terminal;          // to_pe is one: its end of file is a character
};

// Returns the descriptor for PE 0 (to be closed by the caller), or -1: let it inherit.
int gpsh_input_open(struct gpsh_input *in);
// Copies whatever standard input is to the master of a pseudo-terminal.
void gpsh_input_to_terminal(struct gpsh_input *in, int master);
// What to poll for now; .fd is -1 for nothing.
struct pollfd gpsh_input_wants(const struct gpsh_input *in);
void gpsh_input_step(struct gpsh_input *in);
void gpsh_input_close(struct gpsh_input *in);

// ---- The terminal of PE 0 ----

// The pseudo-terminal of PE 0 (--pty): what is typed goes to it as it is, also Ctrl-C, and what the
// PE writes to it comes out at the launcher's standard output.

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
