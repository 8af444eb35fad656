// SPDX-License-Identifier: BSD-3-Clause
// Calls of kernels by the type of their pointers do what the named ones do, with and without a
// handle.
#include "kernel_check.cuh"

struct box {
    long data[8];
    double real;
    uint64_t signal;
    unsigned bits;
    int count;
};

__global__ void calls(gpushmem_dev dev, box *b, int *errors)
{
    int me = gpushmem_dev_my_pe();
    long source[4] = {1, 2, 3, 4}, back[4] = {};
    gpushmem_dev_put(b->data, source, 3, me);
    gpushmem_dev_put_nbi(dev, b->data + 3, source + 3, 1, me);
    gpushmem_dev_quiet();
    gpushmem_dev_get(dev, back, b->data, 4, me);
    EXPECT(errors, back[0] == 1 && back[2] == 3 && back[3] == 4);
    gpushmem_dev_iput(b->data + 4, source, 1, 2, 2, me);
    gpushmem_dev_p(b->data + 6, 7, me); // an int for a long
    gpushmem_dev_quiet();
    EXPECT(errors,
           gpushmem_dev_g(b->data + 5, me) == 3 && gpushmem_dev_g(dev, b->data + 6, me) == 7);
    gpushmem_dev_put_signal(b->data, source + 1, 1, &b->signal, 5, GPUSHMEM_SIGNAL_SET, me);
    EXPECT(errors,
           gpushmem_dev_wait_until((volatile uint64_t *)&b->signal, GPUSHMEM_CMP_GE, 5) == 0);
    EXPECT(errors, gpushmem_dev_test(&b->signal, GPUSHMEM_CMP_EQ, 5) && b->data[0] == 2);
    EXPECT(errors, gpushmem_dev_wait_until_all(&b->signal, 1, nullptr, GPUSHMEM_CMP_NE, 0) == 0);
    EXPECT(errors, gpushmem_dev_wait_until_any(&b->signal, 1, nullptr, GPUSHMEM_CMP_NE, 0) == 0);
    gpushmem_dev_atomic_set(&b->real, 1.5, me);
    EXPECT(errors, gpushmem_dev_atomic_swap(&b->real, 2, me) == 1.5);
    EXPECT(errors, gpushmem_dev_atomic_fetch(dev, &b->real, me) == 2);
    gpushmem_dev_atomic_or(&b->bits, 6u, me);
    EXPECT(errors, gpushmem_dev_atomic_fetch_and(&b->bits, 3u, me) == 6);
    EXPECT(errors, gpushmem_dev_atomic_fetch_xor(&b->bits, 1u, me) == 2);
    gpushmem_dev_atomic_inc(&b->count, me);
    gpushmem_dev_atomic_add(dev, &b->count, 4, me);
    EXPECT(errors, gpushmem_dev_atomic_fetch_add(&b->count, 2, me) == 5);
    EXPECT(errors, gpushmem_dev_atomic_compare_swap(&b->count, 7, 9, me) == 7);
    EXPECT(errors, gpushmem_dev_atomic_fetch_inc(&b->count, me) == 9);
}

__global__ void together(box *b, int *errors)
{
    int me = gpushmem_dev_my_pe();
    if (threadIdx.x < 8)
        b->data[threadIdx.x] = threadIdx.x;
    gpushmem_dev_put_block(b->data + 4, b->data, 4, me);
    gpushmem_dev_quiet();
    EXPECT(errors, b->data[4 + threadIdx.x % 4] == (long)(threadIdx.x % 4));
}

int main(void)
{
    check_begin();
    int *errors = check_errors_begin();
    box *b = (box *)gpushmem_calloc(1, sizeof *b);
    gpushmem_dev dev;
    CHECK_OK(gpushmem_device_handle(&dev));
    RUN(calls, 1, 1, dev, b, errors);
    RUN(together, 1, 16, b, errors);
    check_errors_end(__FILE__, errors);
    gpushmem_free(b);
    return check_end("generic");
}
