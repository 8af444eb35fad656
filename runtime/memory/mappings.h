// SPDX-License-Identifier: BSD-3-Clause
// What is mapped into this process, as /proc/self/maps tells it.
#ifndef GPSH_MAPPINGS_H
#define GPSH_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

struct gpsh_mapping {
    uint64_t first, end;
    char rights[8]; // "rw-p"
    uint64_t offset, inode;
    unsigned major, minor; // device of the file
    const char *name;      // path, "[stack]" or "": valid during the visit
};

// Calls `visit` for each mapping that has a byte of [first, end), by address, until it returns
// false. 0 or an errno. Takes no memory, so that children of a process with threads may call it.
typedef bool gpsh_mapping_fn(const struct gpsh_mapping *mapping, void *arg);
int gpsh_mappings_visit(uint64_t first, uint64_t end, gpsh_mapping_fn *visit, void *arg);

// Whether it is the file `fd`, and `at` shows the file's byte `offset`.
bool gpsh_mapping_shows(const struct gpsh_mapping *mapping, int fd, uint64_t at, uint64_t offset);

#endif
