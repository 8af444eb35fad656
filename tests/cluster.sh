#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# cluster.sh: runs on real machines, under the site's own launcher, what this project could only try on stand-ins, and writes
# one report to send back: what the machines are, what the doctor finds, which promises hold, and figures beside perftest's.
#
#   cluster.sh [options]                 inside an allocation of two or more nodes
#     --build DIR      build folder on a file system that all nodes share (default build/release)
#     --out DIR        where report.md and everything behind it go, on that file system too (default cluster-report)
#     --nodes N        nodes of a job (default: those of the allocation, else 2)
#     --ppn N          PEs per node in the larger jobs (default 2)
#     --launch TEXT    how a job is started; {pes}, {nodes} and {ppn} stand for numbers (default: srun in a Slurm allocation,
#                      else `gpushmem run` with pretended nodes on this host). For example
#                        --launch 'mpirun -n {pes} --map-by ppr:{ppn}:node'
#     --host           heaps in host memory, kernels on CPU threads, also where there are GPUs
#     --quick          a few minutes: fewer programs, one size
#     --seconds N      a job that lasts longer is ended and has failed (default 300)
#     --anonymous      hosts are called node0, node1, ... in the report
#
# The tests have to be built: cmake --preset release && cmake --build build/release. Exit code: 0 every check passed, 1 one
# failed, 2 wrong usage, 77 jobs cannot be started at all. Environment variables GPUSHMEM_* are passed on and reported.
set -uo pipefail
build=build/release out=cluster-report nodes='' ppn=2 launch='' host='' quick='' seconds=300 anonymous=''

complain() {
    echo "cluster.sh: $*; cluster.sh --help tells more" >&2
    exit 2
}

number() {
    [[ $2 =~ ^[1-9][0-9]{0,4}$ ]] || complain "$1 takes a number from 1 to 99999, not '$2'"
}

while [ $# -gt 0 ]; do
    case $1 in
    --build | --out | --nodes | --ppn | --launch | --seconds)
        [ $# -gt 1 ] || complain "$1 needs a value"
        declare "${1#--}=$2"
        shift
        ;;
    --host) host=1 ;;
    --quick) quick=1 ;;
    --anonymous) anonymous=1 ;;
    --help | -h) sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$0" && exit 0 ;;
    *) complain "unknown option '$1'" ;;
    esac
    shift
done
nodes=${nodes:-${SLURM_JOB_NUM_NODES:-2}}
number --nodes "$nodes"
number --ppn "$ppn"
number --seconds "$seconds"
bin=$(cd "$build/bin" 2>/dev/null && pwd) || complain "--build '$build' has no folder bin: build there first"
for program in gpushmem gpushmem-perf multi_rma; do
    [ -x "$bin/$program" ] || complain "$bin has no program $program: build all of the project, with -DGPUSHMEM_TESTS=ON"
done
mkdir -p "$out/logs" 2>/dev/null && [ -w "$out/logs" ] || complain "--out '$out' cannot be made or written"
out=$(cd "$out" && pwd)
pretended=
if [ -z "$launch" ] && [ -n "${SLURM_JOB_ID-}" ]; then
    launch='srun --mpi=pmix -N {nodes} -n {pes} --ntasks-per-node={ppn}'
elif [ -z "$launch" ]; then
    launch="$bin/gpushmem run -n {pes} --nodes {nodes}"
    pretended=1
fi

# ---- Jobs and checks ----

passed=0 failed=0 log='' rows=$out/checks.md
: >"$rows"

