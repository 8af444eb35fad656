// SPDX-License-Identifier: BSD-3-Clause
// The end of a job that no launcher can end: each PE ends its own process, as a launcher would.
#ifndef GPSH_TCP_END_H
#define GPSH_TCP_END_H

#include <stdbool.h>
#include <stdint.h>

struct gpsh_tcp_end {
    bool ordered;
    bool by_exit; // gpushmem_global_exit: exit status `status` at once; else SIGTERM, SIGKILL later
    int status;
    int steps; // that were done
    uint64_t next_ns;
};

// The first order counts, and an exit ordered before anything was done: the PE that called it has
// exited, and others may have taken that for a failure. Returns whether this one counts.
bool gpsh_tcp_end_order(struct gpsh_tcp_end *end, bool by_exit, int status);
// Does what is due. Returns in how many ms to call it again, -1: nothing was ordered.
int gpsh_tcp_end_step(struct gpsh_tcp_end *end);

#endif
