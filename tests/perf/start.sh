#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# start.sh [GPUSHMEM PERF_START] [N]...: how long a job of N PEs takes from the launcher's start to its end, if its PEs init and
# finalize and do nothing else, beside `gpushmem run -n N true`; and the processor time of a PE. Medians of five, in turn. Without
# arguments the programs of build/release, and 64, 200 and 400 PEs.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
gpushmem=$root/build/release/bin/gpushmem start=$root/build/release/bin/perf_start
if [ -x "${1:-}" ]; then
    gpushmem=$1 start=${2:?start.sh GPUSHMEM PERF_START N...}
    shift 2
fi
[ $# -gt 0 ] || set -- 64 200 400
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# seconds N PROGRAM: runs it, and prints how long that took.
seconds() {
    local begin=$EPOCHREALTIME
    "$gpushmem" run -n "$1" -x GPUSHMEM_HEAP_SIZE=1M "$2" >"$dir/out" || exit 1
    awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }'
}

# median COLUMN FILE
median() { awk -v c="$1" '{ print $c }' "$2" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

echo "| PEs | init and finalize, s | \`true\`, s | ratio | processor time of a PE before main, ms | from init to finalize, ms |"
echo "|----:|---------------------:|----------:|------:|---------------------------------------:|--------------------------:|"
for n in "$@"; do
    rm -f "$dir"/{floor,job,cpu}
    for _ in 1 2 3 4 5; do
        seconds "$n" true >>"$dir/floor"
        seconds "$n" "$start" >>"$dir/job"
        [ "$(wc -l <"$dir/out")" = "$n" ] || { echo "start.sh: $(wc -l <"$dir/out") of $n PEs said something" >&2 && exit 1; }
        echo "$(median 1 "$dir/out") $(median 2 "$dir/out")" >>"$dir/cpu"
    done
    awk -v n="$n" -v f="$(median 1 "$dir/floor")" -v j="$(median 1 "$dir/job")" -v m="$(median 1 "$dir/cpu")" \
        -v i="$(median 2 "$dir/cpu")" \
        'BEGIN { printf "| %3d | %20.2f | %9.2f | %5.1f | %38.1f | %25.1f |\n", n, j, f, j / f, m, i }'
done
