// SPDX-License-Identifier: BSD-3-Clause
// On the fake driver: where the GPU does not order what NICs write to it, each call that lets the
// program see such writes has flushed them; where it does, none costs that. usage: flush
// needed|not-needed
#include <stdbool.h>

#include "calls.h"

static bool needed;
static int failures;

// There were flushes since the last look if they are needed, and else none.
static void expect(const char *what, int status)
{
    unsigned long flushes = calls_since("cuFlushGPUDirectRDMAWrites");
    if (status || (flushes > 0) != needed) {
        fprintf(stderr, "PE %d: %s: status %d, %lu flushes (%s)\n", gpushmem_my_pe(), what, status,
                flushes, gpushmem_last_error());
        failures++;
    }
}

int main(int argc, char **argv)
{
    needed = argc > 1 && !strcmp(argv[1], "needed");
    if (gpushmem_init()) {
        fprintf(stderr, "init: %s\n", gpushmem_last_error());
        return 1;
    }
    if (calls_find())
        return 1;
    int right = (gpushmem_my_pe() + 1) % gpushmem_n_pes();
    uint64_t *signal = gpushmem_calloc(2, sizeof *signal), seen = 0;
    expect("barrier in calloc", !signal);
    int status = gpushmem_signal_op(signal, 7, GPUSHMEM_SIGNAL_SET, right);
    expect("signal wait", status || gpushmem_signal_wait_until(signal, GPUSHMEM_CMP_EQ, 7) != 7);
    expect("wait until", gpushmem_uint64_wait_until(signal, GPUSHMEM_CMP_EQ, 7));
    expect("test", gpushmem_uint64_test(signal, GPUSHMEM_CMP_EQ, 7) != 1);
    expect("get", gpushmem_uint64_get(&seen, signal, 1, right) || seen != 7);
    status = gpushmem_uint64_get_nbi(signal + 1, signal, 1, right);
    expect("quiet", status || gpushmem_quiet());
    expect("barrier", gpushmem_barrier_all());
    gpushmem_free(signal);
    return gpushmem_finalize() || failures;
}
