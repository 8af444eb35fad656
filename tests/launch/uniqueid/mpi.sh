#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mpi.sh PES PROGRAM...: under Open MPI's mpirun every PE prints that all is well.
set -euo pipefail
type mpirun >/dev/null 2>&1 || exit 77
pes=$1
shift
root=()
[ "$(id -u)" != 0 ] || root=(--allow-run-as-root)
output=$(mpirun "${root[@]}" --oversubscribe -n "$pes" "$@" 2>&1) || { echo "$output" && exit 1; }
echo "$output"
[ "$(grep -c "^pe [0-9]* of $pes: ok$" <<<"$output")" = "$pes" ]
