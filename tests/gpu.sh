#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2086 # words are split on purpose
# gpu.sh: builds on a GPU host and runs what needs a GPU; the last line is "N passed, N failed".
#
#   gpu.sh [--build DIR] [--built] [--quick] [--only REGEX] [--perf] [--coll] [--pes N]
#     --build DIR  build folder (default: build/gpu)
#     --built      the folder is built already, with this source: GPU hosts have other things to do than compile
#     --quick      without compute-sanitizer
#     --only REGEX the tests with such a name (grep -E), e.g. 'memcheck|racecheck'
#     --perf       afterwards the benchmark rows of docs/benchmarks.md (two PEs; two GPUs if there are) and the command ring's
#     --coll       no tests: the tables of collectives of docs/benchmarks.md, beside NCCL if there is one (GPUSHMEM_NCCL=FILE)
#     --pes N      PEs of --coll, with a GPU each (default: 2)
#
# GPUSHMEM_BITCODE=FILE is libnvshmem_device.bc for Triton, from `ninja nvshmem_device_bc` on any machine with clang 19 or newer
# (default: that of the build folder, if it is there).
#
# Wants CMake, Ninja, a C and a C++ compiler, pkg-config with pmix, hwloc and libibverbs, and CUDA under /usr/local/cuda (or
# nvcc in PATH). Ubuntu 24.04 and Debian 12 are known. Each device test runs with 2 PEs and, where it makes sense, 1, 3 and 4:
# PEs share a GPU where there are fewer GPUs than PEs: with CUDA_VISIBLE_DEVICES=0 all of them. Exit code 77: there is no GPU.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
build=build/gpu built='' quick='' only='' perf='' coll='' pes=2 passed=0 failed=0
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2 && shift ;;
    --built) built=1 ;;
    --quick) quick=1 ;;
    --only) only=$2 && shift ;;
    --perf) perf=1 ;;
    --coll) coll=1 ;;
    --pes) pes=$2 && shift ;;
    *) sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$0" && exit 2 ;;
    esac
    shift
done

# Not the whole build: what runs here.
targets='gpushmem gpushmem_cli gpushmem_nvshmem gpushmem-perf.cuda gpu_heap gpu_adopted multi_growth gpu_ops gpu_hosted gpu_beside gpu_two_steps perf_gpu_ring_rates perf_gpu_nic_posts'
targets+=' perf_put_path.cuda gpushmem_softhca fake_mlx5 softhca_test gpu_cubin gpu_rdc gpu_behind gpu_copied moe_dispatch.cuda kv_transfer.cuda allreduce.cuda stencil3d.cuda transpose.cuda kmeans.cuda'
for name in basic rma amo order carried ctx edges errors tiny lost growth stream local generic cuda_subset asked first spread \
    second_kernel launch_threads left_waiting collective_launch coll_grid coll coll_kinds coll_issuers coll_lost coll_nodes \
    large_blocks nvshmem_rma nvshmem_words nvshmem_coll nvshmem_programs; do
    [ ! -e tests/device/$name.cu ] || targets+=" device_$name.cuda"
done
targets+=' heat.cuda gups.cuda'
for name in device_{basic,rma,amo,order,ctx,edges,stream,coll} moe_dispatch kv_transfer heat gups; do
    targets+=" ${name}_posts.cuda"
done
targets+=' device_large_blocks_linked.cuda'
[ -z "$coll" ] || targets='gpushmem gpushmem_cli gpushmem-perf.cuda'
export PATH=$PATH:/usr/local/cuda/bin
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU') || true
[ "${gpus:-0}" -gt 0 ] || { echo "gpu.sh: nvidia-smi shows no GPU here" && exit 77; }
[ -z "${CUDA_VISIBLE_DEVICES-}" ] || gpus=$(tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c .)
echo "GPUs: $gpus of $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sort | uniq -c | tr -s ' \n' ' ')"

