// SPDX-License-Identifier: BSD-3-Clause
// Large reductions go a piece at a time: sources are brought to where the processor reads them.
#ifndef GPSH_COLL_PIECE_H
#define GPSH_COLL_PIECE_H

#include "comm/coll.h"

// A piece at a time, with room for what has to be fetched.
struct gpsh_piece {
    const struct gpsh_coll *c;
    size_t most;   // elements of a piece
    char *out;     // results: `outs` pieces
    char *fetched; // sources: n pieces
    char *memory;  // to be freed
};

// The members are in the operation already: without memory the pieces become small, but fails if
// one would have fewer than `least` elements.
int gpsh_piece_begin(struct gpsh_piece *p, const struct gpsh_coll *c, size_t outs, size_t least);
// views[k] becomes nelems elements from `at` (bytes) on of object `sym` of ranks[k], or of rank k.
int gpsh_piece_gather(struct gpsh_piece *p, const int *ranks, int count, const char *sym, size_t at,
                      size_t nelems);
// The same of the operation's source and all ranks.
int gpsh_piece_read(struct gpsh_piece *p, size_t at, size_t nelems);
// The elements that a rank folds of an operation on all of them.
void gpsh_piece_share(const struct gpsh_coll *c, int rank, size_t *first, size_t *last);

// The error of an operation in place that could not keep `bytes` of its source.
int gpsh_piece_no_copy(const struct gpsh_coll *c, size_t bytes);

// Members meet, share the work, with room for `outs` results each, and leave together.
int gpsh_piece_run(const struct gpsh_coll *c, size_t outs, int (*share)(struct gpsh_piece *));

#endif
