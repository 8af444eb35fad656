#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the programs of several PEs on verbs, inside the Soft-RoCE guest.
# usage: guest.sh BIN_DIR "OPTIONS OF gpushmem run" PROGRAM[:ARGUMENT]...
# PE i uses rxe<i mod 2>, so that what even and odd PEs send each other crosses the cable.
set -u
bin=$1 options=$2
shift 2
failures=0
for entry in "$@"; do
    program=${entry%%:*} arguments=
    [ "$program" = "$entry" ] || arguments=${entry#*:}
    start=$SECONDS
    # shellcheck disable=SC2016,SC2086
    if "$bin/gpushmem" run $options sh -c 'GPUSHMEM_VERBS_DEVICES=rxe$((PMIX_RANK % 2)) exec "$@"' - \
        "$bin/multi_$program" $arguments; then
        echo "ok: $program with $options ($((SECONDS - start)) s)"
    else
        echo "FAILED: $program with $options"
        failures=$((failures + 1))
    fi
done
exit $((failures != 0))