log=$(mktemp)
nics=/dev/shm/gpushmem-gpu.sh-$$ # of the software HCA
trap 'rm -rf "$log" "$log.png" "$nics"' EXIT
if [ -z "$built" ]; then
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGPUSHMEM_CUDA=ON >"$log" 2>&1 &&
        ninja -C "$build" $targets >>"$log" 2>&1 || { tail -40 "$log" && echo "0 passed, 1 failed (the build)" && exit 1; }
fi
build=$(cd "$build" && pwd) # LD_PRELOAD and programs in other folders want it absolute
bin=$build/bin bitcode=${GPUSHMEM_BITCODE:-$build/lib/libnvshmem_device.bc}
unset GPUSHMEM_BITCODE # no setting of the library

# Nobody hangs: every wait ends with an error that says who waited for what. Kernels are loaded ahead: at a kernel's first
# launch the driver may wait for the running ones, which may be waiting for it.
export GPUSHMEM_HEAP_SIZE=128M GPUSHMEM_WAIT_TIMEOUT_MS=15000 GPUSHMEM_HEAP_KIND=device CUDA_MODULE_LOADING=EAGER
export GPUSHMEM_SETTINGS_FILE=none GPUSHMEM_HANG_REPORT=12 # a test that hangs says where before its time is over

# One line for each operation and size, of what gpushmem perf prints: us, and where NCCL was there our time by its.
coll_table() {
    awk '/^# issued by:/ { issuer = $4; sub(";", "", issuer) }
        $3 ~ /^(B|KiB|MiB|GiB)$/ {
            name = $1; side = sub(/^nccl-/, "", name); size = $2 " " $3; row = name " " size
            if (!(name in names)) { names[name] = 1; name_of[++n_names] = name }
            if (!(size in sizes)) { sizes[size] = 1; size_of[++n_sizes] = size }
            us[row, issuer, side] = $4; issuers[issuer] = 1; rows[row] = 1
        }
        function ratio(row, issuer) {
            return (row, issuer, 1) in us ? sprintf("%.2f", us[row, issuer, 0] / us[row, issuer, 1]) : ""
        }
        function line_of(row, line, k, issuer) {
            line = "| " row " |"
            if ("thread" in issuers)
                return line " " us[row, "thread", 0] " | " us[row, "warp", 0] " | " us[row, "block", 0] \
                    " | " us[row, "32", 0] " |"
            for (k = 1; k <= 2; k++) {
                issuer = k == 1 ? "stream" : "graph"
                line = line " " us[row, issuer, 0] " | " us[row, issuer, 1] " | " ratio(row, issuer) " |"
            }
            return line
        }
        END {
            if ("thread" in issuers) print "| | thread | warp | block | 32 blocks |\n|---|--:|--:|--:|--:|"
            else print "| | in a row | NCCL | ratio | in a graph | NCCL | ratio |\n|---|--:|--:|--:|--:|--:|--:|"
            for (i = 1; i <= n_names; i++)
                for (j = 1; j <= n_sizes; j++) {
                    row = name_of[i] " " size_of[j]
                    if (row in rows) print line_of(row)
                }
        }'
}
if [ -n "$coll" ]; then
    nccl=${GPUSHMEM_NCCL:-$(ldconfig -p | awk '/libnccl.so.2 / { print $NF; exit }')}
    unset GPUSHMEM_NCCL # no setting of the library
    export GPUSHMEM_HEAP_SIZE=3G
    # A job for each size: one that hangs costs its further rows alone. NCCL's kernels are loaded as they are needed, or each
    # job would load all; it registers no buffers by itself in graphs, where broadcasts would hang.
    # Rows are appended to stderr: opened anew, a file that it goes to would lose what it has.
    for size in 8 4K 64K 256K 1M 4M 16M 64M 256M 1G; do
        CUDA_MODULE_LOADING=LAZY NCCL_GRAPH_REGISTER=0 timeout 20 "$bin/gpushmem" perf coll -n "$pes" --issuer stream \
            --sizes $size ${nccl:+--nccl "$nccl"} 2>&1 | awk '/ring/ { exit } { print; fflush() }'
    done | tee -a /dev/stderr | coll_table
    # those of PEs that map each other's memory, not of the ring
    GPUSHMEM_P2P=1 timeout 60 "$bin/gpushmem" perf coll -n "$pes" --issuer device --sizes 8,64,512,1K,4K,16K,64K |
        awk '/ring/ { exit } { print }' | tee -a /dev/stderr | coll_table
    exit
