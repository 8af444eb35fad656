// SPDX-License-Identifier: BSD-3-Clause
// A job that no launcher of PMIx started: RANK and WORLD_SIZE say who is who, as torchrun and many
// scripts set them, and a file hands the unique id over. Any way to copy 128 bytes will do.
#define _GNU_SOURCE // usleep
#include <gpushmem/gpushmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const char *what)
{
    fprintf(stderr, "unique_id: %s: %s\n", what, gpushmem_last_error());
    return 1;
}

// Others must not see half of it, so it gets its name when it is whole. Who can read it can join
// the job: nobody but this user.
static int write_id(const char *path, const gpushmem_uniqueid_t *id)
{
    char unfinished[4096];
    snprintf(unfinished, sizeof unfinished, "%s.new", path);
    umask(077);
    FILE *file = fopen(unfinished, "wb");
    if (!file)
        return -1;
    size_t written = fwrite(id, sizeof *id, 1, file);
    return fclose(file) || written != 1 ? -1 : rename(unfinished, path);
}

static int read_id(const char *path, gpushmem_uniqueid_t *id)
{
    FILE *file;
    while (!(file = fopen(path, "rb")))
        usleep(10000);
    size_t got = fread(id, sizeof *id, 1, file);
    fclose(file);
    return got == 1 ? 0 : -1;
}

int main(int argc, char **argv)
{
    const char *rank_text = getenv("RANK"), *size_text = getenv("WORLD_SIZE");
    gpushmem_uniqueid_t id;
    if (argc != 2 || !rank_text || !size_text)
        return fprintf(stderr, "usage: RANK=r WORLD_SIZE=n unique_id FILE (a new name)\n"), 2;
    int rank = atoi(rank_text), n = atoi(size_text);
    if (rank == 0 && gpushmem_get_uniqueid(&id))
        return fail("no unique id");
    if (rank == 0 ? write_id(argv[1], &id) : read_id(argv[1], &id))
        return perror(argv[1]), 1;
    if (gpushmem_init_with_uniqueid(&id, rank, n))
        return fail("init");
    if (rank == 0)
        remove(argv[1]); // it has served: all have joined

    long *inbox = gpushmem_calloc(1, sizeof *inbox);
    if (!inbox || gpushmem_long_p(inbox, 100 + rank, (rank + 1) % n) || gpushmem_barrier_all())
        return fail("put");
    printf("PE %d of %d: %d PEs on its node, got %ld\n", rank, n, gpushmem_node_n_pes(), *inbox);
    int wrong = *inbox != 100 + (rank + n - 1) % n;
    gpushmem_free(inbox);
    return gpushmem_finalize() || wrong;
}
