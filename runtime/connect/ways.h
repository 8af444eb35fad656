// SPDX-License-Identifier: BSD-3-Clause
// Which transports of GPUSHMEM_TRANSPORTS this PE opens: those that are needed to reach the others.
// All of it at init, by the thread that initialises.
#ifndef GPSH_WAYS_H
#define GPSH_WAYS_H

#include <stdbool.h>

struct gpsh_ways {
    char spared[64]; // those left aside for now, as GPUSHMEM_TRANSPORTS writes them
    bool apart;      // PEs of this node do not reach each other's heaps
};

void gpsh_ways_begin(struct gpsh_ways *ways);
// Opens those of the list `names` that are needed, or all, and notes the others in `spared`. One
// that is not there is no error, but to have none is: a negative status, and the sentence is set.
int gpsh_ways_open(struct gpsh_ways *ways, const char *names, bool all);
// The sentences of those that could not be opened, "" if there are none. Valid until the next
// begin.
const char *gpsh_ways_failures(void);

// Whether the process of that PE is known to live: peer_lives of transport.h. After init.
bool gpsh_peer_lives(int pe);

#endif
