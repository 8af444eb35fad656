// SPDX-License-Identifier: BSD-3-Clause
// The same in C++ with overloads.
#include <cstdio>
#include <gpushmem/gpushmem.h>

int main()
{
    if (gpushmem_init() < 0) {
        std::fprintf(stderr, "%s\n", gpushmem_last_error());
        return 1;
    }
    int me = gpushmem_my_pe(), n = gpushmem_n_pes();
    auto *from = static_cast<double *>(gpushmem_malloc(sizeof(double)));
    gpushmem_p(from, me + 0.5, (me + 1) % n);
    gpushmem_barrier_all();
    bool good = from != nullptr && gpushmem_g(from, me) == (me + n - 1) % n + 0.5;
    gpushmem_free(from);
    gpushmem_finalize();
    std::puts(good ? "ring: ok" : "ring: wrong");
    return good ? 0 : 1;
}