fi

# check NAME COMMAND...: one test.
check() {
    local name=$1 begin=$SECONDS status=0
    shift
    grep -qE -- "$only" <<<"$name" || return 0
    "$@" >"$log" 2>&1 || status=$?
    if [ $status = 0 ]; then
        passed=$((passed + 1)) && echo "ok      $name ($((SECONDS - begin)) s)"
    else
        failed=$((failed + 1)) && echo "FAILED  $name (exit $status)" && tail -25 "$log" | sed 's/^/    /'
    fi
}

# job PES COMMAND...: a job under our own launcher. Kernels of PEs that share a GPU wait for each other's time slices.
limit=$((gpus < 2 ? 120 : 60))
job() {
    local pes=$1
    shift
    timeout $limit "$bin/gpushmem" run -n "$pes" "$@"
}

for pes in 1 2 3; do
    check "heap, $pes PEs, VMM" job $pes "$bin/gpu_heap"
done
check "local buffers of every kind, 2 PEs" job 2 "$bin/gpu_ops"
check "what copies and fills of CUDA brought is what puts send" job 2 "$bin/gpu_copied"
check "symmetric host memory beside a GPU heap, 3 PEs" job 3 "$bin/gpu_hosted"
check "static variables beside a GPU heap, 2 PEs" job 2 "$bin/gpu_beside"
check "a GPU chosen after nvshmem_init, 2 PEs" job 2 env GPUSHMEM_HEAP_SIZE=16M "$bin/gpu_two_steps"
check "heap, 2 PEs, CUDA IPC" job 2 env GPUSHMEM_TEST_HEAP_EXPORT=ipc "$bin/gpu_heap"
check "heap, 2 PEs, host memory" job 2 env GPUSHMEM_HEAP_KIND=host "$bin/gpu_heap"
# A heap that grows: by calls of the host, beside kernels, and not beyond what the GPU has.
for pes in 1 2 3; do
    check "growth, $pes PEs" job $pes env GPUSHMEM_HEAP_SIZE=4M GPUSHMEM_HEAP_MAX=64M "$bin/multi_growth"
done
check "growth beyond the GPU's memory is refused in a sentence, and the heap stays" \
    job 2 env GPUSHMEM_HEAP_SIZE=4M GPUSHMEM_HEAP_MAX=4T "$bin/multi_growth" full 2000
check "a heap over CUDA IPC does not grow, and says so" \
    job 2 env GPUSHMEM_TEST_HEAP_EXPORT=ipc GPUSHMEM_HEAP_SIZE=4M GPUSHMEM_HEAP_MAX=64M "$bin/multi_growth" fixed
for pes in 1 2 3; do
    check "the program's GPU memory as symmetric memory, $pes PEs" \
        job $pes env GPUSHMEM_HEAP_SIZE=4M GPUSHMEM_HEAP_MAX=192M "$bin/gpu_adopted"
done
for p2p in 1 0; do
    for when in idle running; do # running: the driver maps memory while kernels wait for it
        check "growth for kernels, $when, 2 PEs, P2P=$p2p" \
            job 2 env GPUSHMEM_HEAP_MAX=1G GPUSHMEM_P2P=$p2p "$bin/device_growth.cuda" $when
    done
done
check "heap of 16 GiB" job 1 env GPUSHMEM_HEAP_SIZE=16G "$bin/gpu_heap"

