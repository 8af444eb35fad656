#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# options.sh GPUSHMEM PROGRAM...: what examples say to --help and to options that are wrong: one sentence, from one PE of several.
set -u
run=$1
shift
failed=0
export GPUSHMEM_TRANSPORTS=p2p GPUSHMEM_HEAP_SIZE=4M GPUSHMEM_HEAP_KIND=host

# said STATUS WORDS PROGRAM ARGUMENT...: exit code, and words of the one line that it says.
said() {
    local status=$1 words=$2 text got
    shift 2
    text=$("$@" 2>&1)
    got=$?
    if [ $got != "$status" ] || [[ "$text" != *"$words"* ]] || { [ $got != 0 ] && [ "$(wc -l <<<"$text")" != 1 ]; }; then
        echo "$*: exit code $got (wanted $status), said: $text"
        failed=1
    fi
}

for program in "$@"; do
    said 0 "usage: $(basename "$program") [--OPTION VALUE]..." "$program" --help
    said 2 "there is no option '--nonsense'; --help lists all" "$program" --nonsense 1
done
said 2 "--rounds wants a whole number from 1 to 1000000, not '12x'" "$1" --rounds 12x
said 2 "--rounds wants a whole number from 1 to 1000000, not ''" "$1" --rounds
said 2 "--csv wants a value" "$1" --csv
said 1 "/nowhere/times.csv cannot be written: No such file" \
    bash -c "$1 --elements 1 --rounds 1 --csv /nowhere/times.csv 2>&1 >/dev/null"
said 2 "--elements wants" bash -c "$run run -n 2 $1 --elements 0 2>&1 | grep -v '^gpushmem run: '; exit \${PIPESTATUS[0]}"
# Cubes that cannot be cut into so many boxes.
stencil3d=$(dirname "$1")/stencil3d
said 2 "2 cells a side are too few for 1 x 1 x 3 PEs" \
    bash -c "$run run -n 3 $stencil3d --size 2 2>&1 | grep -v '^gpushmem run: '; exit \${PIPESTATUS[0]}"
exit $failed
