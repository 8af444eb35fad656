// SPDX-License-Identifier: BSD-3-Clause
// Uses MPI and this library, each by itself.
#include <gpushmem/gpushmem.h>
#include <mpi.h>

int main(int argc, char **argv)
{
    if (gpushmem_init())
        return 1;
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return gpushmem_finalize() ? 1 : 0;
}
