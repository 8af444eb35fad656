#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What tests/cluster.sh makes of programs and launchers that are none: its report, its exit codes, and what it refuses.
# usage: cluster_script.sh SOURCE
set -u
script=$1/tests/cluster.sh
failures=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# program NAME LINE: a program of the build folder
program() {
    mkdir -p "$work/build/bin"
    printf '#!/bin/sh\n%s\n' "$2" >"$work/build/bin/$1"
    chmod +x "$work/build/bin/$1"
}
# shellcheck disable=SC2016 # for the programs' shells
program gpushmem '[ "$1" != doctor ] || { echo "$(hostname) is well"; exit 3; }; echo "gpushmem $* heap=$GPUSHMEM_HEAP_KIND"'
program gpushmem-perf true
program multi_rma true
program multi_amo 'echo a word is wrong; exit 1'
program multi_sync 'exit 124'
# shellcheck disable=SC2016
program launcher 'echo "pes $1 nodes $2 ppn $3"; n=$1; shift 3
until [ $n = 1 ]; do "$@" & n=$((n - 1)); done
"$@"; status=$?; wait; exit $status'
# shellcheck disable=SC2016
for test in write_lat write_bw read_lat read_bw atomic_lat; do
    program ib_$test '[ "$3" ] && echo "a figure of $(basename $0)"; true'
done
PATH=$work/build/bin:$PATH

# has TEXT FILE
has() {
    grep -qF -- "$1" "$2" || { echo "FAILED: no '$1' in:" "$(cat "$2")"; failures=$((failures + 1)); }
}

# ends STATUS TEXT OPTION...
ends() {
    "$script" --build "$work/build" --out "$work/out" "${@:3}" >"$work/log" 2>&1
    local status=$?
    [ $status -eq "$1" ] || { echo "FAILED: ${*:3}: exit code $status, not $1"; failures=$((failures + 1)); }
    has "$2" "$work/log"
}

launch=(--launch "$work/build/bin/launcher {pes} {nodes} {ppn}" --host --quick)
ends 1 "FAILED (exit 1)  multi_amo, 1 PE on each node" "${launch[@]}" --nodes 3 --ppn 4 --anonymous
has "FAILED (ended after 300 s)  multi_sync" "$work/log"
has "ok  multi_rma" "$work/log"
has "ok  doctor on each node" "$work/log"
has ", 2 failed" "$work/log"
report=$work/out/report.md
for text in "| multi_amo, 1 PE on each node | FAILED (exit 1) |" "## What failed" "a word is wrong" "heap=host" "node0 is well" \
    "pes 12 nodes 3 ppn 4" "gpushmem perf put-lat" "a figure of ib_write_bw" "| perftest atomic_lat | ok |"; do
    has "$text" "$report"
done
if grep -q "$(hostname) is well" "$report"; then
    echo "FAILED: --anonymous names a host"
    failures=$((failures + 1))
fi
rm "$work/build/bin/multi_amo" "$work/build/bin/multi_sync"
ends 0 " passed, 0 failed" "${launch[@]}" --nodes 1
program gpushmem '[ "$1" != info ]'
ends 1 "Promises and figures were left out: the PEs do not reach each other" "${launch[@]}" --nodes 2
has "were left out" "$report"
ends 77 "jobs cannot be started with 'false'" --launch false
ends 2 "--nodes takes a number from 1 to 99999, not 'two'" --nodes two
ends 2 "--seconds takes a number from 1 to 99999, not '0'" --seconds 0
ends 2 "unknown option '--fast'" --fast
ends 2 "--launch needs a value" --launch
ends 2 "'/nowhere' has no folder bin" --build /nowhere
ends 2 "--out '/proc/report' cannot be made" --out /proc/report
rm "$work/build/bin/gpushmem-perf"
ends 2 "has no program gpushmem-perf" --nodes 2
"$script" --help >"$work/log" || failures=$((failures + 1))
has "--ppn N" "$work/log"
[ $failures -eq 0 ]
