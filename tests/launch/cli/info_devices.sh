#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2086 # words are split on purpose
# info_devices.sh GPUSHMEM LIB SOURCE: what `gpushmem info` says of GPUs, NICs and the way between them, on a server of two
# sockets that is none: its topology is a file, its GPUs and NICs are doubles.
set -u
gpushmem=$1 lib=$2 source=$3
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

number=0
for pci in 0000:14:00.0 0000:17:00.0 0000:41:00.0 0000:91:00.0; do
    mkdir "$work/softhca$number"
    ln -s "../../../$pci" "$work/softhca$number/device"
    number=$((number + 1))
done
export LD_LIBRARY_PATH=$lib/fake_cuda/new FAKE_CUDA_DEVICES=2 FAKE_CUDA_PCI=0000:13:00.0,0000:93:00.0
export HWLOC_XMLFILE=$source/tests/unit/topology/two_sockets.xml GPUSHMEM_HEAP_SIZE=16M
export GPUSHMEM_SOFTHCA_DIR=$work/segments GPUSHMEM_SOFTHCA_SYSFS=$work GPUSHMEM_SOFTHCA_DEVICES=4 GPUSHMEM_SOFTHCA_QUIET=1
export ASAN_OPTIONS=verify_asan_link_order=0

# says TEXT NAME=VALUE... -- ARGUMENT...: gpushmem with these prints the text, as a line or part of one.
says() {
    local text=$1 output
    local -a environment=()
    shift
    while [ "$1" != -- ]; do
        environment+=("$1")
        shift
    done
    shift
    output=$(env LD_PRELOAD="$lib/libgpushmem_softhca.so" "${environment[@]}" "$gpushmem" "$@" 2>&1)
    [[ "$output" == *"$text"* ]] || { echo "${environment[*]} gpushmem $*: does not say '$text':" "$output" && failed=1; }
}

says 'GPU  name        PCI address   lanes  GPUDirect by
0    Fake GPU 0  0000:13:00.0  -      dma-buf' -- info
says 'RDMA port   link  state   rate      PCI address   lanes  GPU 0  GPU 1
softhca0:1  RoCE  active  100 Gb/s  0000:14:00.0  -      PIX    SYS
softhca1:1  RoCE  active  100 Gb/s  0000:17:00.0  -      PXB    SYS
softhca2:1  RoCE  active  100 Gb/s  0000:41:00.0  -      NODE   SYS
softhca3:1  RoCE  active  100 Gb/s  0000:91:00.0  -      SYS    PHB' -- info
says 'InfiniBand' GPUSHMEM_SOFTHCA_LINK=ib -- info

peers="run -n 2 $gpushmem info --peers"
says "PE 1 on $(hostname): 16 MiB on Fake GPU 1 at 0000:93:00.0; no NIC is open: every PE" -- $peers
export GPUSHMEM_TRANSPORTS=verbs
atomics='atomics by NICs: not every PE is mapped'
says "PE 0 on $(hostname): 16 MiB on Fake GPU 0 at 0000:13:00.0; NIC softhca0:1 (RoCE, PIX from the GPU): GPUDirect by dma-buf; $atomics
PE 1 on $(hostname): 16 MiB on Fake GPU 1 at 0000:93:00.0; NIC softhca3:1 (RoCE, PHB from the GPU): GPUDirect by dma-buf; $atomics
PE 0 reaches PE 0 by verbs" -- $peers
says 'PE 0 reaches PE 0 by p2p, atomics by verbs, kernels direct; PEs 1 to 8 by verbs, atomics by verbs, kernels by ring' \
    GPUSHMEM_TRANSPORTS=p2p,verbs GPUSHMEM_HEAP_KIND=host -- run -n 9 --nodes 9 "$gpushmem" info --peers
says 'NICs softhca0:1 (RoCE, PIX from the GPU), softhca1:1 (RoCE, PXB from the GPU): GPUDirect by peer memory (dma-buf: Operation not supported)' GPUSHMEM_VERBS_RAILS=2 GPUSHMEM_SOFTHCA_DMABUF=0 -- info --peers
says 'GPUDirect by peer memory (dma-buf: GPUSHMEM_TEST_VERBS_DMABUF=off)' GPUSHMEM_TEST_VERBS_DMABUF=off -- info --peers
says 'no GPUDirect, staged through pinned host memory: softhca0:1 cannot register 83886080 bytes of GPU memory (by dma-buf: Operation not supported; by address: Bad address)' GPUSHMEM_SOFTHCA_DMABUF=0 GPUSHMEM_SOFTHCA_PEERMEM=0 -- info --peers
says 'puts and gets from 65536 bytes on are staged through pinned host memory: GPUSHMEM_GPUDIRECT_DISTANCE wants PHB or nearer, softhca3:1 is at SYS' GPUSHMEM_VERBS_DEVICES=softhca0,softhca3 GPUSHMEM_VERBS_RAILS=2 GPUSHMEM_GPUDIRECT_DISTANCE=phb -- info --peers
exit $failed
