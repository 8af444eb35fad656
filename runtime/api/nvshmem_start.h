// SPDX-License-Identifier: BSD-3-Clause
// Joining with the processes of an MPI communicator, or of an OpenSHMEM job, whose library the
// program has: its functions are looked for in the process.
#ifndef GPSH_NVSHMEM_START_H
#define GPSH_NVSHMEM_START_H

#include "gpushmem/bootstrap.h"

// `communicator` is the address of an MPI_Comm; NULL: MPI_COMM_WORLD. *out is good until the next
// call of this thread. A negative status with a sentence where there is no MPI, or it is not
// initialised.
int gpsh_nvshmem_mpi(void *communicator, struct gpushmem_bootstrap_functions *out);
// The same for the PEs of an OpenSHMEM job.
int gpsh_nvshmem_shmem(struct gpushmem_bootstrap_functions *out);

#endif
