// SPDX-License-Identifier: BSD-3-Clause
// What the library says in the PEs (core/launcher_log.h). Lines wait for a moment, so that a
// sentence which many PEs say is printed once: "gpushmem[0-63] WARN ...".
#ifndef GPSH_CHORUS_H
#define GPSH_CHORUS_H

#include <stdbool.h>
#include <stddef.h>

struct gpsh_chorus_line {
    char *text;
    bool *said; // [n_pes] by whom
};

struct gpsh_chorus {
    int fd; // a datagram socket; -1: none
    int n_pes;
    char path[108];
    struct gpsh_chorus_line *lines;
    int n, room;
    bool called;            // a PE has waited for long; the reader sets it back
    double first_s, last_s; // monotonic times of what is waiting
};

// Makes the socket in `dir`. Without one (which is no error) PEs print for themselves.
void gpsh_chorus_open(struct gpsh_chorus *c, const char *dir, int n_pes);
// Value of GPSH_LAUNCHER_LOG for a PE whose standard error is `fd`. False: leave it unset.
bool gpsh_chorus_address(const struct gpsh_chorus *c, int fd, char *text, size_t bytes);
// Takes what has arrived.
void gpsh_chorus_read(struct gpsh_chorus *c);
// When the waiting lines are to be printed (monotonic seconds); 0: none wait.
double gpsh_chorus_due_s(const struct gpsh_chorus *c);
// Passes all waiting lines to `print`, each with its newline, in the order in which each was first
// said.
void gpsh_chorus_print(struct gpsh_chorus *c,
                       void (*print)(const char *line, size_t bytes, void *arg), void *arg);
void gpsh_chorus_close(struct gpsh_chorus *c);

#endif