too_big() {
    local out
    out=$(GPUSHMEM_HEAP_SIZE=4T job 1 "$bin/gpu_heap" 2>&1) && return 1
    grep -q 'does not fit on' <<<"$out"
}
check "a heap that does not fit is refused in a sentence" too_big
nothing_visible() {
    local out
    out=$(CUDA_VISIBLE_DEVICES='' job 1 "$bin/gpu_heap" 2>&1) && return 1
    grep -q 'sees no GPU' <<<"$out"
}
check "no visible GPU is told in a sentence" nothing_visible
mixed_kinds() {
    local out
    # shellcheck disable=SC2016 # the PE's own shell expands it
    out=$(job 2 sh -c '[ "$GPUSHMEM_RUN_PE" = 0 ] && export GPUSHMEM_HEAP_KIND=host; exec "$0"' "$bin/gpu_heap" 2>&1) && return 1
    grep -q 'has its heap in' <<<"$out"
}
check "PEs with heaps of different kinds are told" mixed_kinds

kernels_elsewhere() {
    local out
    out=$(GPUSHMEM_HEAP_KIND=host job 1 "$bin/device_basic.cuda" 2>&1) && return 0 # a GPU that reaches all memory
    grep -q 'the heap is in host memory, which this GPU' <<<"$out"
}
check "GPU kernels on a heap in host memory work, or are told" kernels_elsewhere

export GPUSHMEM_CONTEXTS=2 # device_ctx wants as many
for program in "$bin"/device_*.cuda; do
    name=$(basename "$program" .cuda)
    case $name in
    *_posts) continue ;; # below
    device_lost | device_coll_lost | device_asked | device_first | device_second_kernel | device_spread | device_growth)
        continue ;; # below
    device_errors) export GPUSHMEM_WAIT_TIMEOUT_MS=700 ;; # its waits time out on purpose
    *) export GPUSHMEM_WAIT_TIMEOUT_MS=15000 ;;
    esac
    for p2p in 1 0; do
        check "$name, 2 PEs, P2P=$p2p" job 2 env GPUSHMEM_P2P=$p2p "$program"
    done
    [ "$gpus" -lt 2 ] || check "$name, 4 PEs, P2P=1" job 4 "$program"
    check "$name, 1 PE" job 1 "$program"
done
if [ "$gpus" -ge 4 ]; then
    for name in basic rma amo coll coll_kinds coll_issuers coll_grid; do
        check "device_$name, 6 PEs on $gpus GPUs" job 6 "$bin/device_$name.cuda"
        check "device_$name, 8 PEs on $gpus GPUs" job 8 "$bin/device_$name.cuda"
    done
    # shellcheck disable=SC2016 # the PE's own shell expands it
    orders='case $GPUSHMEM_RUN_PE in 0) order=3,1,2,0 ;; 1) order=0,2,1,3 ;; *) order=3,2,1,0 ;; esac
        CUDA_VISIBLE_DEVICES=$order exec "$@"'
    for name in basic rma coll; do
        check "device_$name, GPUs in another order on each PE" job 4 sh -c "$orders" - "$bin/device_$name.cuda"
        # shellcheck disable=SC2016
        check "device_$name, each PE sees its GPU alone" \
            job 4 sh -c 'CUDA_VISIBLE_DEVICES=$GPUSHMEM_RUN_PE exec "$@"' - "$bin/device_$name.cuda"
    done
    for name in coll coll_kinds coll_issuers; do
        check "device_$name, 4 PEs, packets=2K" job 4 env GPUSHMEM_COLLECTIVES=packets=2K "$bin/device_$name.cuda"
    done
fi

export GPUSHMEM_WAIT_TIMEOUT_MS=15000
# small vectors by the ways of large ones
for ways in packets=2K packets=2K,dense=0 packets=2K,dense=0,copies=4K,blocks=2 packets=2K,dense=0,blocks=1 \
    packets=2K,blocks=1; do
    for name in coll coll_kinds coll_issuers; do
        check "device_$name, 2 PEs, $ways" job 2 env GPUSHMEM_COLLECTIVES=$ways "$bin/device_$name.cuda"
    done
done
for p2p in 1 0; do
    check "kernels that wait for a dead PE end, P2P=$p2p" env GPUSHMEM_P2P=$p2p tests/device/lost.sh "$bin" device_lost.cuda
