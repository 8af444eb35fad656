// SPDX-License-Identifier: BSD-3-Clause
// With GPUSHMEM_STATS=1 operations that are loads and stores are counted for each PE: of the host,
// and of kernels on CPU threads.
#include <string.h>

#include "gpushmem/counters.h"
#include "kernel_check.cuh"

enum { WORDS = 64, BLOCK = 4 };

// From each of two blocks of four threads: 4 values, a put of the block, 4 atomics, 4 gets, and a
// put with a signal of the block.
__global__ void kernel(uint64_t *words, uint64_t *signal, int pe)
{
    gpushmem_dev_uint64_p(words, 1, pe);
    gpushmem_dev_uint64_put_block(words, words + 8, 8, pe);
    gpushmem_dev_uint64_atomic_add(signal + 1, 1, pe);
    gpushmem_dev_uint64_g(words, pe);
    gpushmem_dev_uint64_put_signal_block(words, words + 8, 2, signal, 1, GPUSHMEM_SIGNAL_ADD, pe);
}
enum { KERNEL_CALLS = 2 * (4 + 1 + 4 + 4 + 1), KERNEL_BYTES = 2 * (32 + 64 + 32 + 32 + 16) };

static void host(uint64_t *words, uint64_t *signal, int pe)
{
    uint64_t here[WORDS] = {0};
    CHECK_OK(gpushmem_uint64_put(words, here, 10, pe));
    CHECK_OK(gpushmem_uint64_put_nbi(words, here, 3, pe));
    CHECK_OK(gpushmem_uint64_p(words, 7, pe));
    CHECK_OK(gpushmem_uint64_get(here, words, 5, pe));
    CHECK_OK(gpushmem_uint64_iput(words, here, 2, 1, 4, pe));
    CHECK_OK(gpushmem_uint64_put_signal(words, here, 2, signal, 1, GPUSHMEM_SIGNAL_ADD, pe));
    CHECK_OK(gpushmem_signal_op(signal, 1, GPUSHMEM_SIGNAL_ADD, pe));
    CHECK_OK(gpushmem_uint64_atomic_inc(signal + 1, pe));
    gpushmem_uint64_g(words, pe);
    CHECK_OK(gpushmem_uint64_put(words, here, 0, pe)); // nothing
}
enum { HOST_CALLS = 9, HOST_BYTES = 8 * (10 + 3 + 1 + 5 + 4 + 2 + 0 + 1 + 1) };

// The row of loads and stores to `pe`, all 0 if there is none.
static struct gpushmem_counters row_of(const char *owner, int pe)
{
    struct gpushmem_counters row;
    for (uint64_t at = 0; gpushmem_counters_next(&at, &row) == 1;)
        if (row.pe == pe && !strcmp(row.transport, "direct") && !strcmp(row.owner, owner))
            return row;
    memset(&row, 0, sizeof row);
    return row;
}

static void expect(const char *owner, int pe, uint64_t calls, uint64_t bytes)
{
    struct gpushmem_counters row = row_of(owner, pe);
    if (row.operations == calls && row.completed == calls && row.bytes == bytes)
        return;
    fprintf(stderr, "%s to PE %d: %llu operations, %llu bytes; wants %llu, %llu\n", owner, pe,
            (unsigned long long)row.operations, (unsigned long long)row.bytes,
            (unsigned long long)calls, (unsigned long long)bytes);
    check_failures++;
}

// usage: device_counted [off]; off: nothing is counted
int main(int argc, char **)
{
    int me = check_begin(), right = (me + 1) % gpushmem_n_pes(), times = argc > 1 ? 0 : 1;
    uint64_t *words = (uint64_t *)gpushmem_calloc(WORDS, sizeof *words),
             *signal = (uint64_t *)gpushmem_calloc(2, sizeof *signal);
    expect("host", right, 0, 0);
    host(words, signal, right);
    host(words, signal, right);
    expect("host", right, (uint64_t)times * 2 * HOST_CALLS, (uint64_t)times * 2 * HOST_BYTES);
    expect("kernels", right, 0, 0);
    RUN(kernel, 2, BLOCK, words, signal, right);
    expect("kernels", right, (uint64_t)times * KERNEL_CALLS, (uint64_t)times * KERNEL_BYTES);
    if (right != me)
        expect("host", me, 0, 0);
    gpushmem_free(signal);
    gpushmem_free(words);
    return check_end("counted");
}
