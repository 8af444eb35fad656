// SPDX-License-Identifier: BSD-3-Clause
// One value around the ring of PEs, and the implicit and the explicit handle side by side.
#include <string.h>

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

// Signals that all threads of a warp or a block wait for together: all see the data.
template <bool Block>
__global__ void wait_together(uint64_t *sig, const int *inbox, int wanted, int *wrong)
{
    if (threadIdx.x == 0)
        gpushmem_dev_int_put_signal((int *)inbox, inbox + 1, 1, sig, (uint64_t)wanted,
                                    GPUSHMEM_SIGNAL_SET,
                                    (gpushmem_dev_my_pe() + 1) % gpushmem_dev_n_pes());
    if (Block)
        gpushmem_dev_signal_wait_until_block(sig, GPUSHMEM_CMP_EQ, (uint64_t)wanted);
    else
        gpushmem_dev_signal_wait_until_warp(sig, GPUSHMEM_CMP_EQ, (uint64_t)wanted);
    if (*(const volatile int *)inbox != wanted)
        atomicAdd(wrong, 1);
}

static void test_together(int *inbox, int *wrong)
{
    uint64_t *sig = (uint64_t *)gpushmem_calloc(1, sizeof *sig);
    for (int block = 0; block < 2; block++) {
        int wanted = 40 + block;
        CHECK_OK(gpushmem_int_p(inbox + 1, wanted, gpushmem_my_pe()));
        CHECK_OK(gpushmem_int_p(wrong, 0, gpushmem_my_pe()));
        CHECK_OK(gpushmem_barrier_all());
        if (block)
            RUN((wait_together<true>), 1, 40, sig, inbox, wanted, wrong);
        else
            RUN(wait_together<false>, 1, 20, sig, inbox, wanted, wrong);
        CHECK(check_read(wrong) == 0);
        CHECK_OK(gpushmem_barrier_all());
    }
    gpushmem_free(sig);
}

__global__ void nothing(void)
{
}

// The sentences name what the program has called.
static void before_init(void)
{
    CHECK(GPUSHMEM_LAUNCH(nothing, 1, 1, NULL) == GPUSHMEM_ERR_STATE);
    CHECK(strstr(gpushmem_last_error(), "a kernel was not launched: gpushmem is not initialised"));
    CHECK(GPUSHMEM_LAUNCH_COLLECTIVE(nothing, 1, 1, 0, NULL) == GPUSHMEM_ERR_STATE);
    CHECK(strstr(gpushmem_last_error(), "a kernel was not launched: gpushmem is not initialised"));
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_STATE);
    CHECK(strstr(gpushmem_last_error(), "gpushmem_launch_wait: "));
}

int main(void)
{
    before_init();
    int me = check_begin(), n = gpushmem_n_pes(), left = (me + n - 1) % n;
    int *inbox = (int *)gpushmem_calloc(2, sizeof *inbox),
        *results = (int *)gpushmem_calloc(2, sizeof *results);
    RUN(pass_on, 1, 1, inbox, results);
    CHECK(check_read(&results[0]) == left + 1);
    CHECK(check_read(&results[1]) == (left + n - 1) % n + 1);
    gpushmem_barrier_all();
    gpushmem_dev dev;
    CHECK_OK(gpushmem_device_handle(&dev));
    RUN(pass_on_explicitly, 1, 1, dev, inbox, results);
    CHECK(check_read(&results[0]) == -left - 1);
    test_together(inbox, results);
    gpushmem_free(results);
    gpushmem_free(inbox);
    return check_end("basic");
}
