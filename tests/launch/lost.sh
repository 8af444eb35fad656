#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# lost.sh mpirun|hydra BEREAVED: three PEs of which the last one dies, under a launcher that was asked to let the others live.
# Both must say that they survive: nobody but the library tells them of the death. Hydra also
# sends them SIGUSR1, and ends the job (4.0) if the dead process was the last that held its PMI descriptor: the shell holds it.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$(realpath "$2")
export GPUSHMEM_RUN_SIZE=3 GPUSHMEM_ON_PE_FAILURE=notify # bereaved.c asks for its place in the environment
case $1 in
mpirun) option=--enable-recovery ;;
hydra) option=-disable-auto-cleanup ;;
*) echo "lost.sh: mpirun or hydra" >&2 && exit 2 ;;
esac
for what in mourning leaving; do
    # shellcheck disable=SC2016 # the PE's own shell expands it
    output=$("$here/under.sh" "$1" 3 --option "$option" sh -c \
        'trap "" USR1; rank=${PMIX_RANK:-$PMI_RANK}; PMIX_RANK=$rank GPUSHMEM_RUN_PE=$rank "$0" "$1"; exit' "$program" $what 2>&1)
    status=$?
    echo "$output"
    [ $status != 77 ] || exit 77
    [ "$(grep -c 'survives:' <<<"$output")" = 2 ] || exit 1
done
