#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# lost_under_slurm.sh BEREAVED: four PEs on two of Slurm's virtual nodes, of which the last one dies. Slurm tells nobody, and
# cancels the step some time later: PEs of the other node must have heard of it by then.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hca=$LD_PRELOAD
unset LD_PRELOAD # for Slurm's own programs
export GPUSHMEM_RUN_SIZE=4 GPUSHMEM_ON_PE_FAILURE=notify
output=$("$here/slurm.sh" srun --mpi=pmix --kill-on-bad-exit=0 -N2 --ntasks-per-node=2 \
    env LD_PRELOAD="$hca" "$1" mourning 2>&1)
status=$?
echo "$output"
[ $status != 77 ] || exit 77
grep -q '^gpushmem\[[01]\] ERROR peers: PE 3 failed: its process ended without gpushmem_finalize' <<<"$output"
