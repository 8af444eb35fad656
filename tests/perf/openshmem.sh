#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# openshmem.sh ROUNDS NAME COMMAND [NAME COMMAND]...: the program openshmem.c by several libraries, in turn, ROUNDS times; prints
# the medians of all rounds side by side as a table of Markdown. COMMAND is one word for the shell, like
# "gpushmem run -n 2 --nodes 2 ./openshmem.ours". One that fails has "-" in its column, and is told of.
set -uo pipefail
[ $# -ge 3 ] && [ $(($# % 2)) = 1 ] || { sed -n '3,5s/^# //p' "$0" >&2 && exit 2; }
rounds=$1
shift
out=$(mktemp -d) && trap 'rm -rf "$out"' EXIT
names=() commands=()
while [ $# -gt 0 ]; do
    names+=("$1")
    commands+=("$2")
    shift 2
done
for ((round = 0; round < rounds; round++)); do
    for i in "${!names[@]}"; do
        timeout 300 bash -c "${commands[i]}" >"$out/run" 2>"$out/errors" ||
            echo "openshmem.sh: ${names[i]} failed in round $round: $(tail -n 1 "$out/errors")" >&2
        awk -v column="$i" 'NF == 3 && $2 + 0 > 0 { print $1, $3, column, $2 }' "$out/run" >>"$out/all"
    done
done
sort -k1,1 -k3,3n -k4,4g "$out/all" | awk -v names="${names[*]}" '
    { key = $1 " (" $2 ")" }
    !(key in known) { known[key] = 1; rows[++n_rows] = key }
    { value[key, $3, ++count[key, $3]] = $4 }
    END {
        columns = split(names, name, " ")
        printf "| "
        for (i = 1; i <= columns; i++) printf "| %s ", name[i]
        print "|"
        printf "|---"
        for (i = 1; i <= columns; i++) printf "|--:"
        print "|"
        for (r = 1; r <= n_rows; r++) {
            printf "| %s ", rows[r]
            for (i = 0; i < columns; i++) {
                n = count[rows[r], i]
                printf "| %s ", n ? value[rows[r], i, int((n + 1) / 2)] : "-"
            }
            print "|"
        }
    }'
