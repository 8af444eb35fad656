#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# apart_killed.sh GPUSHMEM: the PEs of a job of apart.sh end when that is killed, in the middle of a list, too. Skips as it does.
set -uo pipefail
apart=$(cd "$(dirname "$0")" && pwd)/apart.sh
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
ln -s "$1" "$work/gpushmem"
printf '#!/bin/sh\necho $$ >>"${0%%/*}/pids"\nexec sleep 100\n' >"$work/stay"
chmod +x "$work/stay"
echo "2 stay" >"$work/list"

# within COMMAND...: until it succeeds, for 10 s at most.
within() {
    for ((tick = 0; tick < 500; tick++)); do
        "$@" && return
        sleep 0.02
    done
    return 1
}

have_begun() {
    [ "$(wc -l <"$work/pids")" = 2 ] || ! kill -0 "$script" 2>/dev/null
}

have_ended() {
    local pid
    while read -r pid; do
        ! kill -0 "$pid" 2>/dev/null || return 1
    done <"$work/pids"
}

# killed ARGUMENT...: of apart.sh
killed() {
    : >"$work/pids"
    "$apart" "$@" >"$work/said" 2>&1 &
    script=$!
    within have_begun
    kill -KILL "$script" 2>/dev/null
    wait "$script" 2>/dev/null
    [ $? != 77 ] || { cat "$work/said" && exit 77; }
    [ "$(wc -l <"$work/pids")" = 2 ] && within have_ended && return
    echo "apart.sh $1: its PEs $(tr '\n' ' ' <"$work/pids")did not begin, or run on"
    cat "$work/said"
    xargs -r kill <"$work/pids"
    exit 1
}

killed plain "$work/gpushmem" run -n 2 --nodes 2 --timeout 60 -- "$work/stay"
killed --list "$work/list" "$work" "$work"
echo "apart_killed.sh: ok"