done
check "a kernel that waits tells for what, by itself and on SIGUSR1" env GPUSHMEM_WAIT_TIMEOUT_MS=60000 GPUSHMEM_HANG_REPORT=1 \
    "$bin/device_asked.cuda"
check "a kernel that computes is no hang, one that waits beside work is" \
    env GPUSHMEM_WAIT_TIMEOUT_MS=60000 GPUSHMEM_HANG_REPORT=1 "$bin/device_asked.cuda" computes
check "gpushmem stat tells what a kernel waits for" env GPUSHMEM_WAIT_TIMEOUT_MS=60000 \
    "$bin/device_asked.cuda" shown "$bin/gpushmem"
for when in '' late; do # before and after CUDA's own start
    check "a kernel's first launch beside one that waits for it${when:+, $when}" env -u CUDA_MODULE_LOADING \
        "$bin/device_second_kernel.cuda" $when
done
check "collective launches of different shapes are told" job 2 env GPUSHMEM_CHECK=1 "$bin/device_collective_launch.cuda" differ
check "collectives by grids that differ are told" job 2 env GPUSHMEM_CHECK=1 "$bin/device_coll_grid.cuda" differ
check "stream operations before the first launch" env GPUSHMEM_WAIT_TIMEOUT_MS=3000 "$bin/device_first.cuda"
check "stream operations before the first launch, by rings" job 2 env GPUSHMEM_WAIT_TIMEOUT_MS=3000 GPUSHMEM_P2P=0 \
    "$bin/device_first.cuda"
check "kernels of one block spread over the rings" env GPUSHMEM_P2P=0 GPUSHMEM_RINGS=4 "$bin/device_spread.cuda"
for mode in pageable pinned stream synchronised; do
    check "a copy behind a kernel that waits for its proxy: $mode" job 1 env GPUSHMEM_P2P=0 GPUSHMEM_WAIT_TIMEOUT_MS=2000 \
        "$bin/gpu_behind" $mode
done
for in in sync reduce large stream; do
    check "collectives with a dead PE end: $in" tests/device/lost.sh "$bin" device_coll_lost.cuda $in
done
for in in sync_block scan_block scan_warp large_block collect_block entered_block nodes; do
    check "collectives with a dead PE end, by rings: $in" env GPUSHMEM_P2P=0 tests/device/lost.sh "$bin" device_coll_lost.cuda $in
done
check "a team that two streams use at once is told" job 2 env GPUSHMEM_CHECK=1 "$bin/device_coll_issuers.cuda" at_once
check "they end though the host asks for errors meanwhile" tests/device/lost.sh "$bin" device_lost.cuda polled
for p2p in 1 0; do
    check "a stream's first operation is captured, P2P=$p2p" job 2 env GPUSHMEM_P2P=$p2p "$bin/device_stream.cuda" capture
done
check "a stream goes on after a wait that timed out" job 1 env GPUSHMEM_WAIT_TIMEOUT_MS=300 "$bin/device_stream.cuda" vain
for p2p in 1 0; do
    check "kernels from cubin, fatbin and PTX, P2P=$p2p" job 2 env GPUSHMEM_P2P=$p2p "$bin/gpu_cubin" "$bin"/cubin_kernel.*
    check "relocatable device code, P2P=$p2p" job 2 env GPUSHMEM_P2P=$p2p "$bin/gpu_rdc"
    check "example moe_dispatch, 2 PEs, P2P=$p2p" job 2 env GPUSHMEM_P2P=$p2p "$bin/moe_dispatch.cuda" 256 1024 20
    check "example heat, 2 PEs, P2P=$p2p" job 2 env GPUSHMEM_P2P=$p2p "$bin/heat.cuda" --steps 50 --check \
        --image examples/10-heat/input.pgm --out "$log.png"
    check "example gups, 2 PEs, P2P=$p2p" job 2 env GPUSHMEM_P2P=$p2p "$bin/gups.cuda" 20000
    check "example allreduce, 2 PEs, P2P=$p2p" job 2 env GPUSHMEM_P2P=$p2p "$bin/allreduce.cuda"
    check "example stencil3d, 2 PEs, P2P=$p2p" job 2 env GPUSHMEM_P2P=$p2p "$bin/stencil3d.cuda"
    check "example transpose, 2 PEs, P2P=$p2p" job 2 env GPUSHMEM_P2P=$p2p "$bin/transpose.cuda"
    check "example kmeans, 2 PEs, P2P=$p2p" job 2 env GPUSHMEM_P2P=$p2p "$bin/kmeans.cuda"
    check "example kv_transfer, 2 PEs, P2P=$p2p" job 2 env GPUSHMEM_P2P=$p2p "$bin/kv_transfer.cuda" 8 20000
    check "example kv_transfer by kernels, 2 PEs, P2P=$p2p" job 2 env GPUSHMEM_P2P=$p2p "$bin/kv_transfer.cuda" 8 20000 kernels
