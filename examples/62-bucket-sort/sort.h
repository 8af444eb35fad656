// SPDX-License-Identifier: BSD-3-Clause
// What the parts of the example share.
#ifndef BUCKET_SORT_SORT_H
#define BUCKET_SORT_SORT_H

#include <stdbool.h>
#include <stdint.h>

// The most PEs: static arrays have an element for each.
enum { MAX_PES = 1024 };

// Key i of a PE. `kind` is one of keys_kinds; -1 if there is no such.
extern const char *const keys_kinds; // for people
int keys_kind(const char *name);
uint32_t keys_make(int kind, int pe, long i);

// Sorts on this PE. `scratch` has room for as many keys.
void keys_sort(uint32_t *keys, uint32_t *scratch, long count);

// Where the keys of a PE, sorted, are to be cut: keys cut[p] .. cut[p + 1] - 1 go to PE p.
// Collective. 0 or a negative status.
int split_by_range(const uint32_t *keys, long count, long *cut);
int split_by_sample(const uint32_t *keys, long count, long *cut);

// Symmetric: the keys that a PE has in the end, in order.
struct sorted {
    uint32_t *keys;
    long count, least, most; // here; on the PEs with the fewest and the most
};
// Collective. 0 or a negative status.
int exchange(const uint32_t *keys, const long *cut, struct sorted *s);

// Whether the keys are in order from PE 0 to the last, and are those that were made: by their
// number and a checksum, and with `serially` by sorting all of them on PE 0. Says on stderr what is
// wrong. Collective. 0 or a negative status.
int check_sorted(const struct sorted *s, int kind, long count, bool serially, bool *good);

#endif
