#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs device tests (or, by its whole name, another program with kernels) over verbs, inside the Soft-RoCE guest. PE i uses rxe<i mod 2>.
# usage: guest.sh BIN_DIR PES PROGRAM[:ARGUMENT]...
set -u
bin=$1 pes=$2
shift 2
failures=0
for entry in "$@"; do
    program=${entry%%:*} arguments=
    [ "$program" = "$entry" ] || arguments=${entry#*:}
    path=$bin/device_$program
    [ -x "$path" ] || path=$bin/$program
    start=$SECONDS
    # shellcheck disable=SC2016,SC2086
    if "$bin/gpushmem" run -n "$pes" sh -c 'GPUSHMEM_VERBS_DEVICES=rxe$((PMIX_RANK % 2)) exec "$@"' - \
        "$path" $arguments; then
        echo "ok: $program ($((SECONDS - start)) s)"
    else
        echo "FAILED: $program"
        failures=$((failures + 1))
    fi
done
exit $((failures != 0))
