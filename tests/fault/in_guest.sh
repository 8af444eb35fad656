#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# in_guest.sh VERBS_FAULT: its cases that need a cable or a real driver, one after another, inside the Soft-RoCE guest, which
# takes longer to boot than most of them last.
set -u
fault=$1
failures=0

# netem add|del: every packet is lost with a probability of 1 %.
netem() {
    tc qdisc "$1" dev v0 root netem loss 1% && tc qdisc "$1" dev v1 root netem loss 1%
}

run() {
    local start=$SECONDS
    "$fault" "$1" || failures=$((failures + 1))
    echo "   ($((SECONDS - start)) s)"
}

for case in kill stop heal; do
    run $case
done
netem add || failures=$((failures + 1))
run loss
netem del || failures=$((failures + 1))
run link # the last one, since it leaves the cable cut
[ $failures = 0 ]
