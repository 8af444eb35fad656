#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What cannot be printed is an error, of each command that prints: one sentence, and an exit code that is not 0.
# usage: output.sh GPUSHMEM HANG
set -u
gpushmem=$1
failures=0
log=$(mktemp)
export GPUSHMEM_TRANSPORTS=p2p GPUSHMEM_HEAP_KIND=host GPUSHMEM_HEAP_SIZE=64M
"$gpushmem" run -n 2 "$2" barrier >/dev/null 2>&1 &
job=$!
trap 'kill "$job"; rm -f "$log"' EXIT

# verdict STATUS SENTENCE WORD...: of `gpushmem WORD...`
verdict() {
    if [ "$1" -eq 0 ] || ! grep -q "cannot write the output: $2" "$log" || [ "$(wc -l <"$log")" -gt "${lines-1}" ]; then
        echo "FAILED: gpushmem ${*:3}: status $1, and not '$2' but '$(cat "$log")'"
        failures=$((failures + 1))
    fi
}

# refuses WORD...: the command notices a closed standard output, and one that is full.
refuses() {
    "$gpushmem" "$@" 2>"$log" >&-
    verdict $? "${closed-standard output is closed}" "$@"
    "$gpushmem" "$@" 2>"$log" >/dev/full
    verdict $? "No space left on device" "$@"
}

until "$gpushmem" stat --once "$job" >/dev/null 2>&1; do sleep 0.1; done
for command in version help "info" "info --json" "info --compat" "info --settings-file" "topo" "topo --json" "topo --help" \
    "doctor settings" "doctor --all settings" "doctor --json settings" "doctor --markdown" \
    "trace --help" "stat" "stat --once $job" "stat --waits $job" "stat --prometheus $job"; do
    # shellcheck disable=SC2086 # words
    refuses $command
done
# A table without rows says what would have filled it.
"$gpushmem" stat --once "$job" 2>&1 >/dev/null | grep -q 'GPUSHMEM_STATS=1 counts loads and stores' ||
    { echo "FAILED: stat of a job that uses mapped memory alone"; failures=$((failures + 1)); }
if [ -x "$(dirname "$gpushmem")/gpushmem-perf" ]; then # another program; the launcher adds that its PE failed
    closed="Bad file descriptor" refuses perf --help
    lines=2 closed="Bad file descriptor" refuses perf put-lat --issuer host --sizes 8 --rounds 1 --seconds 0.001 --quiet
fi
# What PEs print is theirs.
"$gpushmem" run -n 1 true >&- || { echo "FAILED: a job without output"; failures=$((failures + 1)); }
[ $failures -eq 0 ]
