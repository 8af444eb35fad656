#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# compare.sh: gpushmem against perftest (ib_write_lat and its family) over the same two Soft-RoCE devices, in one guest.
#
#   compare.sh [--preset P] [--rounds N] [--keep DIR]
#     --preset P   the build to measure, build/P (default release)
#     --rounds N   measure everything N times, ours and theirs in turn, and take medians (default 5)
#     --keep DIR   keep what each program printed in DIR
#
# Conventions, the same on both sides:
#   latency    median of single operations, in us; write: half of the round trip of a ping-pong in which either side
#              polls memory; read, fetch-add: the whole round trip until the result is there
#   bandwidth  one direction, many operations in flight, in MB/s of 10^6 bytes (perftest's "MB" are 2^20 bytes)
#   rate       fetch-adds per second with many in flight
# The first device belongs to the initiator, the second to the target. perftest uses no inline data on rxe.
#
# Prints a table, then lines "ratio NAME VALUE": ours over theirs, so latencies are good below 1, the others above.
# The row "put-lat device" has our host-issued latency in the place of theirs: what ring and proxy cost.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)

die() {
    echo "compare.sh: $*" >&2
    exit 1
}

### In the guest ###

# theirs ROUND NAME PROGRAM OPTION...: perftest's server on rxe1, its client on rxe0.
theirs() {
    local log=$OUT/theirs-$1-$2.log tries=0
    shift 2
    "$@" -F -d rxe1 >"$log.server" 2>&1 &
    until ss -ltn | grep -q :18515; do
        sleep 0.05
        tries=$((tries + 1))
        [ "$tries" -lt 400 ] || die "the server of $* does not listen: $(tail -n 1 "$log.server")"
    done
    "$@" -F -d rxe0 10.1.0.2 >"$log" 2>&1 || die "$* failed: $(tail -n 1 "$log")"
    wait
}

# ours ROUND NAME OPTION...: PE r on rxe<r>.
ours() {
    local json=$OUT/ours-$1-$2.json
    shift 2
    # shellcheck disable=SC2016
    "$bin/gpushmem" run -n 2 bash -c 'GPUSHMEM_VERBS_DEVICES=rxe$GPUSHMEM_RUN_PE exec "$@"' perf \
        "$bin/gpushmem" perf "$@" --json "$json" >"$json.log" 2>&1 || die "gpushmem perf $* failed: $(tail -n 3 "$json.log")"
}

# The iterations make a run about a second long; connecting costs half of one.
measure_round() {
    local r=$1
    theirs "$r" put-lat-8 ib_write_lat -s 8 -n 2000
    ours "$r" put-lat-8 put-lat --issuer host --sizes 8
    ours "$r" put-lat-8-device put-lat --issuer device --sizes 8
    theirs "$r" get-lat-8 ib_read_lat -s 8 -n 2000
    ours "$r" get-lat-8 get-lat --issuer host --sizes 8
    theirs "$r" amo-lat ib_atomic_lat -A FETCH_AND_ADD -n 2000
    theirs "$r" amo-rate ib_atomic_bw -A FETCH_AND_ADD -n 5000
    ours "$r" amo amo --issuer host
    theirs "$r" put-bw-65536 ib_write_bw -s 65536 -n 1000
    theirs "$r" put-bw-1048576 ib_write_bw -s 1048576 -n 200
    ours "$r" put-bw put-bw --issuer host --sizes 65536,1048576
    theirs "$r" get-bw-65536 ib_read_bw -s 65536 -n 1000
    theirs "$r" get-bw-1048576 ib_read_bw -s 1048576 -n 200
    ours "$r" get-bw get-bw --issuer host --sizes 65536,1048576
}

inside() {
    bin=$2
    export GPUSHMEM_TRANSPORTS=verbs
    local r
    for ((r = 1; r <= $1; r++)); do
        echo "round $r of $1"
        measure_round "$r"
    done
}

### On the host ###

main() {
    local preset=release rounds=5 keep=''
    while [ $# -gt 0 ]; do
        case $1 in
        --help | -h) sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" && exit 0 ;;
        --preset | --rounds | --keep) [ $# -ge 2 ] || die "$1 needs a value (compare.sh --help)" ;;
        *) die "unknown option $1 (compare.sh --help)" ;;
        esac
        case $1 in
        --preset) preset=$2 ;;
        --rounds) rounds=$2 ;;
        --keep) keep=$2 ;;
        esac
        shift 2
    done
    case $rounds in '' | 0 | *[!0-9]*) die "--rounds wants a positive number, not '$rounds'" ;; esac
    "$here/../../setup.sh" build softroce
    if [ -z "$keep" ]; then
        keep=$(mktemp -d "${TMPDIR:-/tmp}/compare.XXXXXX")
        # shellcheck disable=SC2064 # a local variable: now is when it is known
        trap "rm -rf '$keep'" EXIT
    fi
    mkdir -p "$keep"
    rm -f "$keep"/ours-* "$keep"/theirs-*
    echo "compare.sh: building (cmake --preset $preset)" >&2
    (cd "$root" && cmake --preset "$preset" -G Ninja && cmake --build "build/$preset" --target gpushmem_cli gpushmem-perf) \
        >"$keep/build.log" 2>&1 || die "the build failed: $(tail -n 20 "$keep/build.log")"
    "$here/guest.sh" --timeout $((120 + 90 * rounds)) --out "$keep" -- \
        bash "$here/compare.sh" --inside "$rounds" "$root/build/$preset/bin" >&2
    python3 "$here/compare_table.py" "$keep"
}

if [ "${1:-}" = --inside ]; then
    inside "$2" "$3"
else
    main "$@"
fi
