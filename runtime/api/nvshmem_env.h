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

// False if the table has fewer rows.
bool gpsh_nvshmem_variable(int row, struct gpsh_nvshmem_variable *out);

// Gives the settings that NVSHMEM_* variables stand for aliases, for the next init. Logs variables
// that are unknown or have no effect. GPUSHMEM_ERR_SETTING: a value is malformed.
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
