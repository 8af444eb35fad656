#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mpi.sh PES PYTHON PROGRAM...: under Open MPI's mpirun; exit code 77 where that or mpi4py is missing.
set -euo pipefail
type mpirun >/dev/null 2>&1 || exit 77
pes=$1
shift
"$1" -c 'import mpi4py' 2>/dev/null || exit 77
root=()
[ "$(id -u)" != 0 ] || root=(--allow-run-as-root)
mpirun "${root[@]}" --oversubscribe -n "$pes" "$@"