done
if python3 -c 'import torch' 2>/dev/null; then
    torch_pes=$((gpus < 2 ? 1 : 2)) # where PEs share a GPU their kernels wait for each other's time slices
    for p2p in 1 0; do
        check "PyTorch, $torch_pes PEs, P2P=$p2p" job $torch_pes env GPUSHMEM_P2P=$p2p python3 tests/gpu/programs/torch_test.py "$build/lib/libgpushmem.so"
    done
    export PYTHONPATH=runtime/python:tests/python GPUSHMEM_HOME=$build PYTHONDONTWRITEBYTECODE=1
    for p2p in 1 0; do
        check "Python module, $torch_pes PEs, P2P=$p2p" job $torch_pes env GPUSHMEM_P2P=$p2p python3 tests/gpu/programs/python_test.py
        [ ! -e "$bitcode" ] ||
            check "Triton, $torch_pes PEs, P2P=$p2p" job $torch_pes env GPUSHMEM_P2P=$p2p python3 tests/gpu/programs/triton_test.py \
                "$bitcode" "$build/lib/libnvshmem_host.so.3"
    done
    [ -e "$bitcode" ] || echo "skipped Triton: there is no $bitcode (GPUSHMEM_BITCODE)"
    by_torchrun() { # so many jobs at once
        local status=0 job
        for job in $(seq "$1"); do
            GPUSHMEM_HANG_REPORT=20 timeout $((2 * limit)) python3 -m torch.distributed.run --standalone \
                --nproc-per-node $torch_pes tests/gpu/programs/python_test.py >"$log.$job" 2>&1 &
        done
        for job in $(jobs -p); do
            wait "$job" || status=$?
        done
        # Where each PE was and why it ended, without the rest of the tracebacks.
        [ $status = 0 ] || grep -h '_test.py", line\|starts.py", line\|Error\|python_test:\|gpushmem:' "$log".[12] | sort -u
        rm -f "$log".[12]
        return $status
    }
    check "Python module by torchrun" by_torchrun 1
    check "Python module by torchrun, two jobs at once" by_torchrun 2
else
    echo "skipped PyTorch, the Python module and Triton: python3 has no torch"
fi
if command -v cuobjdump >/dev/null; then
    check "NVSHMEM's names are the same machine code" \
        python3 tests/gpu/programs/sass.py nvcc include include/gpushmem/compat "$build/include"
else
    echo "skipped NVSHMEM's names as machine code: there is no cuobjdump"
fi

