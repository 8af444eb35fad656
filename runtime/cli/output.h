// SPDX-License-Identifier: BSD-3-Clause
// The output of the PEs with --tag-output: read through pipes, written as whole lines with the PE
// in front.
#ifndef GPSH_OUTPUT_H
#define GPSH_OUTPUT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

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

#endif
