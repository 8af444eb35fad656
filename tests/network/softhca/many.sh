#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# many.sh GPUSHMEM PROGRAM PES NODES MOST: that job of true processes over the software HCA. Three PEs tell what they
# connect: at most MOST flows each, whether they began or were called. Prints how many there were, and how long the job took.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
gpushmem=$1 program=$2 pes=$3 nodes=$4 most=$5
told="0 $((pes / 2 - 1)) $((pes - 1))"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
begin=$EPOCHREALTIME
GPUSHMEM_SOFTHCA_QUIET=1 "$gpushmem" run -n "$pes" --nodes "$nodes" "$here/on_pes.sh" "$told" GPUSHMEM_LOG_LEVEL=debug \
    "$program" >"$log" 2>&1 || { grep -v -e DEBUG -e INFO "$log" | tail -20 && exit 1; }
echo "$pes PEs on $nodes nodes: $(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s"
for pe in $told; do
    flows=$(grep -c "gpushmem\[$pe\] DEBUG verbs: PE [0-9]*, channel [0-9]*: connected after" "$log" || true)
    echo "PE $pe: $flows flows connected"
    [ "$flows" -gt 0 ] && [ "$flows" -le "$most" ]
done
