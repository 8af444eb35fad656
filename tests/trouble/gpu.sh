#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What can go wrong with GPUs, on those of the fake driver: each ends in one clear sentence on every PE, or is survived.
# usage: gpu.sh BIN_DIR LIB_DIR
set -u
bin=$1 lib=$2
failures=0
# shellcheck source=cases.sh
. "$(dirname "$0")/cases.sh"

export LD_LIBRARY_PATH=$lib/fake_cuda/new GPUSHMEM_HEAP_KIND=device GPUSHMEM_HEAP_SIZE=16M GPUSHMEM_LOG_LEVEL=info
run="$bin/gpushmem run"
job="$run -n 2 $bin/lifecycle"

# With NICs beside the GPUs.
export GPUSHMEM_SOFTHCA_DIR=/dev/shm/gpushmem-trouble-$$ GPUSHMEM_SOFTHCA_DEVICES=2 GPUSHMEM_SOFTHCA_QUIET=1
export ASAN_OPTIONS=verify_asan_link_order=0
nic="env LD_PRELOAD=$lib/libgpushmem_softhca.so"
mlx5="env LD_PRELOAD=$lib/libgpushmem_softhca.so:$lib/fake_mlx5/libmlx5.so.1 GPUSHMEM_TRANSPORTS=verbs"

# ---- registration with NICs ----
direct="over its data-direct function"
works "data-direct function" "by dma-buf, $direct" $mlx5 $job
works "data-direct function, dma-bufs of two kinds" "$direct" $mlx5 FAKE_CUDA_ATTRIBUTES=pcie_dmabuf=1 $job
works_without "data-direct function refuses" "$direct" $mlx5 FAKE_MLX5_REFUSES=1 $job
works_without "data-direct function not wanted" "$direct" $mlx5 GPUSHMEM_VERBS_DATA_DIRECT=off $job

[ $failures -eq 0 ]
