#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# under.sh: runs a program as a job of N PEs under one of the launchers that gpushmem supports.
#
#   under.sh LAUNCHER N [--fails] [--lines REGEX] [--option WORD]... PROGRAM [arguments]
#     LAUNCHER   run (gpushmem run), nodes (gpushmem run with four pretended nodes), mpirun, prterun, slurm (four
#                virtual nodes; N must be a multiple of 4), slurm1 (one of them, whose PEs share memory); by PMI-1
#                hydra (of MPICH), hydra2 (two pretended nodes; N must be even), slurm_pmi (as slurm)
#     --fails    the job must end with a code other than 0, soon and not by the time limit
#     --option   one more for the launcher
#     --lines    fail unless exactly N lines of output match; so that N jobs of one PE are no success
#
# Exit code: the program's; 1 if the lines are not as expected; 77 if the launcher is not installed.
# GPUSHMEM names the program gpushmem (default: in PATH).
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

die() {
    echo "under.sh: $*" >&2
    exit "${2:-1}"
}

skip() {
    echo "under.sh: skipped: $*" >&2
    exit 77
}

# Not bound: jobs that run at once would be bound to the same cores. Sets `launch` to the command line in front of the program.
choose() {
    local program
    case $1 in
    run) launch=("${GPUSHMEM:-gpushmem}" run -n "$2") ;;
    nodes) launch=("${GPUSHMEM:-gpushmem}" run -n "$2" --nodes 4) ;;
    mpirun)
        # By this name where MPICH is installed beside Open MPI.
        program=$(command -v mpirun.openmpi || command -v mpirun) || skip "no mpirun here (Debian package openmpi-bin)"
        launch=("$program" --allow-run-as-root --oversubscribe --bind-to none -n "$2")
        ;;
    prterun)
        program=$("$here/../setup.sh" --prterun)
        [ -n "$program" ] || skip "no prterun here (tests/setup.sh launch fetches it)"
        launch=("$program" --allow-run-as-root --map-by :OVERSUBSCRIBE --bind-to none -n "$2")
        ;;
    hydra | hydra2)
        command -v mpiexec.hydra >/dev/null || skip "no mpiexec.hydra here (Debian package mpich)"
        launch=(mpiexec.hydra -n "$2")
        [ "$1" = hydra ] || launch+=(-launcher fork -hosts "localhost,127.0.0.1" -ppn $(($2 / 2)))
        ;;
    slurm_pmi) launch=("$here/slurm.sh" srun --mpi=pmi2 -N4 --ntasks-per-node=$(($2 / 4))) ;;
    slurm) launch=("$here/slurm.sh" srun --mpi=pmix -N4 --ntasks-per-node=$(($2 / 4))) ;;
    slurm1) launch=("$here/slurm.sh" srun --mpi=pmix -N1 "--ntasks-per-node=$2") ;;
    *) die "no launcher '$1': run, nodes, mpirun, prterun, slurm, slurm1, hydra, hydra2, slurm_pmi" ;;
    esac
}

main() {
    [ $# -ge 3 ] || die "usage: under.sh LAUNCHER N [--lines REGEX] PROGRAM [arguments]"
    local n=$2 lines='' fails='' status found marks
    choose "$1" "$2"
    shift 2
    if [ "$1" = --fails ]; then
        fails=yes
        shift
    fi
    if [ "$1" = --lines ]; then
        lines=$2
        shift 2
    fi
    while [ "$1" = --option ]; do
        launch+=("$2")
        shift 2
    done
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir "$work/started" "$work/tmp"
    if [ -n "$fails" ]; then
        # A launcher that never starts anything fails, too: each PE leaves a mark first.
        # shellcheck disable=SC2016
        set -- sh -c ': >"$0/${PMIX_RANK:-${PMI_RANK:-$GPUSHMEM_RUN_PE}}"; exec "$@"' "$work/started" "$@"
    fi
    # Two mpiruns that make or remove their common directory in /tmp at once are in each other's way.
    TMPDIR=$work/tmp timeout 120 "${launch[@]}" "$@" 2>&1 | tee "$work/output"
    status=${PIPESTATUS[0]}
    found=$(grep -caE -- "$lines" "$work/output")
    if [ -n "$fails" ]; then
        marks=$(find "$work/started" -type f | wc -l)
        [ "$status" = 77 ] || [ "$marks" = "$n" ] || die "$marks of $n PEs were started"
        [ "$status" != 0 ] && [ "$status" != 77 ] && [ "$status" != 124 ] && exit 0
        die "exit code $status from a job that had to fail"
    fi
    if [ "$status" = 0 ] && [ -n "$lines" ] && [ "$found" != "$n" ]; then
        die "$found lines match '$lines', not $n"
    fi
    exit "$status"
}

main "$@"
