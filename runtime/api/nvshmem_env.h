// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM's environment variables as settings of gpushmem.
#ifndef GPSH_NVSHMEM_ENV_H
#define GPSH_NVSHMEM_ENV_H

#include <stdbool.h>

// One row of the table (nvshmem_env.def).
struct gpsh_nvshmem_variable {
    const char *name;    // with NVSHMEM_
    const char *way;     // in words, for a reader
    const char *setting; // "" or GPUSHMEM_...
    const char *help;
};

// False: there are not so many.
bool gpsh_nvshmem_variable(int row, struct gpsh_nvshmem_variable *out);

// The settings that NVSHMEM_* variables mean get aliases for the next init; what is unknown or has
// no meaning is logged. GPUSHMEM_ERR_SETTING: a value that is none.
int gpsh_nvshmem_take_environment(void);

// What NVSHMEM_VERSION and NVSHMEM_INFO ask to print.
void gpsh_nvshmem_print_asked(void);

enum gpsh_nvshmem_bootstrap {
    GPSH_NVSHMEM_BY_LAUNCHER,
    GPSH_NVSHMEM_BY_MPI,
    GPSH_NVSHMEM_BY_SHMEM,
};
// What NVSHMEM_BOOTSTRAP asks for.
enum gpsh_nvshmem_bootstrap gpsh_nvshmem_asked_bootstrap(void);

#endif
