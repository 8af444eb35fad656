// SPDX-License-Identifier: BSD-3-Clause
// A program of MPI that joins by its communicator, with attributes that nobody initialised; then
// again by a part of it, in another order.
#include <mpi.h>

#include "nvshmem_check.h"

static void join(MPI_Comm comm)
{
    nvshmemx_init_attr_t attr;
    int rank, size;
    memset(&attr, 0xaa, sizeof attr);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    attr.mpi_comm = &comm;
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attr) == 0);
    CHECK(nvshmem_my_pe() == rank && nvshmem_n_pes() == size);
    long *word = (long *)nvshmem_calloc(1, sizeof(long));
    nvshmem_long_atomic_add(word, rank + 1, 0);
    nvshmem_barrier_all();
    CHECK(nvshmem_long_g(word, 0) == size * (size + 1) / 2);
    nvshmem_barrier_all();
    nvshmem_free(word);
    nvshmem_finalize();
}

int main(int argc, char **argv)
{
    nvshmemx_init_attr_t attr;
    attr.mpi_comm = NULL;
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attr) == NVSHMEMX_ERROR_INTERNAL);
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    join(MPI_COMM_WORLD);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    join(half);
    MPI_Comm_free(&half);
    printf("pe %d of %d: ok\n", rank, size);
    MPI_Finalize();
}
