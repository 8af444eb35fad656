// SPDX-License-Identifier: BSD-3-Clause
// Keys to the PEs that they belong to: as many as there are, to each PE another number.
#define _GNU_SOURCE // what example.h uses
#include "../shared/example.h"
#include "sort.h"

// Symmetric for the host, as they are static. An element for each PE.
static long sent[MAX_PES], received[MAX_PES]; // how many keys go there, and come from there
static long begin[MAX_PES],
    begin_there[MAX_PES]; // where keys from there begin here, and mine there

// All-to-all has parts of one size, so the sizes go first. Each PE then knows what it gets, and
// tells the senders where to put it.
static int arrange(const long *cut, long *count)
{
    int n = gpushmem_n_pes();
    for (int pe = 0; pe < n; pe++)
        sent[pe] = cut[pe + 1] - cut[pe];
    TRY(gpushmem_long_alltoall(GPUSHMEM_TEAM_WORLD, received, sent, 1));
    *count = 0;
    for (int pe = 0; pe < n; pe++) {
        begin[pe] = *count;
        *count += received[pe];
    }
    return gpushmem_long_alltoall(GPUSHMEM_TEAM_WORLD, begin_there, begin, 1);
}

// Memory is allocated by all PEs alike: as much as the one with the most keys needs.
static int make_room(struct sorted *s)
{
    static long count, least, most;
    count = s->count;
    TRY(gpushmem_long_max_reduce(GPUSHMEM_TEAM_WORLD, &most, &count, 1));
    TRY(gpushmem_long_min_reduce(GPUSHMEM_TEAM_WORLD, &least, &count, 1));
    s->least = least;
    s->most = most;
    s->keys = gpushmem_malloc((size_t)most * sizeof *s->keys);
    return s->keys ? 0 : GPUSHMEM_ERR_NO_MEMORY;
}

// What arrives are sorted pieces. The heap may be GPU memory: they are sorted in a copy.
static int sort_received(const struct sorted *s)
{
    size_t bytes = (size_t)s->count * sizeof *s->keys + 1; // + 1: nothing is no failure
    uint32_t *keys = malloc(bytes), *scratch = malloc(bytes);
    TRY(keys && scratch ? 0 : GPUSHMEM_ERR_NO_MEMORY);
    TRY(gpushmem_uint32_get(keys, s->keys, (size_t)s->count, gpushmem_my_pe()));
    keys_sort(keys, scratch, s->count);
    TRY(gpushmem_uint32_put(s->keys, keys, (size_t)s->count, gpushmem_my_pe()));
    free(scratch);
    free(keys);
    return 0;
}

// Everybody begins with another PE, so that not all of them send to PE 0 at first.
int exchange(const uint32_t *keys, const long *cut, struct sorted *s)
{
    int n = gpushmem_n_pes(), me = gpushmem_my_pe();
    TRY(arrange(cut, &s->count));
    TRY(make_room(s));
    for (int i = 0; i < n; i++) {
        int pe = (me + i) % n;
        TRY(gpushmem_uint32_put_nbi(s->keys + begin_there[pe], keys + cut[pe], (size_t)sent[pe],
                                    pe));
    }
    TRY(gpushmem_barrier_all()); // all keys of all PEs have arrived
    return sort_received(s);
}
