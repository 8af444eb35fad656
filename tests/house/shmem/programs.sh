#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# programs.sh GPUSHMEM PROGRAM...: runs each OpenSHMEM program, with 3 and 4 PEs in turn; it says by its exit status
# whether it was right.
set -u
gpushmem=$1 failed=0 n=3
shift
for program; do
    output=$("$gpushmem" run --timeout 60 -n $n "$program" 2>&1) || { echo "$program with $n PEs: $? $output" && failed=1; }
    [ -z "$output" ] || { echo "$program with $n PEs says: $output" && failed=1; }
    n=$((7 - n))
done
[ $failed = 0 ] && echo "programs: ok: $# programs"
exit $failed
