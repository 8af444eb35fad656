// SPDX-License-Identifier: BSD-3-Clause
// A counter and a list behind a lock, in C++.
#include <cstdio>
#include <shmem.h>
#include <vector>

static long lock, count;

int main()
{
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes(), rounds = 50;
    auto *list =
        static_cast<int *>(shmem_calloc(static_cast<std::size_t>(rounds * n), sizeof(int)));
    shmem_sync(SHMEM_TEAM_WORLD);
    for (int i = 0; i < rounds; i++) {
        shmem_set_lock(&lock);
        const long at = shmem_long_g(&count, 0);
        shmem_int_p(&list[at], me, 0);
        shmem_long_p(&count, at + 1, 0);
        shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
    std::vector<int> seen(static_cast<std::size_t>(n));
    for (int i = 0; me == 0 && i < rounds * n; i++)
        seen[static_cast<std::size_t>(list[i])]++;
    int wrong = 0;
    for (int i = 0; me == 0 && i < n; i++)
        wrong |= seen[static_cast<std::size_t>(i)] != rounds;
    static __complex__ double each, all; // C's complex numbers, which C++ compilers know, too
    __real__ each = 1;
    __imag__ each = me;
    shmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, &all, &each, 1);
    wrong |= __real__ all != n || __imag__ all != n * (n - 1) / 2;
    shmem_free(list);
    shmem_finalize();
    return wrong;
}
