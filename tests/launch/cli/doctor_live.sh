#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# doctor_live.sh GPUSHMEM LIB SOURCE: `gpushmem doctor` where it does something: the self-test through the software HCA, the
# reports of a job's PEs, and the sentences of the library that name a check. Then `gpushmem topo` with drivers that are doubles.
set -u
gpushmem=$1 lib=$2 source=$3
unset LD_LIBRARY_PATH
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GPUSHMEM_SOFTHCA_DIR=$work/segments GPUSHMEM_SOFTHCA_QUIET=1 ASAN_OPTIONS=verify_asan_link_order=0
hca=(env "LD_PRELOAD=$lib/libgpushmem_softhca.so")
fake=(env "LD_PRELOAD=$lib/libgpushmem_softhca.so" "LD_LIBRARY_PATH=$lib/fake_cuda/new")

# expect STATUS PATTERN COMMAND...: exit code, and an output that matches when its lines are one.
expect() {
    local status=$1 pattern=$2 text got
    shift 2
    text=$("$@" 2>&1)
    got=$?
    text=$(tr -s '\n ' '  ' <<<"$text")
    if [ "$got" != "$status" ] || ! grep -Eq "$pattern" <<<"$text"; then
        printf '%s\n' "$*: exit code $got (wanted $status), does not match '$pattern':" "$text"
        failed=1
    fi
}

expect 0 '^ok self-test 4 MiB of host memory written and read back at [0-9.]+ Gb/s: PE 0 by verbs \(softhca0:1' \
    "${hca[@]}" "$gpushmem" doctor self-test
# a device that only libibverbs knows will do for init
expect 0 'no RDMA NIC on the PCI bus .* 0 problems' "${hca[@]}" GPUSHMEM_TRANSPORTS=verbs "$gpushmem" doctor verbs
expect 0 'ok self-test 4 MiB of GPU memory written and read back' "${fake[@]}" "$gpushmem" doctor self-test
expect 1 'problem self-test .*softhca0:1 cannot register' \
    "${hca[@]}" GPUSHMEM_SOFTHCA_REG_FAIL_AFTER=0 "$gpushmem" doctor self-test
expect 1 'problem self-test .*(cannot|fail|lost|gave up)' \
    "${hca[@]}" GPUSHMEM_SOFTHCA_FAIL_AFTER=3 GPUSHMEM_SOFTHCA_FAIL_STATUS=access "$gpushmem" doctor self-test
expect 0 'not applicable self-test no verbs device' "$gpushmem" doctor --all self-test

# What differs between the PEs of a job, and only that.
job=("$gpushmem" run -n 3)
expect 0 '^3 PEs are alike\.' "${job[@]}" "$gpushmem" doctor --fabric settings open-files
# shellcheck disable=SC2016 # each PE's own shell expands it
expect 1 '^settings PEs 0,2 on [^ ]+: ok: every .* PE 1 on [^ ]+: problem: GPUSHMEM_HEAP_SIZE=lots is not a size.* 1 checks? differ' \
    "${job[@]}" sh -c '[ "$GPUSHMEM_RUN_PE" != 1 ] || export GPUSHMEM_HEAP_SIZE=lots; exec "$0" doctor --fabric settings shm' "$gpushmem"
expect 1 '^3 PEs are alike; 1 problem is on all of them alike' \
    env GPUSHMEM_HEAP_SIZE=lots "${job[@]}" "$gpushmem" doctor --fabric settings
expect 0 '"pes": 3, "differences": \[\]' "${job[@]}" "$gpushmem" doctor --fabric --json settings
expect 0 'A job of one PE has nothing to compare' "$gpushmem" doctor --fabric settings

# Without an address no PMIx server starts. gpushmem run needs none.
if unshare -rn true 2>/dev/null; then
    expect 0 'launcher gpushmem run' unshare -rn "$gpushmem" run -n 2 "$gpushmem" doctor --all launcher
    expect 1 'problem pmix no network interface has an address, not even lo' unshare -rn "$gpushmem" doctor pmix
fi

# Sentences of the library name a check that exists.
ids=$("$gpushmem" doctor --markdown | sed -n 's/^## \([a-z0-9-]*\):.*/\1/p')
named=$(grep -rhozE 'gpushmem "?\s*"?doctor`\s*"?\s*"?explains it under "?\s*"?[a-z0-9-]+' "$source/runtime" "$source/transports" |
    tr '\0' '\n' | grep -oE '[a-z0-9-]+$' | sort -u)
[ "$(wc -w <<<"$named")" -ge 6 ] || { echo "sentences name only: $named" && failed=1; }
for name in $named gid port; do
    grep -qx "$name" <<<"$ids" || { echo "a sentence names the check $name, which does not exist" && failed=1; }
done
export GPUSHMEM_TRANSPORTS=verbs
expect 1 'doctor. explains it under verbs' env GPUSHMEM_HEAP_KIND=host "$gpushmem" info --peers
expect 1 'doctor. explains it under cuda' env GPUSHMEM_HEAP_KIND=device CUDA_VISIBLE_DEVICES= "$gpushmem" info --peers
expect 1 'doctor. explains it under gpudirect' \
    "${fake[@]}" GPUSHMEM_GPUDIRECT=always GPUSHMEM_SOFTHCA_DMABUF=0 GPUSHMEM_SOFTHCA_PEERMEM=0 "$gpushmem" info --peers
unset GPUSHMEM_TRANSPORTS

# This machine's GPUs and NICs are those that the drivers tell of.
number=0
for pci in 0000:14:00.0 0000:17:00.0 0000:41:00.0 0000:91:00.0; do
    mkdir "$work/softhca$number"
    ln -s "../../../$pci" "$work/softhca$number/device"
    number=$((number + 1))
done
export HWLOC_XMLFILE=$source/tests/unit/topology/two_sockets.xml HWLOC_THISSYSTEM=1
export FAKE_CUDA_DEVICES=2 FAKE_CUDA_PCI=0000:13:00.0,0000:93:00.0 GPUSHMEM_SOFTHCA_SYSFS=$work GPUSHMEM_SOFTHCA_DEVICES=4
expect 0 'GPU0: softhca0:1 \(PIX\): nearest; softhca1:1, the next, is at PXB GPU1: softhca3:1 \(PHB\): nearest' \
    "${fake[@]}" "$gpushmem" topo
expect 0 'softhca2:1 0000:41:00.0 0 0-1 RoCE, 100 Gb/s' "${fake[@]}" "$gpushmem" topo
expect 0 'softhca0:1 0000:14:00.0 0 0-1 RoCE, 100 Gb/s, has no RoCE GID .* GPU0: softhca1:1 \(PXB\): nearest' \
    "${fake[@]}" GPUSHMEM_SOFTHCA_NO_GID_DEVICE=0 "$gpushmem" topo
nvml=("${fake[@]}" "LD_LIBRARY_PATH=$lib/fake_cuda/new:$lib/fake_nvml")
expect 0 'GPU0 X NV18 PIX PXB .* GPU1 NV18 X SYS' "${nvml[@]}" FAKE_NVML_LINKS=18 "$gpushmem" topo
expect 0 'GPU0 X NV4 PIX PXB .* GPU1 SYS X SYS' \
    "${nvml[@]}" FAKE_NVML_LINKS=4 FAKE_NVML_DIRECT=0000:93:00.0 "$gpushmem" topo
expect 0 'GPU0 X SYS PIX PXB' "${nvml[@]}" FAKE_NVML_LINKS=18 FAKE_NVML_FAILS=1 "$gpushmem" topo
exit $failed
