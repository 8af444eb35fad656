#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# team_lost.sh BIN_DIR PES NODES SEED...: jobs of tests/fault/team_lost.c, in which one PE is killed; all others live on.
set -uo pipefail
bin=$1 pes=$2 nodes=$3
shift 3
for seed; do
    output=$("$bin/gpushmem" run -q -n "$pes" --nodes "$nodes" --on-failure continue --timeout 60 "$bin/team_lost" "$seed" 2>&1)
    living=$(grep -c survives <<<"$output")
    if [ "$living" != $((pes - 1)) ] || grep -q 'not true' <<<"$output"; then
        echo "seed $seed: $living of $((pes - 1)) PEs live on:"
        echo "$output"
        exit 1
    fi
done
