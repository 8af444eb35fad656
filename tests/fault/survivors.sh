#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# survivors.sh BIN_DIR SOFTHCA KIND FIRST COUNT [PROGRAM]: jobs of tests/fault/survivors.c, or op_survivors.c, in which one PE
# ends, over KIND: p2p, verbs, rails, staged, nodes, or any of these (drawn from the seed); ofi. What fails is printed as the
# command that repeats it.
set -uo pipefail
[ $# = 5 ] || [ $# = 6 ] || {
    echo "usage: survivors.sh BIN_DIR SOFTHCA p2p|verbs|rails|staged|nodes|any|ofi FIRST COUNT [survivors|op_survivors]" >&2
    exit 2
}
bin=$1 softhca=$2 wanted=$3 first=$4 count=$5 program=${6:-survivors}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# Writes are acknowledged before they are there. A NIC places them in its order, whatever their queue pair: where more than
# one context writes, only the NICs of further rails are late (softhca/random.sh).
late() {
    settings+=("GPUSHMEM_SOFTHCA_LATE_US=$1")
    [ "$program" != op_survivors ] ||
        settings+=("GPUSHMEM_VERBS_DEVICES=softhca0,softhca1,softhca2" GPUSHMEM_SOFTHCA_LATE_DEVICES=6 GPUSHMEM_VERBS_RAILS=2)
}

# Sets `job` and `settings` from the seed.
draw() {
    local kind=$wanted pes nodes=1 rounds=200
    RANDOM=$1
    [ "$kind" != any ] || read -r kind < <(shuf -n 1 -e p2p verbs staged nodes --random-source=<(yes "$1"))
    pes=$((3 + RANDOM % 3))
    settings=(GPUSHMEM_HEAP_SIZE=16M GPUSHMEM_VERBS_TIMEOUT=14 GPUSHMEM_TEST_VERBS_RETRY_COUNT=6)
    case $kind in
    p2p) settings+=(GPUSHMEM_TRANSPORTS=p2p) rounds=2000 ;;
    rails) settings+=(GPUSHMEM_TRANSPORTS=verbs GPUSHMEM_TEST_VERBS_STRIPE=4096 "GPUSHMEM_VERBS_RAILS=$((2 + $1 % 3))") ;;
    verbs) settings+=(GPUSHMEM_TRANSPORTS=verbs) ;;
    staged) settings+=(GPUSHMEM_TRANSPORTS=verbs GPUSHMEM_GPUDIRECT=never) rounds=20 ;;
    nodes)
        settings+=("GPUSHMEM_TRANSPORTS=p2p,verbs")
        nodes=2
        ;;
    ofi)
        settings+=("GPUSHMEM_TRANSPORTS=p2p,ofi" GPUSHMEM_OFI_PROVIDER=tcp GPUSHMEM_OFI_DOMAIN=lo)
        nodes=$((2 + $1 % (pes - 1))) rounds=50
        ;;
    *)
        echo "survivors.sh: no kind $kind" >&2
        exit 2
        ;;
    esac
    ((RANDOM % 4)) || settings+=(GPUSHMEM_SOFTHCA_REORDER=1 "GPUSHMEM_SOFTHCA_SEED=$1")
    ((RANDOM % 4)) || [ "$kind" = rails ] || settings+=(GPUSHMEM_VERBS_RAILS=2)
    ((RANDOM % 3)) || settings+=("GPUSHMEM_SOFTHCA_MISORDER_US=$((1 + RANDOM % 100))")
    ((RANDOM % 3)) || late "$((1 + RANDOM % 200))"
    # of more flows: they are closed and made again, which takes most of the time
    ((RANDOM % 2)) || [ "$kind" = p2p ] || { settings+=(GPUSHMEM_VERBS_QUEUE_PAIRS=2) && rounds=$((rounds < 40 ? rounds : 40)); }
    job=("$bin/gpushmem" run -q -n "$pes" --nodes "$nodes" --on-failure continue --timeout "${LIMIT:-60}"
        "$bin/$program" "$1")
    [ "$program" != survivors ] || job+=("$rounds")
}

# Every PE but the dead one lives on. (If that is the last to go, its NIC's file stays: nobody is there to remove it.)
is_good() {
    local n
    n=$(grep -c 'survives:' "$scratch/log")
    [ $((n + 1)) -ge "${job[4]}" ] && ! grep -q 'not true' "$scratch/log"
}

for ((seed = first; seed < first + count; seed++)); do
    draw "$seed"
    mkdir -p "$scratch/nics" && chmod 700 "$scratch/nics"
    env LD_PRELOAD="$softhca" GPUSHMEM_SOFTHCA_DIR="$scratch/nics" GPUSHMEM_SOFTHCA_DEVICES=4 GPUSHMEM_SOFTHCA_QUIET=1 \
        "${settings[@]}" "${job[@]}" >"$scratch/log" 2>&1
    if ! is_good; then
        failed=$((failed + 1))
        echo "seed $seed: ${settings[*]} ${job[*]}"
        sed 's/^/    /' "$scratch/log"
    elif [ -n "${VERBOSE:-}" ]; then
        grep -h -e survives -e rounds "$scratch/log"
    fi
    rm -rf "$scratch/nics"
done
echo "$((count - failed)) of $count jobs: all but the dead one lived on; seeds $first to $((first + count - 1))"
[ "$failed" = 0 ] && [ "$count" -gt 0 ]
