#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# apart.sh LINK gpushmem run OPTION... PROGRAM...: a job whose nodes are in network namespaces of their own, with one link between
# each and a bridge. PROGRAM is what every PE runs. LINK is what the link is like:
#
#   plain       nothing happens to it
#   rough       packets take 5 ms, and one of a hundred is lost (77, with a sentence, where the kernel has no netem)
#   narrow      it is slow and drops what does not fit into a short queue: packets are lost without netem, too. That some were is
#               part of the test
#   cut         when all PEs have told that they are at work, it is down for 5 s
#   dead        then it goes down for good
#
# A PE tells by a line to the pipe that APART_BEGUN names.
#
# apart.sh --list LIST BIN GPU: the jobs of LIST (apart.list), one after another, over links to which nothing happens. BIN has the
# programs, GPU the library that stands for the driver of GPUs.
# Skips with 77 where namespaces may not be made. The job ends if this is killed.
set -uo pipefail
self=$(readlink -f "$0")
root=${self%/tests/*}

# A PE: its node's namespace, by its number.
if [ "$1" = --pe ]; then
    node=$((GPUSHMEM_RUN_PE * APART_NODES / GPUSHMEM_RUN_SIZE))
    shift
    exec ip netns exec "node$node" "$@"
fi

if [ "$1" != --inside ]; then
    ip=$(command -v ip) || ip=/usr/sbin/ip
    [ -x "$ip" ] || { echo "apart.sh: there is no ip (iproute2)" && exit 77; }
    unshare -Urnm true 2>/dev/null || { echo "apart.sh: network namespaces may not be made here" && exit 77; }
    exec unshare -Urnm "$self" --inside "$@"
fi
shift
link=$1
shift
[ "$link" != --list ] || { list=$1 bin=$2 gpu=$3 && set --; }
PATH=$PATH:/usr/sbin
export APART_NODES=${APART_NODES:-2}

netem() {
    ip netns exec "node$1" tc qdisc add dev eth0 root netem delay 5ms loss 1% 2>/dev/null ||
        { echo "apart.sh: the kernel has no netem" && exit 77; }
}

# So little waits at the bridge that a burst loses its end. (At the sender TCP would hold it back.)
narrow() {
    tc qdisc add dev "port$1" root tbf rate 1gbit burst 16kb limit 32kb 2>/dev/null ||
        { echo "apart.sh: the kernel has no tbf" && exit 77; }
}

drops() {
    for ((node = 0; node < APART_NODES; node++)); do
        tc -s qdisc show dev "port$node"
    done | awk '/dropped/ { sub(",", "", $7); all += $7 } END { print all + 0 }'
}

mount -t tmpfs tmpfs /run && ip link add bridge type bridge && ip link set bridge up ||
    { echo "apart.sh: network namespaces may not be made here" && exit 77; }
for ((node = 0; node < APART_NODES; node++)); do
    ip netns add "node$node" && ip link add "port$node" type veth peer name eth0 netns "node$node" || exit 1
    ip link set "port$node" master bridge up
    ip -n "node$node" addr add "10.77.0.$((node + 1))/24" dev eth0
    ip -n "node$node" link set eth0 up
    ip -n "node$node" link set lo up
    # libfabric sees an interface when its link is there, which is a moment after "up".
    for ((tick = 0; tick < 200; tick++)); do
        ip -n "node$node" link show eth0 | grep -q LOWER_UP && break
        sleep 0.01
    done
    [ "$link" != rough ] || netem "$node"
    [ "$link" != narrow ] || narrow "$node"
done

# Job and script have a place of their own in the pipe, so that none of them waits for the other to open it.
begun() {
    mkfifo /run/begun && exec 3<>/run/begun && export APART_BEGUN=/run/begun || exit 1
}

# all PES: when so many have begun.
all() {
    for ((pe = 0; pe < $1; pe++)); do
        read -r -u 3
    done
}

# What runs a job. PEs that look for an answer without a pause can keep this script from the link for many seconds on a machine
# that has much to do: it comes first.
in_back=(nice -n 10 setpriv --pdeathsig TERM)

# job PES [gpu] [NAME=VALUE]... PROGRAM [ARGUMENT]...: what it says is shown if it fails, or if the library in the place of the
# GPU's driver complains.
job() {
    local pes=$1 begin=$EPOCHREALTIME settings=() said
    shift
    while [ "$1" = gpu ] || [[ $1 == *=* ]]; do
        [ "$1" = gpu ] || settings+=("$1")
        [ "$1" != gpu ] || settings+=(LD_LIBRARY_PATH="$gpu" GPUSHMEM_HEAP_KIND=device)
        shift
    done
    local arguments=("${@:2}")
    arguments=("${arguments[@]/#@/$root/}")
    said=$(exec "${in_back[@]}" env "${settings[@]}" "$bin/gpushmem" run -n "$pes" --nodes 2 --timeout 60 \
        "$self" --pe "$bin/$1" "${arguments[@]}" 2>&1)
    local status=$?
    if [ "$status" != 0 ] || [[ $said == *"fake cuda: "* ]]; then
        printf '%s\nFAILED (%d): %s\n' "$said" "$status" "$*"
        return 1
    fi
    printf '%5d ms %s\n' $(((${EPOCHREALTIME/./} - ${begin/./}) / 1000)) "$*"
}

# All of the list, whatever becomes of one.
if [ "$link" = --list ]; then
    failed=0
    while read -r -a row; do
        [ ${#row[@]} = 0 ] || [[ ${row[0]} == [#-] ]] || job "${row[@]}" </dev/null || failed=$((failed + 1))
    done <"$list"
    echo "apart.sh: $failed of its jobs failed"
    exit $((failed != 0))
fi

job=()
pes=0
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    [ "$1" != -n ] || pes=$2
    job+=("$1")
    shift
done
shift
case $link in
cut)
    begun
    (all "$pes" && ip link set port1 down && sleep 5 && ip link set port1 up) &
    ;;
dead)
    begun
    (all "$pes" && ip link set port1 down) &
    ;;
plain | rough | narrow) ;;
*) echo "apart.sh: no link '$link'" && exit 2 ;;
esac

# Each PE of the job is put into its namespace.
"${in_back[@]}" "${job[@]}" "$self" --pe "$@"
status=$?
[ -z "$(jobs -p)" ] || kill "$(jobs -p)" 2>/dev/null
if [ "$link" = narrow ]; then
    lost=$(drops)
    echo "apart.sh: $lost packets were dropped"
    [ "$lost" -gt 0 ] || exit 1
fi
exit "$status"
