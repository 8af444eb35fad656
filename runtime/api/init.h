// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_INIT_H
#define GPSH_INIT_H

#include "gpushmem/bootstrap.h"
#include "gpushmem/types.h"

// How to join: by the launcher if `id` is NULL.
struct gpsh_join {
    const struct gpushmem_uniqueid *id;
    int rank, n_pes;
};

// Opens what is closed of the descriptors 0 to 2, so that nothing of the library takes their place.
int gpsh_init_standard_streams(void);

// What all public inits do; `function` is for sentences.
int gpsh_init_as(const char *function, const struct gpsh_join *join,
                 enum gpushmem_thread_level requested, int *provided);

#endif
