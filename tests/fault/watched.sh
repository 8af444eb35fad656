#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# watched.sh BIN_DIR: mpirun tells nobody that a PE died (and ends the job a second later): the others must find out themselves.
set -u
type mpirun >/dev/null 2>&1 || exit 77
root=()
[ "$(id -u)" != 0 ] || root=(--allow-run-as-root)
export GPUSHMEM_RUN_SIZE=3 GPUSHMEM_ON_PE_FAILURE=notify
output=$(mpirun "${root[@]}" --oversubscribe -n 3 "$1/bereaved" mourning 2>&1)
echo "$output"
grep -q 'PE 2 failed: its process ended without gpushmem_finalize' <<<"$output"
