#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# demo.sh: installs what is missing, builds, and runs gpushmem's main job: heat diffusion over a picture, split over 4
# PEs whose kernels put their halos into each other's memory, first over shared memory, over TCP by libfabric, then over verbs
# between two RDMA devices (Soft-RoCE in a small guest). Each result must equal a serial run bit for bit.
#
#   demo.sh [--preset P] [--steps N] [--image FILE.pgm]
#
# The pictures are left in build/demo. The last line is "demo: ok: ..." or "demo: failed: why".
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=release steps=200 image=$root/examples/10-heat/input.pgm

fail() {
    echo "demo: failed: $*"
    exit 1
}

parse_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        --help | -h) sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" && exit 0 ;;
        --preset | --steps | --image) [ $# -ge 2 ] || fail "$1 needs a value (demo.sh --help)" ;;
        *) fail "unknown option $1 (demo.sh --help)" ;;
        esac
        case $1 in
        --preset) preset=$2 ;;
        --steps) steps=$2 ;;
        --image) image=$2 ;;
        esac
        shift 2
    done
}

build() {
    local log=$root/build/$preset/demo-build.log
    mkdir -p "$root/build/$preset"
    cd "$root" || exit 1
    echo "demo: building (cmake --preset $preset)"
    { cmake --preset "$preset" -G Ninja &&
        cmake --build "build/$preset" -j "$(nproc)" --target gpushmem_cli heat; } >"$log" 2>&1 || {
        tail -n 40 "$log"
        fail "the build (see $log)"
    }
}

main() {
    parse_options "$@"
    "$root/tests/setup.sh" build softroce || fail "setting up (see above)"
    build
    local bin=$root/build/$preset/bin out=$root/build/demo
    mkdir -p "$out"
    rm -f "$out"/*.png "$out/packets"

    echo "demo: 4 PEs, shared memory"
    GPUSHMEM_TRANSPORTS=p2p "$bin/gpushmem" run -n 4 "$bin/heat" --image "$image" --steps "$steps" \
        --out "$out/p2p.png" --check || fail "4 PEs over p2p (exit code $?)"

    echo "demo: 4 PEs on two nodes, TCP between them (libfabric)"
    GPUSHMEM_TRANSPORTS=p2p,ofi "$bin/gpushmem" run -n 4 --nodes 2 "$bin/heat" --image "$image" --steps "$steps" \
        --out "$out/ofi.png" --check || fail "4 PEs over ofi (exit code $?)"

    # PEs 0 and 1 on one device, 2 and 3 on the other; verbs only, so that every halo goes through a NIC.
    echo "demo: 4 PEs, verbs, two RDMA devices (in a guest; emulated, so slower)"
    # shellcheck disable=SC2016
    "$root/tests/network/softroce/guest.sh" --out "$out" --env GPUSHMEM_TRANSPORTS=verbs -- bash -c '
        "$0" run -n 4 bash -c "GPUSHMEM_VERBS_DEVICES=rxe\$((GPUSHMEM_RUN_PE / 2)) exec \"\$@\"" heat "$@" || exit
        cd /sys/class/infiniband && grep . */ports/1/hw_counters/sent_pkts | tee "$OUT/packets"' \
        "$bin/gpushmem" "$bin/heat" --image "$image" --steps "$steps" --out "$out/verbs.png" --check ||
        fail "4 PEs over verbs (exit code $?)"
    [ "$(awk -F: '$2 >= '"$steps" "$out/packets" | wc -l)" = 2 ] || fail "not both devices sent the halos: $out/packets"

    cmp "$out/p2p.png" "$out/verbs.png" || fail "p2p and verbs give different pictures: $out"
    cmp "$out/p2p.png" "$out/ofi.png" || fail "p2p and ofi give different pictures: $out"
    echo "demo: the pictures are in $out"
    echo "demo: ok: $steps steps on 4 PEs, over p2p, ofi and verbs, equal to the serial run bit for bit"
}

main "$@"
