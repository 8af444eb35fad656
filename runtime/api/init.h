// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_INIT_H
#define GPSH_INIT_H

#include <stdbool.h>

#include "gpushmem/bootstrap.h"
#include "gpushmem/types.h"

// How to join: by the launcher if `id` is NULL.
struct gpsh_join {
    const struct gpushmem_uniqueid *id;
    int rank, n_pes;
    // If the library would have to choose a GPU, join the job and leave the rest to
    // gpsh_init_complete: the program may choose one meanwhile.
    bool in_two_steps;
};

// Opens what is closed of the descriptors 0 to 2, so that nothing of the library takes their place.
int gpsh_init_standard_streams(void);

// What all public inits do; `function` is for sentences.
int gpsh_init_as(const char *function, const struct gpsh_join *join,
                 enum gpushmem_thread_level requested, int *provided);

// True after the first of two steps: gpsh_job()->boot knows the PEs, and nothing else works.
bool gpsh_init_is_partial(void);
// The second step; nothing if there is none to make. Collective. After a failure the PE has left.
int gpsh_init_complete(void);

// From now on this process may end with status 0 and without finalize, and that is no failure.
void gpsh_init_may_exit(void);

// How to join by `attr`, whose size was looked at.
int gpsh_init_by_attr(const struct gpushmem_init_attr *attr, bool in_two_steps);

#endif
