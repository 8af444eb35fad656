// SPDX-License-Identifier: BSD-3-Clause
// Passing file descriptors of memory between the PEs of a node. Under `gpushmem run` by way of the
// launcher: each PE gives it its own and takes those of many others at once, over the line that it
// has inherited. Elsewhere by datagrams from PE to PE, over unix sockets in a directory only this
// user can enter; the sender's user is checked for each message.
#ifndef GPSH_FD_EXCHANGE_H
#define GPSH_FD_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

struct gpsh_bootstrap;

enum { GPSH_FDS_MAX = 4, GPSH_FD_PATH_BYTES = 108 };

struct gpsh_fd_exchange {
    bool by_launcher;
    int line;                      // to it
    uint32_t job;                  // among those of the same PEs
    int socket;                    // else of this PE, -1: none
    char path[GPSH_FD_PATH_BYTES]; // of the socket: goes into the PE's blob
    char own_dir[64];              // directory made by us, "" if the launcher's is used
    // Called several times a second while others are waited for, and with `over` when that has
    // ended. NULL: nobody wants to know. May be set after open.
    void (*waits)(bool over);
};

// What one PE hands to each other one.
struct gpsh_fd_set {
    int fds[GPSH_FDS_MAX];
    int count;
    int pid; // received: of the sender, as seen from here; 0 where it cannot be seen
};

// Binds this PE's socket, where one is needed, which a PE that is alone on its node does not: in
// the job's directory on this node or, if there is none or its path is too long, in one of our own.
int gpsh_fd_exchange_open(struct gpsh_fd_exchange *x, const struct gpsh_bootstrap *b,
                          int generation);
// What becomes of the descriptors of pes[index]: they are closed when this returns. After a
// status that is no 0 it is not called again.
typedef int gpsh_fd_take_fn(void *arg, int index, const struct gpsh_fd_set *set);

// How long PEs of a node that all come have to do so: as long as other waits, and never for ever,
// since one that failed before it handed over its memory waits for the others elsewhere.
int gpsh_fd_exchange_ms(const struct gpsh_bootstrap *b);

// Collective over the PEs of this node, which meet in some other way before the next one. Sends
// `mine` to every PE of `pes` (socket paths in `paths`, both [n]; this PE's own entry is skipped)
// and gives theirs to `take` as they come, so that few are open at a time. Waits at most
// timeout_ms; names who is missing then. What fails for one PE's memory is told when the others
// have what they wait for.
int gpsh_fd_exchange_run(struct gpsh_fd_exchange *x, int my_pe, const int *pes,
                         const char *const *paths, int n, const struct gpsh_fd_set *mine,
                         gpsh_fd_take_fn *take, void *arg, int timeout_ms);
void gpsh_fd_exchange_close(struct gpsh_fd_exchange *x); // removes socket and directory

#endif
