// SPDX-License-Identifier: BSD-3-Clause
// On the fake driver: which atomics of the host on GPU memory launch a kernel, which waits for a
// free multiprocessor; and that all of them do what they say. usage: no_kernel reduction|none
#include "calls.h"

static int failures;

// As many kernels were launched since the last look as are wanted.
static void expect(const char *what, int status, unsigned long wanted)
{
    unsigned long kernels = calls_since("cuLaunchKernel");
    if (status || kernels != wanted) {
        fprintf(stderr, "%s: status %d, %lu kernels, not %lu (%s)\n", what, status, kernels, wanted,
                gpushmem_last_error());
        failures++;
    }
}

static int value_is(const uint64_t *word, uint64_t value)
{
    uint64_t found = 0;
    int status = gpushmem_quiet();
    return status ? status : gpushmem_uint64_get(&found, word, 1, 0) || found != value;
}

int main(int argc, char **argv)
{
    unsigned long one = argc > 1 && !strcmp(argv[1], "none");
    if (gpushmem_init()) {
        fprintf(stderr, "init: %s\n", gpushmem_last_error());
        return 1;
    }
    if (calls_find())
        return 1;
    uint64_t *word = gpushmem_calloc(1, sizeof *word);
    uint32_t *half = (uint32_t *)word + 1;
    gpushmem_uint64_atomic_inc(word, 0); // the kernels are loaded now
    expect("begin", value_is(word, 1), calls("cuLaunchKernel"));
    expect("set", gpushmem_uint64_atomic_set(word, 8, 0) || value_is(word, 8), 0);
    expect("add", gpushmem_uint64_atomic_add(word, 5, 0) || value_is(word, 13), one);
    expect("signal", gpushmem_signal_op(word, 3, GPUSHMEM_SIGNAL_ADD, 0) || value_is(word, 16),
           one);
    expect("or", gpushmem_uint64_atomic_or(word, 3, 0) || value_is(word, 19), one);
    expect("and", gpushmem_uint64_atomic_and(word, 18, 0) || value_is(word, 18), one);
    expect("set of 4 bytes",
           gpushmem_uint32_atomic_set(half, 2, 0) || value_is(word, 18 + (2ull << 32)), 0);
    expect("add of 4 bytes",
           gpushmem_uint32_atomic_add(half, ~0u, 0) || value_is(word, 18 + (1ull << 32)), one);
    expect("fetch", gpushmem_uint64_atomic_fetch(word, 0) != 18 + (1ull << 32), 0);
    expect("fetch of 4 bytes", gpushmem_uint32_atomic_fetch(half, 0) != 1, 0);
    expect("xor", gpushmem_uint64_atomic_xor(word, 1, 0) || value_is(word, 19 + (1ull << 32)), 1);
    expect("fetch_add", gpushmem_uint64_atomic_fetch_add(word, 1, 0) != 19 + (1ull << 32), 1);
    gpushmem_free(word);
    return gpushmem_finalize() || failures;
}
