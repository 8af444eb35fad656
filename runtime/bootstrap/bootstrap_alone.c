// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // getpid
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/bootstrap_ways.h"
#include "core/error.h"

// Where launchers say how many processes they started. Those of a batch system that hold for a
// whole allocation (SLURM_NTASKS) are none: a batch script, and a shell in it, has them too.
static const struct {
    const char *size, *beside; // the second must be set as well, if it is not NULL
    const char *remedy;
} launchers[] = {
    {"GPUSHMEM_RUN_SIZE", NULL, "leave the environment of gpushmem run as it is"},
    {"SLURM_STEP_NUM_TASKS", NULL, "start it with srun --mpi=pmix or --mpi=pmi2"},
    {"OMPI_COMM_WORLD_SIZE", NULL, "start it with an mpirun that has PMIx, and leave PMIX_* set"},
    {"PMI_SIZE", NULL, "start it with a launcher that has PMIx or PMI-1, and leave PMI_FD set"},
    {"WORLD_SIZE", "TORCHELASTIC_RUN_ID", "join by a unique id (gpushmem_init_with_uniqueid)"},
};

int gpsh_bootstrap_alone_check(void)
{
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        const char *size = getenv(launchers[i].size), *beside = launchers[i].beside;
        if (size && atoi(size) > 1 && (!beside || getenv(beside)))
            return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                             "%s says that a launcher started %d processes, but this one finds no "
                             "way to join the others (neither PMIX_NAMESPACE nor PMI_FD is set): "
                             "%s, or with gpushmem run; if each process is to be a job of one PE, "
                             "set GPUSHMEM_BOOTSTRAP=single",
                             launchers[i].size, atoi(size), launchers[i].remedy);
    }
    return 0;
}

// What was put last.
struct own_blob {
    void *blob;
    size_t bytes;
};

static int alone_put(struct gpsh_bootstrap *b, const void *blob, size_t bytes)
{
    struct own_blob *own = b->data;
    free(own->blob);
    own->bytes = bytes;
    return gpsh_bootstrap_copy(0, blob, bytes, &own->blob);
}

static int alone_get(struct gpsh_bootstrap *b, int pe, void **blob, size_t *bytes)
{
    const struct own_blob *own = b->data;
    if (!own->blob)
        return gpsh_fail(GPUSHMEM_ERR_STATE, "PE 0 published nothing yet");
    *bytes = own->bytes;
    return gpsh_bootstrap_copy(pe, own->blob, own->bytes, blob);
}

// Of PEs that do not exist.
static int alone_exchange(struct gpsh_bootstrap *b)
{
    (void)b;
    return 0;
}

static void alone_finalize(struct gpsh_bootstrap *b)
{
    struct own_blob *own = b->data;
    free(own ? own->blob : NULL);
    free(own);
}

static const struct gpsh_bootstrap_ops alone_ops = {
    .put = alone_put,
    .exchange = alone_exchange,
    .get = alone_get,
    .finalize = alone_finalize,
};

int gpsh_bootstrap_alone_init(struct gpsh_bootstrap *b)
{
    *b = (struct gpsh_bootstrap){.ops = &alone_ops, .n_pes = 1, .node_n_pes = 1, .singleton = true};
    b->node_pes = calloc(1, sizeof(*b->node_pes));
    b->data = calloc(1, sizeof(struct own_blob));
    snprintf(b->job_id, sizeof(b->job_id), "singleton-%d", (int)getpid());
    if (b->node_pes && b->data)
        return 0;
    gpsh_bootstrap_finalize(b);
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the list of PEs");
}