# The whole way between hosts, without a NIC: kernel, ring, proxy, the verbs transport as it is, the software HCA
# (tests/network/softhca), memory of the other GPU. Nothing reaches a peer directly.
mission() {
    local settings=$1
    shift
    # shellcheck disable=SC2086 # a list of NAME=value
    job 2 env LD_PRELOAD="$build/lib/libgpushmem_softhca.so" GPUSHMEM_TRANSPORTS=verbs GPUSHMEM_SOFTHCA_DEVICES=2 \
        GPUSHMEM_SOFTHCA_DIR="$nics" GPUSHMEM_SOFTHCA_QUIET=1 $settings "$@"
}
check "software HCA on GPU memory" timeout 120 "$bin/softhca_test" gpu
check "software HCA, queues in GPU memory" timeout 120 "$bin/softhca_test" gpu_queues
for program in "$bin"/device_{basic,rma,amo,order,carried,ctx,tiny,stream,coll_nodes}.cuda; do
    [ -x "$program" ] || continue
    name=$(basename "$program" .cuda)
    rounds=''
    [ "$name" != device_tiny ] || rounds=5
    # shellcheck disable=SC2086 # no argument, or one
    check "$name, software HCA" mission '' "$program" $rounds
    case $name in
    device_basic) check "$name, software HCA, pointer registration" mission GPUSHMEM_TEST_VERBS_DMABUF=off "$program" ;;
    device_rma) check "$name, software HCA, dma-buf required" mission GPUSHMEM_TEST_VERBS_DMABUF=require "$program" ;;
    device_order | device_tiny)
        check "$name, software HCA, reordered and late" mission \
            'GPUSHMEM_SOFTHCA_REORDER=1 GPUSHMEM_SOFTHCA_DELAY_US=20' "$program" $rounds ;;
    esac
done
check "example moe_dispatch, software HCA" mission GPUSHMEM_SOFTHCA_REORDER=1 "$bin/moe_dispatch.cuda" 64 1024 10
check "example kv_transfer, software HCA" mission GPUSHMEM_SOFTHCA_REORDER=1 "$bin/kv_transfer.cuda" 4 4096
# Nothing is registered: through pinned host memory, mailboxes and the agent; then large pieces only.
unregistered='GPUSHMEM_SOFTHCA_DMABUF=0 GPUSHMEM_SOFTHCA_PEERMEM=0'
for name in basic rma amo order; do
    check "device_$name, staged" mission "$unregistered" "$bin/device_$name.cuda"
done
check "gpu_ops, staged" mission "$unregistered" "$bin/gpu_ops"
check "growth, software HCA" mission 'GPUSHMEM_HEAP_SIZE=4M GPUSHMEM_HEAP_MAX=64M' "$bin/multi_growth"
check "the program's GPU memory, software HCA" mission 'GPUSHMEM_HEAP_SIZE=4M GPUSHMEM_HEAP_MAX=192M' \
    "$bin/gpu_adopted"
check "growth, staged" mission "$unregistered GPUSHMEM_HEAP_SIZE=4M GPUSHMEM_HEAP_MAX=64M" "$bin/multi_growth"
check "growth for kernels, software HCA" mission GPUSHMEM_HEAP_MAX=1G "$bin/device_growth.cuda" idle
check "gpu_hosted, software HCA" mission '' "$bin/gpu_hosted"
check "gpu_beside, staged" mission "$unregistered" "$bin/gpu_beside"
check "collectives of every issuer, software HCA" mission '' "$bin/device_coll_issuers.cuda" rounds
check "collectives of streams and kernels, software HCA" mission GPUSHMEM_SOFTHCA_REORDER=1 "$bin/device_coll_kinds.cuda"
check "gpu_ops, large pieces staged" mission 'GPUSHMEM_GPUDIRECT_DISTANCE=none GPUSHMEM_TEST_STAGE_THRESHOLD=1' "$bin/gpu_ops"

