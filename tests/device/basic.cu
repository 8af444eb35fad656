// SPDX-License-Identifier: BSD-3-Clause
// One value around the ring of PEs, and the implicit and the explicit handle side by side.
#include "check.h"

__global__ void pass_on(int *inbox, int *results)
{
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes(), left = (me + n - 1) % n;
    gpushmem_dev_int_p(inbox, me + 1, (me + 1) % n);
    gpushmem_dev_int_wait_until(inbox, GPUSHMEM_CMP_NE, 0);
    results[0] = *inbox;
    gpushmem_dev_barrier_all();
    results[1] = gpushmem_dev_int_g(inbox, left);
}

__global__ void pass_on_explicitly(gpushmem_dev dev, int *inbox, int *results)
{
    int n = gpushmem_dev_n_pes(dev), right = (gpushmem_dev_my_pe(dev) + 1) % n;
    gpushmem_dev_int_p(dev, inbox, -gpushmem_dev_my_pe(dev) - 1, right);
    gpushmem_dev_barrier_all(dev);
    results[0] = *inbox;
}

int main(void)
{
    int me = check_begin(), n = gpushmem_n_pes(), left = (me + n - 1) % n;
    int *inbox = (int *)gpushmem_calloc(1, sizeof *inbox),
        *results = (int *)gpushmem_calloc(2, sizeof *results);
    RUN(pass_on, 1, 1, inbox, results);
    CHECK(check_read(&results[0]) == left + 1);
    CHECK(check_read(&results[1]) == (left + n - 1) % n + 1);
    gpushmem_barrier_all();
    gpushmem_dev dev;
    CHECK_OK(gpushmem_device_handle(&dev));
    RUN(pass_on_explicitly, 1, 1, dev, inbox, results);
    CHECK(check_read(&results[0]) == -left - 1);
    gpushmem_free(results);
    gpushmem_free(inbox);
    return check_end("basic");
}
