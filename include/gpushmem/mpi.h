// SPDX-License-Identifier: BSD-3-Clause
// Joining with the processes of an MPI communicator. The program's own mpi.h is used, so that the
// library itself needs no MPI, and works with any.
#ifndef GPUSHMEM_MPI_H
#define GPUSHMEM_MPI_H

#include <mpi.h>

#include "gpushmem/bootstrap.h"

static inline int gpushmem_mpi_rank(void *communicator, int *rank)
{
    return MPI_Comm_rank(*(MPI_Comm *)communicator, rank);
}

static inline int gpushmem_mpi_size(void *communicator, int *n)
{
    return MPI_Comm_size(*(MPI_Comm *)communicator, n);
}

static inline int gpushmem_mpi_broadcast(void *communicator, void *data, size_t bytes)
{
    return MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, *(MPI_Comm *)communicator);
}

// Between MPI_Init and MPI_Finalize, collective over `communicator`: its ranks become the PEs. The
// communicator may be freed afterwards. Errors as of gpushmem_init_attr.
static inline int gpushmem_init_mpi(MPI_Comm communicator)
{
    struct gpushmem_bootstrap_functions functions;
    functions.communicator = &communicator;
    functions.rank = gpushmem_mpi_rank;
    functions.size = gpushmem_mpi_size;
    functions.broadcast = gpushmem_mpi_broadcast;
    return gpushmem_init_with_functions(&functions);
}

#endif
