// SPDX-License-Identifier: BSD-3-Clause
// OpenSHMEM's environment variables as settings of gpushmem.
#ifndef GPSH_SHMEM_ENV_H
#define GPSH_SHMEM_ENV_H

// Gives the settings that SHMEM_* variables stand for aliases, for the next init.
// GPUSHMEM_ERR_SETTING: a value is malformed.
int gpsh_shmem_take_environment(void);

#endif