# job NODES PPN COMMAND...
job() {
    local text=${launch//\{nodes\}/$1}
    text=${text//\{ppn\}/$2}
    text=${text//\{pes\}/$(($1 * $2))}
    shift 2
    # shellcheck disable=SC2086 # the launcher's words
    timeout -k 10 "$seconds" $text "$@"
}

# check NAME COMMAND...: what it prints goes to a file of its own, whose name is $log. With others=1 the programs are not this
# project's, and what they make is not counted.
others=
check() {
    local name=$1 begin=$SECONDS status=0 verdict=ok
    shift
    log=$out/logs/$(tr -cs 'a-zA-Z0-9\n' - <<<"$name").txt
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if [ $status = 0 ]; then
        [ -n "$others" ] || passed=$((passed + 1))
    else
        failed=$((failed + 1))
        [ -z "$others" ] || failed=$((failed - 1))
        verdict="FAILED ($([ $status = 124 ] && echo "ended after $seconds s" || echo "exit $status"))"
    fi
    echo "$verdict  $name ($((SECONDS - begin)) s)"
    [ $status = 0 ] || tail -n 8 "$log" | sed 's/^/    /'
    echo "| $name | $verdict | $((SECONDS - begin)) s | ${log#"$out"/} |" >>"$rows"
    return $status
}

# Nobody hangs without a word: waits are reported, and end.
export GPUSHMEM_HANG_REPORT=${GPUSHMEM_HANG_REPORT:-30} GPUSHMEM_WAIT_TIMEOUT_MS=${GPUSHMEM_WAIT_TIMEOUT_MS:-120000}
export CUDA_MODULE_LOADING=EAGER # a kernel's first launch must not wait for running ones
settings=(GPUSHMEM_HANG_REPORT="$GPUSHMEM_HANG_REPORT" GPUSHMEM_WAIT_TIMEOUT_MS="$GPUSHMEM_WAIT_TIMEOUT_MS")
heap=(GPUSHMEM_HEAP_SIZE=128M) suffix=''
[ -z "$host" ] || heap+=(GPUSHMEM_HEAP_KIND=host)

# with NODES PPN [NAME=VALUE...] PROGRAM...: a job with settings, also under launchers that pass no environment on.
with() {
    local nodes=$1 ppn=$2
    shift 2
    job "$nodes" "$ppn" env "${settings[@]}" "${heap[@]}" "$@"
}

# ---- 1. What is here ----

# shellcheck disable=SC2016 # the PEs' shells expand it
check "jobs of one process on each of $nodes nodes" job "$nodes" 1 sh -c 'echo "host $(hostname)"' ||
    { echo "cluster.sh: jobs cannot be started with '$launch'; see $log" >&2 && exit 77; }
mapfile -t hosts < <(sed -n 's/^.*host \([^ ]*\)$/\1/p' "$log" | sort -u)
[ "${#hosts[@]}" -eq "$nodes" ] || [ -n "$pretended" ] ||
    echo "cluster.sh: the job of $nodes nodes ran on ${#hosts[@]}: ${hosts[*]}" >&2
if [ -z "$host" ] && job "$nodes" 1 sh -c 'nvidia-smi -L | grep -q ^GPU' >/dev/null 2>&1 && [ -x "$bin/device_basic.cuda" ]; then
    suffix=.cuda
    heap+=(GPUSHMEM_HEAP_KIND=device)
else
    heap+=(GPUSHMEM_HEAP_KIND=host)
fi
[ -z "$pretended" ] || echo "no allocation: pretended nodes on this host"

# node_report DIR: of the node it runs on.
cat >"$out/node.sh" <<'EOF'
# What cluster.sh asks each node: node.sh GPUSHMEM DIR
cd "$2" || exit 1
name=$(hostname)
{
    uname -srm
    sed -n 's/^PRETTY_NAME=//p' /etc/os-release
    grep -m1 'model name' /proc/cpuinfo
    nproc
    nvidia-smi --query-gpu=index,name,driver_version,pci.bus_id --format=csv,noheader
    nvidia-smi topo -m
    ibv_devinfo
    "$1" info
    "$1" topo
} >"node-$name.txt" 2>&1
"$1" topo --svg "topo-$name.svg" 2>/dev/null
"$1" doctor --all >"doctor-$name.txt" 2>&1
status=$?
"$1" doctor --json >"doctor-$name.json" 2>/dev/null
# 3: something cannot be told, as for a user who is not root. That is no failure.
[ $status = 0 ] || [ $status = 3 ]
EOF
check "doctor on each node" job "$nodes" 1 sh "$out/node.sh" "$bin/gpushmem" "$out"
fabric() {
    local status=0
    with "$nodes" 1 "$bin/gpushmem" doctor --fabric || status=$?
    [ $status = 0 ] || [ $status = 3 ]
}
check "doctor: nodes compared" fabric
reached=1
check "how PEs reach each other" with "$nodes" "$ppn" "$bin/gpushmem" info --peers || reached=
cp "$log" "$out/peers.txt"

# ---- 2. Promises ----

promises() {
    local programs kernels program
    programs='rma amo signal wait sync context errors lock team coll'
    kernels='basic rma amo order ctx coll'
    [ -z "$quick" ] || { programs='rma amo sync' && kernels='basic'; }
    [ "$suffix" = .cuda ] && programs='amo sync' # the others look at their heap by loads
    for program in $programs; do
        [ -x "$bin/multi_$program" ] || continue
        check "multi_$program, 1 PE on each node" with "$nodes" 1 "$bin/multi_$program"
        [ -n "$quick" ] || check "multi_$program, $ppn PEs on each node" with "$nodes" "$ppn" "$bin/multi_$program"
    done
    for program in $kernels; do
        [ -x "$bin/device_$program$suffix" ] || continue
        check "device_$program$suffix, 1 PE on each node" with "$nodes" 1 GPUSHMEM_CONTEXTS=2 "$bin/device_$program$suffix"
    done
    for program in rma amo order; do # through rings where a NIC has no such queues: the log says so, and who rings
        program=device_$program${suffix:+_posts}$suffix
        [ -x "$bin/$program" ] || continue
        check "kernels that post themselves, $program" with "$nodes" 1 GPUSHMEM_DEVICE_POST=nic GPUSHMEM_LOG_LEVEL=info \
            "$bin/$program"
        [ -n "$quick" ] || check "kernels that post themselves, the host rings, $program" with "$nodes" 1 \
            GPUSHMEM_DEVICE_POST=nic GPUSHMEM_TEST_DEVICE_DOORBELL=host "$bin/$program"
    done
    if [ -z "$quick" ]; then
        check "staged through host memory" with "$nodes" 1 GPUSHMEM_GPUDIRECT=never "$bin/multi_amo"
        check "two rails" with "$nodes" 1 GPUSHMEM_VERBS_RAILS=2 "$bin/multi_amo"
        check "every peer by NICs" with "$nodes" "$ppn" GPUSHMEM_TRANSPORTS=verbs "$bin/multi_amo"
    fi
}

# ---- 3. Figures ----

figures() {
    local sizes='8,1K,64K,1M,4M' pair test
    [ -z "$quick" ] || sizes=8
    pair=(2 1)
    [ "$nodes" -gt 1 ] || pair=(1 2)
    for test in put-lat put-bw get-lat get-bw amo barrier; do
        check "perf $test" with "${pair[@]}" "$bin/gpushmem" perf "$test" --issuer all --sizes "$sizes" --seconds 0.1 --quiet \
            --json "$out/perf-$test.json"
        cp "$log" "$out/perf-$test.txt"
    done
}

left_out=
if [ -n "$reached" ]; then
    promises
    figures
else
    left_out="Promises and figures were left out: the PEs do not reach each other"
    [ -z "$pretended" ] || left_out+=". On one host that takes an RDMA device or the software HCA (docs/testing.md)"
    echo "$left_out"
fi

# perftest's pairs: one process serves, the other finds its name in a file.
cat >"$out/perftest.sh" <<'EOF'
# perftest.sh DIR PROGRAM OPTION...: the first process to come is the server
dir=$1
shift
if mkdir "$dir/server" 2>/dev/null; then
    hostname >"$dir/name.new" && mv "$dir/name.new" "$dir/name"
    exec "$@"
fi
tries=0
until [ -s "$dir/name" ]; do
    sleep 0.1
    tries=$((tries + 1))
    [ $tries -lt 600 ] || { echo "no server came" && exit 1; }
done
tries=0
until "$@" "$(cat "$dir/name")" >"$dir/client" 2>&1; do # until the server listens
    sleep 0.2
    tries=$((tries + 1))
    [ $tries -lt 50 ] || exit 1
done
EOF
perftest() {
    local dir=$out/perftest-$1
    rm -rf "$dir" && mkdir "$dir"
    job 2 1 sh "$out/perftest.sh" "$dir" "${@:2}" || { cat "$dir/client" 2>/dev/null && return 1; }
    cat "$dir/client"
}
if [ -n "$pretended" ] || [ "$nodes" -lt 2 ]; then
    perftest_is="not run: it needs two nodes"
elif ! job 2 1 sh -c 'command -v ib_write_lat' >/dev/null 2>&1; then
    perftest_is="not run: ib_write_lat (package perftest) is not on the nodes"
else
    perftest_is="its own output, files logs/perftest-*.txt; GPUs with --use_cuda are left to you"
    device=$(ibv_devinfo 2>/dev/null | awk '/^hca_id/ {d = $2} /PORT_ACTIVE/ {print d; exit}')
    others=1
    options=(-F ${device:+-d "$device"})
    for test in write_lat write_bw read_lat read_bw; do
        check "perftest $test" perftest "$test" "ib_$test" "${options[@]}" -a
    done
    check "perftest atomic_lat" perftest atomic_lat ib_atomic_lat "${options[@]}"
fi

# ---- 4. The report ----

{
    echo "# gpushmem: what this cluster says"
    echo
    echo "$("$bin/gpushmem" version), $(date -u +%Y-%m-%dT%H:%MZ), launched by \`$launch\`"
    [ -z "$pretended" ] || echo "**Nodes were pretended on one host: this says nothing of a cluster.**"
    echo "hosts: ${hosts[*]}; heaps in $([ -n "$suffix" ] && echo GPU || echo host) memory"
    echo "settings: $(env | grep ^GPUSHMEM_ | sort | tr '\n' ' ')"
    printf '\n**%d passed, %d failed**\n\n## Checks\n\n| check | result | time | output |\n|---|---|---|---|\n' $passed $failed
    cat "$rows"
    [ -z "$left_out" ] || printf '\n%s.\n' "$left_out"
    printf '\n## Peers\n\n```\n%s\n```\n\n## Doctor\n' "$(cat "$out/peers.txt")"
    for file in "$out"/doctor-*.txt; do
        [ ! -e "$file" ] || printf '\n### %s\n\n```\n%s\n```\n' "$(basename "$file" .txt)" "$(cat "$file")"
    done
    printf '\n## Machines\n'
    for file in "$out"/node-*.txt; do
        [ ! -e "$file" ] || printf '\n### %s\n\n```\n%s\n```\n' "$(basename "$file" .txt)" "$(cat "$file")"
    done
    printf '\n## Figures\n\nperftest: %s\n' "$perftest_is"
    for file in "$out"/perf-*.txt "$out"/logs/perftest-*.txt; do
        [ ! -e "$file" ] || printf '\n### %s\n\n```\n%s\n```\n' "$(basename "$file" .txt)" "$(cat "$file")"
    done
    if grep -q '| FAILED' "$rows"; then
        printf '\n## What failed\n'
        grep '| FAILED' "$rows" | while IFS='|' read -r _ name _ _ file _; do
            printf '\n### %s\n\n```\n%s\n```\n' "$name" "$(tail -n 40 "$out/${file// /}")"
        done
    fi
} >"$out/report.md"
if [ -n "$anonymous" ]; then
    number=0
    for name in "${hosts[@]}"; do
        sed -i "s/${name//./\\.}/node$number/g" "$out/report.md"
        number=$((number + 1))
    done
fi
echo "report: $out/report.md (send it, or the whole folder)"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
