// SPDX-License-Identifier: BSD-3-Clause
// One memory file for the PEs of a node, of which each has a part: all parts are mapped at once,
// where files of their own would be handed to each PE and mapped one by one. The launcher makes it,
// so only jobs of `gpushmem run` have such files, and only where there are many PEs for each
// processor.
#ifndef GPSH_NODE_MEMORY_H
#define GPSH_NODE_MEMORY_H

#include <stdint.h>

#include "core/launcher.h"

struct gpsh_bootstrap;

struct gpsh_node_memory {
    int fd;        // the caller's; -1: there is none
    uint32_t id;   // not 0: tells whether another PE's part is in the same file
    uint64_t part; // bytes of each part; those of the node's PEs follow each other in the file
    uint64_t at;   // where this PE's begins
};

// Asks for `bytes` for this PE, which are zero, and rounded up to a multiple of 2 MiB. Each use is
// asked for equally often by the PEs of a node. None: this PE, or all, have to do without. A
// negative status if a PE dies meanwhile, or the launcher does not answer. No other thread may read
// from the launcher's line.
int gpsh_node_memory_ask(const struct gpsh_bootstrap *b, enum gpsh_line_share use, uint64_t bytes,
                         struct gpsh_node_memory *out);

#endif
