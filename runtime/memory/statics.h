// SPDX-License-Identifier: BSD-3-Clause
// Static data of the main program as symmetric memory: its pages are moved into a file that the
// node's PEs map, once in the life of the process. docs/design/memory.md.
#ifndef GPSH_STATICS_H
#define GPSH_STATICS_H

#include <stdint.h>

struct gpsh_statics {
    char *base;  // NULL: not shared
    char *alias; // the same pages again: what is done to it, as by a NIC's library, spares base
    uint64_t bytes;
    uint64_t id; // of the program
    int fd;
    uint32_t file; // of the file that the node's PEs share for it, 0: one of its own
    uint64_t part; // bytes of each PE's part of that
    uint64_t at;   // where it begins in the file
};

// Shares them if they are not yet, as GPUSHMEM_STATIC_DATA says: 0, and NULL in `base` with a
// reason (gpsh_statics_why) if that is impossible and not demanded. heap_bytes: of this PE's heap.
int gpsh_statics_share(uint64_t heap_bytes, const struct gpsh_statics **out);

// Why static data is not symmetric, as the end of a sentence; "" if it is.
const char *gpsh_statics_why(void);
void gpsh_statics_refuse(const char *why);

#endif
