// SPDX-License-Identifier: BSD-3-Clause
// Each PE adds to a word of the next PE, and of one drawn; then all of it has arrived. What a large
// job of neighbours does.
#include "../pes/check.h"

// The same on all PEs.
static int drawn(int pe, int n)
{
    return (int)((uint64_t)pe * 2654435761u % (uint64_t)n);
}

int main(void)
{
    CHECK_OK(gpushmem_init());
    int me = gpushmem_my_pe(), n = gpushmem_n_pes();
    uint64_t *word = gpushmem_calloc(1, sizeof *word), wanted = 0;
    CHECK(word);
    CHECK_OK(gpushmem_uint64_atomic_add(word, (uint64_t)me + 1, (me + 1) % n));
    CHECK_OK(gpushmem_uint64_atomic_add(word, (uint64_t)me + 1, drawn(me, n)));
    CHECK_OK(gpushmem_barrier_all());
    for (int pe = 0; pe < n; pe++)
        wanted += ((uint64_t)pe + 1) * (((pe + 1) % n == me) + (drawn(pe, n) == me));
    CHECK_THAT(*word == wanted, "%" PRIu64 ", wanted %" PRIu64, *word, wanted);
    gpushmem_free(word);
    CHECK_OK(gpushmem_finalize());
    return 0;
}
