// SPDX-License-Identifier: BSD-3-Clause
// What the PEs have published about themselves: kept packed, as it came, while they are wired up,
// and what follows from all of it. Every PE reads the same, so all draw the same conclusions, and
// nobody has to ask again.
#ifndef GPSH_RECORDS_H
#define GPSH_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/peer_blob.h"

struct gpsh_bootstrap;

struct gpsh_record {
    void *packed; // NULL: not read yet
    size_t bytes;
};

struct gpsh_records {
    int n_pes;
    struct gpsh_record *of; // [n_pes]
    // What they have in common; -1: there is no such PE.
    int without_atomics; // first whose NIC executes none
    int other_static;    // first whose static data is not that of PE 0, or is not shared
    int least_heap;      // first with the smallest heap of those to which nobody gave a size
    int most_heap;       // the same, the largest
    uint64_t page_bytes; // of symmetric host memory, the largest: a multiple of all of them
    bool any_nic;
    uint32_t ways; // bit i: gpsh_transports[i] is open on every PE
};

// Of no PE yet. GPUSHMEM_ERR_NO_MEMORY.
int gpsh_records_open(struct gpsh_records *records, int n_pes);
void gpsh_records_close(struct gpsh_records *records); // all zero is legal
// Reads everybody's of this round, whatever was read before. `check` sees each in the order of PEs;
// what it returns ends the reading.
typedef int gpsh_record_check(void *arg, const struct gpsh_peer_blob *blob);
int gpsh_records_read(struct gpsh_records *records, struct gpsh_bootstrap *boot,
                      gpsh_record_check *check, void *arg);
// That of `pe`, which was read. It points into the records.
struct gpsh_peer_blob gpsh_records_get(const struct gpsh_records *records, int pe);

#endif