# Kernels that post to the queues of the software HCA's mlx5 themselves: in GPU memory, which its engine reaches by copies, or in
# host memory (gpu, host). It complains of what a NIC would refuse. By its data-direct function writes would have to be flushed,
# which kernels cannot.
posting() {
    local where=$1 out status=0
    shift
    out=$(mission "GPUSHMEM_SOFTHCA_MLX5=1 GPUSHMEM_SOFTHCA_QUIET=0 GPUSHMEM_TEST_VERBS_DATA_DIRECT=off GPUSHMEM_LOG_LEVEL=info \
        GPUSHMEM_TEST_DEVICE_QUEUES=$where" \
        env LD_PRELOAD="$build/lib/libgpushmem_softhca.so:$build/lib/fake_mlx5/libmlx5.so.1" GPUSHMEM_DEVICE_POST=nic "$@" 2>&1) ||
        status=$?
    echo "$out"
    [ $status = 0 ] && ! grep -qE 'softhca: misuse|DEVICE_POST=nic, but|no kernel asked|makes no queue' <<<"$out" &&
        if [ "$where" = gpu ]; then
            grep -q 'kernels post themselves, to queues in GPU memory by devx' <<<"$out" &&
                grep -q 'softhca: queue .* is in GPU memory, .*: by copies' <<<"$out"
        else
            grep -q 'kernels post themselves, to queues in host memory' <<<"$out" && ! grep -q 'is in GPU memory, ' <<<"$out"
        fi
}
for name in basic rma amo order ctx edges stream coll; do
    check "device_$name, kernels post" posting gpu "$bin/device_${name}_posts.cuda"
done
for name in basic rma amo order ctx; do
    check "device_$name, kernels post, queues in host memory" posting host "$bin/device_${name}_posts.cuda"
done
check "example moe_dispatch, kernels post" posting gpu "$bin/moe_dispatch_posts.cuda" 64 1024 10
check "example kv_transfer, kernels post" posting gpu "$bin/kv_transfer_posts.cuda" 4 4096 kernels
check "example heat, kernels post" posting gpu "$bin/heat_posts.cuda" --steps 50 --check \
    --image examples/10-heat/input.pgm --out "$log.png"
check "example gups, kernels post" posting gpu "$bin/gups_posts.cuda" 20000
check "perf_put_path, software HCA" mission GPUSHMEM_PROXY_TIMES=1 "$bin/perf_put_path.cuda" 20000

# Not everything. device_amo without P2P, whose atomics are kernels that the proxy launches, did not end under
# racecheck: its launches seem to wait for the running kernels. So do the copies of device_order without P2P under
# memcheck, in about half of the runs: its kernels wait for each other over the host. device_stream ended under memcheck
# until stream operations were launched early, and was not tried with GPUSHMEM_TEST_STREAM_EARLY=0. Of the asynchronous copies
# in device_rma racecheck warns that two of one thread write the same shared memory, though each waits for the other.
sanitized() {
    local tool=$1 program=$2 p2p=$3 rounds=''
    [ "$program" != device_tiny ] || rounds=2
    # shellcheck disable=SC2086 # no argument, or one
    check "$program under $tool, P2P=$p2p" job 2 env GPUSHMEM_P2P="$p2p" compute-sanitizer --tool "$tool" --error-exitcode 9 \
        --report-api-errors no "$bin/$program.cuda" $rounds
}
if [ -z "$quick" ] && command -v compute-sanitizer >/dev/null; then
    export GPUSHMEM_WAIT_TIMEOUT_MS=60000 # all is slower
    limit=$((3 * limit))
    for p2p in 1 0; do
        for name in basic rma amo order local tiny; do
            [ $name$p2p = order0 ] || sanitized memcheck device_$name $p2p
        done
        for name in basic local tiny; do
            sanitized racecheck device_$name $p2p
        done
    done
    for name in amo order; do
        sanitized racecheck device_$name 1
    done
    # with queues that are there before its kernels: of those that come up meanwhile memcheck knows nothing
    check "perf_gpu_nic_posts under memcheck" timeout $limit compute-sanitizer --tool memcheck --error-exitcode 9 \
        "$bin/perf_gpu_nic_posts"
fi

if [ -n "$perf" ]; then
    "$bin/perf_gpu_ring_rates"
    "$bin/perf_gpu_nic_posts"
    GPUSHMEM_HEAP_SIZE=256M "$bin/gpushmem" perf put-lat get-lat amo barrier put-bw get-bw ring --seconds 0.1 --markdown --quiet
    mission 'GPUSHMEM_PROXY_TIMES=1 GPUSHMEM_SOFTHCA_QUIET=0' "$bin/perf_put_path.cuda" 100000
    mission GPUSHMEM_PROXY_TIMES=0 "$bin/perf_put_path.cuda" 100000 # what taking the times costs
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
