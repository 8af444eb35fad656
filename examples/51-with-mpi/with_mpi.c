// SPDX-License-Identifier: BSD-3-Clause
// MPI and gpushmem in one program: the PEs are the ranks of a communicator, here of every second
// process of the world. They put to each other, and MPI adds up what arrived.
#include <gpushmem/gpushmem.h>
#include <gpushmem/mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void give_up(const char *what)
{
    fprintf(stderr, "with_mpi: %s: %s\n", what, gpushmem_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
    int world, rank, n;
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    MPI_Comm_split(MPI_COMM_WORLD, world % 2, world, &half); // two jobs at once: even and odd
    MPI_Comm_rank(half, &rank);
    MPI_Comm_size(half, &n);
    if (gpushmem_init_mpi(half))
        give_up("init");

    long *inbox = gpushmem_calloc(1, sizeof *inbox), sum = 0;
    if (!inbox || gpushmem_long_p(inbox, 1 + rank, (rank + 1) % n) || gpushmem_barrier_all())
        give_up("put");
    MPI_Allreduce(inbox, &sum, 1, MPI_LONG, MPI_SUM, half);
    printf("process %d is PE %d of %d: %ld arrived in all\n", world, rank, n, sum);

    gpushmem_free(inbox);
    int failed = gpushmem_finalize() || sum != (long)n * (n + 1) / 2;
    MPI_Comm_free(&half);
    MPI_Finalize();
    return failed;
}
