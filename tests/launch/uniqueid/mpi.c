// SPDX-License-Identifier: BSD-3-Clause
// PEs that are ranks of MPI communicators: first of halves of the world, two jobs at once, then of
// the world. Prints a line for each PE.
#include <gpushmem/gpushmem.h>
#include <gpushmem/mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "%s: %s\n", what, gpushmem_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// The PEs are the ranks, and each reaches the next.
static void greet(MPI_Comm communicator)
{
    int rank, n;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &n);
    check(gpushmem_init_mpi(communicator) == 0, "init");
    check(gpushmem_my_pe() == rank && gpushmem_n_pes() == n, "numbers");
    long *inbox = gpushmem_calloc(1, sizeof *inbox);
    check(inbox != NULL, "calloc");
    check(gpushmem_long_p(inbox, 100 + rank, (rank + 1) % n) == 0, "p");
    check(gpushmem_barrier_all() == 0, "barrier");
    check(*inbox == 100 + (rank + n - 1) % n, "what the left neighbour wrote");
    check(gpushmem_finalize() == 0, "finalize");
}

int main(int argc, char **argv)
{
    int rank, n;
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_split(MPI_COMM_WORLD, rank < n / 2, -rank, &half); // in reverse order
    greet(half);
    MPI_Comm_free(&half);
    greet(MPI_COMM_WORLD);
    printf("pe %d of %d: ok\n", rank, n);
    MPI_Finalize();
    return 0;
}
