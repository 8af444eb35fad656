// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // RTLD_DEFAULT
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "api/compat.h"
#include "core/error.h"

// ---- MPI ----

// A communicator is an address in Open MPI, and in MPI 5's common interface; an int in MPICH and
// its kin. A function that takes an int finds it where it finds an address: in a register of its
// own.
static struct {
    int (*initialized)(int *flag);
    int (*rank)(void *communicator, int *rank);
    int (*size)(void *communicator, int *n);
    int (*broadcast)(void *data, int count, void *type, int root, void *communicator);
    void *byte, *world;
    int by_address;
} mpi;

enum { MPICH_WORLD = 0x44000000, MPICH_BYTE = 0x4c00010d, ABI_WORLD = 0x101, ABI_BYTE = 0x207 };

static void *look_up(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

#define FIND(table, field, name) *(void **)&table.field = look_up(name)

// Which MPI it is: Open MPI's constants are objects with names.
static void find_constants(void)
{
    mpi.by_address = 1;
    if (look_up("ompi_mpi_byte")) {
        mpi.byte = look_up("ompi_mpi_byte");
        mpi.world = look_up("ompi_mpi_comm_world");
    } else if (look_up("MPI_Abi_get_version")) {
        mpi.byte = (void *)(uintptr_t)ABI_BYTE;
        mpi.world = (void *)(uintptr_t)ABI_WORLD;
    } else {
        mpi.byte = (void *)(uintptr_t)MPICH_BYTE;
        mpi.world = (void *)(uintptr_t)MPICH_WORLD;
        mpi.by_address = 0;
    }
}

static int find_mpi(void)
{
    int flag = 0;
    FIND(mpi, initialized, "MPI_Initialized");
    FIND(mpi, rank, "MPI_Comm_rank");
    FIND(mpi, size, "MPI_Comm_size");
    FIND(mpi, broadcast, "MPI_Bcast");
    if (!mpi.initialized || !mpi.rank || !mpi.size || !mpi.broadcast)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "nvshmemx_init_attr: this process has no MPI with shared libraries; link "
                         "the program with one, or join by a unique id");
    if (mpi.initialized(&flag) || !flag)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "nvshmemx_init_attr: MPI is not initialised; call MPI_Init before");
    find_constants();
    return 0;
}

static int mpi_rank(void *communicator, int *rank)
{
    return mpi.rank(communicator, rank);
}

static int mpi_size(void *communicator, int *n)
{
    return mpi.size(communicator, n);
}

static int mpi_broadcast(void *communicator, void *data, size_t bytes)
{
    return mpi.broadcast(data, (int)bytes, mpi.byte, 0, communicator);
}

int gpsh_nvshmem_mpi(void *communicator, struct gpushmem_bootstrap_functions *out)
{
    int status = find_mpi();
    if (status)
        return status;
    void *value = mpi.world;
    if (communicator && mpi.by_address)
        value = *(void **)communicator;
    else if (communicator)
        value = (void *)(intptr_t) * (int *)communicator;
    *out = (struct gpushmem_bootstrap_functions){value, mpi_rank, mpi_size, mpi_broadcast};
    return 0;
}

// ---- OpenSHMEM ----

static struct {
    int (*my_pe)(void);
    int (*n_pes)(void);
    void *(*allocate)(size_t bytes);
    void (*release)(void *block);
    void (*put)(void *dest, const void *source, size_t bytes, int pe);
    void (*barrier)(void);
} shmem;

static int shmem_rank(void *unused, int *rank)
{
    (void)unused;
    *rank = shmem.my_pe();
    return 0;
}

static int shmem_size(void *unused, int *n)
{
    (void)unused;
    *n = shmem.n_pes();
    return 0;
}

static int shmem_broadcast(void *unused, void *data, size_t bytes)
{
    (void)unused;
    void *block = shmem.allocate(bytes);
    if (!block)
        return -1;
    for (int pe = 0; shmem.my_pe() == 0 && pe < shmem.n_pes(); pe++)
        shmem.put(block, data, bytes, pe);
    shmem.barrier();
    memcpy(data, block, bytes);
    shmem.release(block);
    return 0;
}

int gpsh_nvshmem_shmem(struct gpushmem_bootstrap_functions *out)
{
    FIND(shmem, my_pe, "shmem_my_pe");
    FIND(shmem, n_pes, "shmem_n_pes");
    FIND(shmem, allocate, "shmem_malloc");
    FIND(shmem, release, "shmem_free");
    FIND(shmem, put, "shmem_putmem");
    FIND(shmem, barrier, "shmem_barrier_all");
    if (!shmem.my_pe || !shmem.n_pes || !shmem.allocate || !shmem.release || !shmem.put ||
        !shmem.barrier)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "nvshmemx_init_attr: this process has no OpenSHMEM with shared libraries; "
                         "link the program with one, or join by a unique id");
    *out = (struct gpushmem_bootstrap_functions){NULL, shmem_rank, shmem_size, shmem_broadcast};
    return 0;
}
