#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# team_survivors.sh BIN_DIR PES NODES FIRST COUNT: jobs of tests/fault/team_survivors.c with the seeds FIRST and on, in which
# PEs are killed; all others live on.
set -uo pipefail
bin=$1 pes=$2 nodes=$3 first=$4 count=$5 failed=0
for ((seed = first; seed < first + count; seed++)); do
    output=$("$bin/gpushmem" run -q -n "$pes" --nodes "$nodes" --on-failure continue --timeout 60 \
        "$bin/team_survivors" "$seed" 2>&1)
    living=$(grep -c ' survives, ' <<<"$output")
    lost=$(sed -n 's/.* survives, \([0-9]*\) lost/\1/p' <<<"$output" | sort -u)
    if [ "$((living + ${lost:-0}))" != "$pes" ] || [ "$living" = 0 ] || grep -q 'not true' <<<"$output"; then
        failed=$((failed + 1))
        echo "seed $seed: $living of $pes PEs live on, $lost were to be lost:"
        echo "$output"
    fi
done
echo "$((count - failed)) of $count jobs with $pes PEs on $nodes nodes: all that were not killed lived on"
[ "$failed" = 0 ] && [ "$count" -gt 0 ]
