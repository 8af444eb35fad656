#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# random.sh BIN_DIR SOFTHCA FIRST COUNT: programs of several PEs over the software HCA, each under settings drawn from its seed.
# A failure prints the line that repeats it: the seeds FIRST .. FIRST + COUNT - 1 make the same choices everywhere.
set -uo pipefail
[ $# = 4 ] || {
    echo "usage: random.sh BIN_DIR SOFTHCA FIRST COUNT" >&2
    exit 2
}
bin=$1 softhca=$2 first=$3 count=$4
programs=('multi_rma' 'multi_amo 10' 'multi_signal 40' 'multi_wait 8' 'multi_sync 60' 'multi_context 10' 'multi_threads 10'
    'device_basic' 'device_rma' 'device_amo 5' 'device_order' 'device_tiny 1' 'device_stream' 'lifecycle')
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# one_in N: true once in N times.
one_in() {
    ((RANDOM % $1 == 0))
}

# Sets the arrays `job` and `settings`.
draw() {
    local pes nodes=1 transports=verbs
    RANDOM=$1
    read -ra program <<<"${programs[RANDOM % ${#programs[@]}]}"
    pes=$((1 + RANDOM % 5))
    [[ ${program[0]} != device_* || $pes -lt 4 ]] || pes=2 # hundreds of threads each
    settings=("GPUSHMEM_SOFTHCA_SEED=$1" GPUSHMEM_HEAP_SIZE=64M)
    one_in 2 && settings+=(GPUSHMEM_SOFTHCA_REORDER=1)
    one_in 2 && settings+=("GPUSHMEM_SOFTHCA_DELAY_US=$((RANDOM % 60))")
    one_in 2 && settings+=("GPUSHMEM_SOFTHCA_ATOMIC_GAP_US=$((RANDOM % 30))")
    one_in 3 && settings+=("GPUSHMEM_SOFTHCA_POST_FULL_EVERY=$((1 + RANDOM % 9))")
    one_in 4 && settings+=(GPUSHMEM_SOFTHCA_MAX_INLINE=0)
    one_in 3 && settings+=("GPUSHMEM_SOFTHCA_DATAGRAM_LOSS=$((RANDOM % 50))" "GPUSHMEM_SOFTHCA_DATAGRAM_TWICE=$((RANDOM % 50))")
    one_in 5 && settings+=(GPUSHMEM_CONNECT=init)
    one_in 3 && settings+=("GPUSHMEM_VERBS_QUEUE_PAIRS=$((1 + RANDOM % 4))")
    one_in 5 && settings+=(GPUSHMEM_SOFTHCA_ATOMIC_CAP=glob)
    one_in 3 && settings+=(GPUSHMEM_VERBS_RAILS=2)
    one_in 3 && settings+=(GPUSHMEM_TEST_VERBS_STRIPE=4K)
    one_in 3 && settings+=(GPUSHMEM_TEST_VERBS_SQ_DEPTH=16)
    one_in 3 && settings+=(GPUSHMEM_TEST_VERBS_BOUNCE=64K)
    one_in 3 && settings+=(GPUSHMEM_TEST_VERBS_INLINE=0)
    one_in 3 && settings+=("GPUSHMEM_TEST_VERBS_SIGNAL_EVERY=$((1 + RANDOM % 4))")
    one_in 4 && settings+=(GPUSHMEM_TEST_VERBS_RD_ATOMIC=1)
    one_in 4 && settings+=(GPUSHMEM_GPUDIRECT=never)
    one_in 3 && settings+=(GPUSHMEM_TEST_RING_ENTRIES=64)
    # device_order puts one word again and again without a fence, and takes for granted that it never goes back.
    one_in 3 && [ "${program[0]}" != device_order ] && settings+=("GPUSHMEM_SOFTHCA_MISORDER_US=$((1 + RANDOM % 200))")
    one_in 4 && settings+=(GPUSHMEM_VERBS_RAILS=3)
    # What tells of a put goes by rail 0, on the way of what rail 0 wrote: the NICs of the others are late. With one
    # rail PEs spread over the NICs.
    one_in 3 && settings+=("GPUSHMEM_VERBS_DEVICES=softhca0,softhca1,softhca2" GPUSHMEM_SOFTHCA_LATE_DEVICES=6
        "GPUSHMEM_SOFTHCA_LATE_US=$((1 + RANDOM % 300))" "GPUSHMEM_VERBS_RAILS=$((2 + RANDOM % 2))")
    one_in 4 && transports=p2p,verbs && settings+=(GPUSHMEM_AMO_AGENT=nic "GPUSHMEM_P2P=$((RANDOM % 2))")
    one_in 3 && nodes=$((1 + RANDOM % pes))
    # Instead of what was drawn above.
    one_in 3 && settings+=(GPUSHMEM_SOFTHCA_ATOMIC_CAP=none GPUSHMEM_AMO_AGENT=auto)
    one_in 6 && settings+=(GPUSHMEM_AMO_AGENT=cpu)
    one_in 8 && program=(softhca_atomics_mix 40)
    one_in 4 && program=(multi_rma_random "$1" 1 3 400) && { one_in 2 || settings+=("GPUSHMEM_CONTEXTS=$((1 + RANDOM % 5))"); }
    settings+=("GPUSHMEM_TRANSPORTS=$transports")
    job=("$bin/gpushmem" run -n "$pes" --nodes "$nodes" --timeout 100 "$bin/${program[0]}" "${program[@]:1}")
}

for ((seed = first; seed < first + count; seed++)); do
    draw "$seed"
    mkdir -m 700 "$scratch/nics"
    if ! env LD_PRELOAD="$softhca" GPUSHMEM_SOFTHCA_DIR="$scratch/nics" GPUSHMEM_SOFTHCA_DEVICES=3 GPUSHMEM_SOFTHCA_QUIET=1 \
        "${settings[@]}" "${job[@]}" >"$scratch/log" 2>&1; then
        failed=$((failed + 1))
        echo "seed $seed: ${settings[*]} ${job[*]}"
        tail -n 20 "$scratch/log" | sed 's/^/    /'
    fi
    rm -rf "$scratch/nics"
done
echo "$((count - failed)) of $count jobs passed, seeds $first to $((first + count - 1))"
[ "$failed" = 0 ] && [ "$count" -gt 0 ]
