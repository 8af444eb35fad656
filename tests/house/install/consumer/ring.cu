// SPDX-License-Identifier: BSD-3-Clause
// The same from a kernel.
#include <cstdio>
#include <gpushmem/device.cuh>
#include <gpushmem/gpushmem.h>

__global__ void pass(int *right)
{
    gpushmem_dev_int_p(right, gpushmem_dev_my_pe(),
                       (gpushmem_dev_my_pe() + 1) % gpushmem_dev_n_pes());
}

int main()
{
    if (gpushmem_init() < 0) {
        std::fprintf(stderr, "%s\n", gpushmem_last_error());
        return 1;
    }
    int me = gpushmem_my_pe(), n = gpushmem_n_pes();
    auto *from = static_cast<int *>(gpushmem_malloc(sizeof(int)));
    bool good = GPUSHMEM_LAUNCH(pass, 1, 1, NULL, from) == 0 && gpushmem_launch_wait(NULL) == 0;
    gpushmem_barrier_all();
    good = good && gpushmem_g(from, me) == (me + n - 1) % n;
    gpushmem_free(from);
    gpushmem_finalize();
    std::puts(good ? "ring: ok" : "ring: wrong");
    return good ? 0 : 1;
}
