#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mpi.sh PES LINE PROGRAM...: under Open MPI's mpirun every PE prints a line that matches the expression.
set -euo pipefail
mpirun=$(command -v mpirun.openmpi || command -v mpirun) || exit 77 # by this name where MPICH is installed, too
pes=$1 line=$2
shift 2
root=()
[ "$(id -u)" != 0 ] || root=(--allow-run-as-root)
output=$("$mpirun" "${root[@]}" --oversubscribe -n "$pes" "$@" 2>&1) || { echo "$output" && exit 1; }
echo "$output"
[ "$(grep -cE "$line" <<<"$output")" = "$pes" ]
