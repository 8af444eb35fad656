#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# slurm.sh: starts a Slurm cluster of four virtual nodes on this machine, runs one command in it, and stops it again.
#
#   slurm.sh COMMAND [arguments]       for example: slurm.sh srun --mpi=pmix -N4 --ntasks-per-node=2 ./app
#
# Needs root (slurmd does), slurmctld, slurmd and srun. Everything it writes is in a directory of its own under /tmp, the
# daemons listen on free ports of the loopback interface and are stopped by process id. Exit code: the command's; 77 if
# Slurm is not installed or this is not root.
set -euo pipefail

nodes=4
state=
pids=()

skip() {
    echo "slurm.sh: $*" >&2
    exit 77
}

fail() {
    echo "slurm.sh: $*" >&2
    tail -n 20 "$state"/*.log >&2 || true
    exit 1
}

stop() {
    local pid i
    [ -n "$state" ] || return 0
    kill -TERM "${pids[@]}" 2>/dev/null || true
    for i in $(seq 30); do
        kill -0 "${pids[@]}" 2>/dev/null || break # one of them has ended, so the others are about to
        sleep 0.1
    done
    sleep 0.2
    # A slurmd that was starting or cleaning up a step may stay, and the step, too. Every process of this cluster has its
    # configuration's name.
    # shellcheck disable=SC2013 # numbers
    for pid in $(grep -lzs "^SLURM_CONF=$state/" /proc/[0-9]*/environ | cut -d/ -f3); do
        kill -KILL "$pid" 2>/dev/null || true
    done
    wait "${pids[@]}" 2>/dev/null || true
    for i in $(seq 50); do
        ! rm -rf "$state" 2>/dev/null || break # a step that is about to die may have written meanwhile
        sleep 0.1
    done
}

# The first of count + 1 successive ports nobody listens on, below the range the kernel gives out.
free_ports() {
    local count=$1 base try used
    used=" $(awk 'NR > 1 {split($2, a, ":"); print strtonum("0x" a[2])}' /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        sort -u | tr '\n' ' ')"
    for try in $(seq 50); do
        base=$((20000 + RANDOM % 10000))
        for port in $(seq "$base" $((base + count))); do
            [[ $used != *" $port "* ]] || continue 2
        done
        echo "$base"
        return
    done
    fail "no free ports after $try tries"
}

write_config() {
    local base host
    base=$(free_ports $nodes)
    host=$(hostname -s)
    cat >"$state/slurm.conf" <<EOF
ClusterName=gpushmem
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$base
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
MpiDefault=pmix
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
StateSaveLocation=$state/ctld
SlurmctldPidFile=$state/slurmctld.pid
SlurmctldLogFile=$state/slurmctld.log
SlurmdPidFile=$state/slurmd.%n.pid
SlurmdLogFile=$state/slurmd.%n.log
SlurmdSpoolDir=$state/spool.%n
TmpFS=$state/tmp.%n
NodeName=n[0-$((nodes - 1))] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((base + 1))-$((base + nodes))] CPUs=8
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP
EOF
    # Nothing here uses control groups; this version needs none to be mounted.
    echo "CgroupPlugin=cgroup/v1" >"$state/cgroup.conf"
}

start() {
    local i
    mkdir "$state/ctld"
    slurmctld -D -i >"$state/ctld.out.log" 2>&1 &
    pids+=($!)
    for i in $(seq 0 $((nodes - 1))); do
        mkdir "$state/spool.n$i" "$state/tmp.n$i"
        slurmd -D -N "n$i" >"$state/slurmd.n$i.out.log" 2>&1 &
        pids+=($!)
    done
    # A machine without KVM, emulating one, takes seconds for what takes 0.3 s elsewhere.
    while [ "$SECONDS" -lt 90 ]; do
        [ "$(timeout 20 sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l)" != $nodes ] || return 0
        kill -0 "${pids[@]}" 2>/dev/null || fail "a daemon ended"
        sleep 0.1
    done
    timeout 20 sinfo -N -l >&2 || true
    fail "the nodes are not idle after 90 s"
}

main() {
    [ $# -gt 0 ] || fail "no command given"
    export PATH=$PATH:/usr/sbin:/sbin
    for program in slurmctld slurmd srun sinfo; do
        command -v $program >/dev/null || skip "no $program here (Debian package slurm-wlm)"
    done
    [ "$(id -u)" = 0 ] || skip "slurmd needs root"
    state=$(mktemp -d /tmp/gpushmem-slurm.XXXXXX)
    trap stop EXIT
    export SLURM_CONF=$state/slurm.conf
    write_config
    start
    local status=0
    "$@" || status=$?
    return $status
}

main "$@"
