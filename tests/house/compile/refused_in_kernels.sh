#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Calls of kernels that must not compile end in one sentence. usage: refused_in_kernels.sh CXX DEVICE_INCLUDE
set -u
cxx=$1 device_include=$2
include=$(cd "$(dirname "$0")/../../../include" && pwd)
failures=0

# kernel NAME STATEMENTS
kernel() {
    echo "__global__ void $1(int *i, double *d, struct other *o) { (void)i; (void)d; (void)o; $2 }"
}

# one TEXT COUNT: so many of the errors say that
one() {
    [ "$(grep -c "$1" <<<"$errors")" = "$2" ] || { echo "FAILED: not $2 times: $1" && failures=1; }
}

# The first kernel is right: all errors that there are belong to what follows.
errors=$(
    {
        printf '%s\n' '#include "gpushmem/gpushmem.h"' '#include "gpushmem/device.cuh"' 'struct other { int x; };'
        kernel right 'gpushmem_dev_put(i, i, 1, 0); gpushmem_dev_atomic_add(i, 1, 0);'
        kernel wrong 'gpushmem_dev_put(o, o, 1, 0); gpushmem_dev_g(o, 0); gpushmem_dev_atomic_or(d, 1.0, 0);
            gpushmem_dev_wait_until(d, GPUSHMEM_CMP_EQ, 1.0); __shared__ int x[4]; x[0] = 1;
            gpushmem_dev_int_wait_until(i, 3, 1); gpushmem_dev_signal_op((uint64_t *)d, 1, 9, 0); gpushmem_dev_grid_sync();'
        echo '__global__ void k(int *) {} int g(gpushmem_stream_t s, int *i) {
            return GPUSHMEM_LAUNCH_COLLECTIVE(k, 1, 1, s, i) + GPUSHMEM_LAUNCH_COLLECTIVE(k, 1, 1, 0, s, i) +
                   GPUSHMEM_LAUNCH_COLLECTIVE(k, 1, 1, NULL, NULL, i) + GPUSHMEM_LAUNCH_COLLECTIVE(k, 1, 1, NULL, i) +
                   GPUSHMEM_LAUNCH(k, 1, 1, s, i) + GPUSHMEM_LAUNCH(k, 1, 1, NULL, i) + GPUSHMEM_LAUNCH(k, 1, 1, i); }'
    } | "$cxx" -x c++ -std=c++17 -fsyntax-only -DGPSH_EMU_LINKED -I "$include" -I "$device_include" - 2>&1 | grep 'error:'
)
one 'come before the stream' 1
one 'come before the arguments' 1
one 'comes before the arguments' 1
one 'gpushmem_dev_putmem' 2
one 'no form for words of this type' 2
one 'GPUSHMEM_SHARED' 1
one 'to [^ ]*gpushmem_cmp' 1
one 'to [^ ]*gpushmem_signal_op' 1
one 'include <gpushmem/grid_sync.cuh>' 1
one 'error:' 11

errors=$(echo '#include "gpushmem/device.cuh"' |
    "$cxx" -x c++ -std=c++14 -fsyntax-only -I "$include" -I "$device_include" - 2>&1 | grep 'error:' | head -n 1)
one 'compile with -std=c++17' 1
[ $failures = 0 ] && echo "refused in kernels: ok" || printf '%s\n' "$errors"
exit $failures
