#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# examples.sh BIN IMAGE (in the guest): the examples on 4 PEs, two on either device, with verbs between all of them. They
# check their results themselves; here it is checked that both devices were used.
set -euo pipefail
bin=$1 image=$2
export GPUSHMEM_TRANSPORTS=verbs

run() {
    echo "examples.sh: $*"
    # shellcheck disable=SC2016
    "$bin/gpushmem" run -n 4 bash -c 'GPUSHMEM_VERBS_DEVICES=rxe$((GPUSHMEM_RUN_PE / 2)) exec "$@"' pe "$@"
}

run "$bin/hello"
run "$bin/heat" --image "$image" --steps 20 --check
run "$bin/gups" 500
run "$bin/moe_dispatch" 32 256 5
run "$bin/kv_transfer" 4 512
for device in rxe0 rxe1; do
    sent=$(cat /sys/class/infiniband/$device/ports/1/hw_counters/sent_pkts)
    echo "examples.sh: $device sent $sent packets"
    [ "$sent" -ge 20 ]
done
