// SPDX-License-Identifier: BSD-3-Clause
// A program of OpenSHMEM with gigabytes of static data, of which it uses little: all of it is
// symmetric, and what nobody touches costs nothing. "refused": it cannot be; init says so, and the
// heap works.
#include <gpushmem/compat/shmem.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 200 << 20 }; // 1.6 GB
static long large[WORDS];
static long small = 3;

static int wrong(const char *what)
{
    fprintf(stderr, "PE %d: %s\n", shmem_my_pe(), what);
    return 1;
}

static long resident_megabytes(void)
{
    long pages = 0, file = -1;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (statm && fscanf(statm, "%ld", &pages) == 1 && fscanf(statm, "%ld", &file) != 1)
        file = -1;
    if (statm)
        fclose(statm);
    return file < 0 ? -1 : file * 4096 >> 20;
}

static int use_statics(int next, int before)
{
    static const size_t places[] = {0, 5000, WORDS / 2, WORDS - 1};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        shmem_long_p(&large[places[i]], shmem_my_pe() * 10 + (long)i, next);
    shmem_long_atomic_add(&small, 1, next);
    shmem_barrier_all();
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (large[places[i]] != before * 10 + (long)i)
            return wrong("a value that was put is not there");
    if (small != 4 || large[4999] || large[WORDS - 2])
        return wrong("a neighbour has changed");
    long resident = resident_megabytes();
    if (resident < 0 || resident > 200)
        return wrong("what nobody has touched takes memory");
    return 0;
}

int main(int argc, char **argv)
{
    (void)argv;
    large[5001] = 77; // before init: it stays
    shmem_init();
    int n = shmem_n_pes(), me = shmem_my_pe(), next = (me + 1) % n, status = 0;
    bool refused = argc > 1;
    if (refused != !shmem_addr_accessible(&large[1], next))
        status = wrong(refused ? "large[1] is symmetric" : "large[1] is not symmetric");
    if (!status && !refused)
        status = use_statics(next, (me + n - 1) % n);
    if (large[5001] != 77)
        status = wrong("what was there before init is gone");
    long *word = shmem_calloc(1, sizeof *word);
    shmem_long_p(word, me + 1, next);
    shmem_barrier_all();
    if (*word != (me + n - 1) % n + 1)
        status = wrong("the heap does not work");
    shmem_free(word);
    shmem_finalize();
    return status;
}
