// SPDX-License-Identifier: BSD-3-Clause
// The boards (board.h) of other processes of this user on this host. Who writes one may be hostile,
// and may change it at any time: only a copy is judged and used, once. A copy that is handed out
// has numbers in their ranges and texts that may be printed (core/printable.h).
#ifndef GPSH_BOARDS_H
#define GPSH_BOARDS_H

#include <stdbool.h>
#include <sys/types.h>

#include "observe/board.h"

struct gpsh_boards {
    int n;
    struct gpsh_board_copy {
        struct gpsh_board *board; // with its counters
        pid_t pid;                // as /proc here has it
        int fd;                   // of the board, for gpsh_boards_again
    } * list;                     // [n]
    int others;                   // that were wanted, and are of another version
};

typedef bool gpsh_board_wanted(const struct gpsh_board *board, pid_t pid, const void *arg);
// `job`: its name, as its PEs know it or as gpsh_boards_read gives it.
bool gpsh_board_is_of_job(const struct gpsh_board *board, pid_t pid, const void *job);

// Copies the boards that `wanted` accepts (NULL: all), sorted by job and PE. Returns 0, or
// GPUSHMEM_ERR_NO_MEMORY or GPUSHMEM_ERR_SYSTEM with a sentence; call gpsh_boards_free in either
// case. Reads links below /proc, of processes of this user only, and stops none of them. Any
// thread.
int gpsh_boards_read(struct gpsh_boards *out, gpsh_board_wanted *wanted, const void *arg);
// Copies the boards anew. Their descriptors keep the boards of processes that have ended.
void gpsh_boards_again(struct gpsh_boards *boards);
// Whether the process still shows its board: it runs, and has not finalized since.
bool gpsh_boards_alive(const struct gpsh_boards *boards, int i);
void gpsh_boards_free(struct gpsh_boards *boards);

// The wait of the board that has lasted longest, NULL: none. One for a kernel that may compute
// counts if there is no other, and from a second on.
const struct gpsh_wait_record *gpsh_board_longest_wait(const struct gpsh_board *board);

#endif
