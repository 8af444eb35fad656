// SPDX-License-Identifier: BSD-3-Clause
// What becomes of a collective call, of the host or of a stream.
#ifndef GPSH_API_COLL_H
#define GPSH_API_COLL_H

#include "comm/coll.h"

enum gpsh_coll_checks {
    GPSH_CHECK_OVERLAP = 1,      // of dest and source
    GPSH_CHECK_ROOTS_SOURCE = 2, // of a broadcast, only the root's source is looked at
};
// Everything but the team, which is there: 0, or a status with a sentence.
int gpsh_coll_check(const struct gpsh_coll *c, unsigned checks);

// ---- GPUSHMEM_CHECK=1: the members of a team compare what they call before they begin ----

// What members must have alike besides function, element size, root and strides.
enum gpsh_coll_alike {
    GPSH_ALIKE_NELEMS = 1,
    GPSH_ALIKE_DEST = 2, // its place in the heap
    GPSH_ALIKE_SOURCE = 4,
};

// All members say what they call: 0, or GPUSHMEM_ERR_ASYMMETRY on all of them with a sentence that
// names the first PE and argument that differ. `status`: what this PE found wrong by itself, which
// is returned here, and told to the others.
int gpsh_coll_compare(const struct gpsh_coll *c, int status, unsigned alike);

// ---- The host's work ----

// Chooses a schedule (stream/coll_choice.h) and runs it. The arguments are right, and not empty.
int gpsh_coll_run(const struct gpsh_coll *c);

#endif
