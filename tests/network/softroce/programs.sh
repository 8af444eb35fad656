#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs programs of several PEs over verbs, inside the Soft-RoCE guest.
# usage: programs.sh BIN_DIR PREFIX "OPTIONS OF gpushmem run" PROGRAM[:ARGUMENT]...
# A program is BIN_DIR/PREFIX followed by its name or, if there is none, BIN_DIR/name. PE i uses rxe<i mod 2>, so that
# what even and
# odd PEs send each other crosses the cable.
set -u
bin=$1 prefix=$2 options=$3
shift 3
failures=0
for entry in "$@"; do
    program=${entry%%:*} arguments=
    [ "$program" = "$entry" ] || arguments=${entry#*:}
    path=$bin/$prefix$program
    [ -x "$path" ] || path=$bin/$program
    start=$SECONDS
    # shellcheck disable=SC2016,SC2086
    if "$bin/gpushmem" run $options sh -c 'GPUSHMEM_VERBS_DEVICES=rxe$((GPUSHMEM_RUN_PE % 2)) exec "$@"' - "$path" $arguments; then
        echo "ok: $program with $options ($((SECONDS - start)) s)"
    else
        echo "FAILED: $program with $options"
        failures=$((failures + 1))
    fi
done
exit $((failures != 0))
