#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What can go wrong with GPUs, on those of the fake driver: each ends in one clear sentence on every PE, or is survived.
# usage: gpu.sh BIN_DIR LIB_DIR
# shellcheck disable=SC2016,SC2034,SC2086 # commands are split on purpose, PEs expand their own variables
set -u
bin=$1 lib=$2
failures=0 unwanted='fake cuda: ' # misuse of the driver, or something not released at exit
trap 'rm -rf "/dev/shm/gpushmem-trouble-$$"' EXIT
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

# ---- the driver ----
if ! env -u LD_LIBRARY_PATH "$bin/gpushmem" info | grep -q '^CUDA driver'; then
    says "no driver" "GPUSHMEM_HEAP_KIND=device, but no GPU can be used here: there is no CUDA driver here: libcuda.so.1" \
        env -u LD_LIBRARY_PATH $job
    works "no driver, nothing demanded" "of host memory" env -u LD_LIBRARY_PATH GPUSHMEM_HEAP_KIND=auto $job
fi
says "old driver" "the CUDA driver is too old: it is of CUDA 11.4 and has no cuStreamWriteValue64_v2; gpushmem needs driver 515 \
(CUDA 11.7) or newer" env LD_LIBRARY_PATH=$lib/fake_cuda/old FAKE_CUDA_VERSION=11040 $job
works "old driver, nothing demanded" "of host memory" env LD_LIBRARY_PATH=$lib/fake_cuda/old GPUSHMEM_HEAP_KIND=auto $job
works "old driver, told by info" "GPUs          none (the CUDA driver is too old" env LD_LIBRARY_PATH=$lib/fake_cuda/old \
    "$bin/gpushmem" info
says "driver's halves do not match" "libcuda.so.1 and the kernel's NVIDIA driver are of different versions" \
    env FAKE_CUDA_FAIL=cuInit:803 $job
says "driver does not start" "explains it under cuda): unknown error (999, CUDA_ERROR_UNKNOWN)" \
    env FAKE_CUDA_FAIL=cuInit:999 $job

# ---- the GPU ----
says "no GPU visible" "the CUDA driver sees no GPU; is CUDA_VISIBLE_DEVICES set to nothing?" env CUDA_VISIBLE_DEVICES= $job
says "GPU taken" "GPU 0 cannot be used; is it in exclusive mode and taken by another process?: CUDA-capable device(s) is/are busy" \
    env FAKE_CUDA_FAIL=cuDevicePrimaryCtxRetain:46 $job
says "no memory" "GPUSHMEM_HEAP_SIZE=16M does not fit on Fake GPU 0 at 0000:10:00.0: 7M of its 7M are free (2 PEs on this node \
share its GPUs); lower it, or set GPUSHMEM_HEAP_KIND=host" env FAKE_CUDA_MEMORY=8000000 $job
says "no memory for one PE, the others are told" "PE 1 on $(hostname) could not initialise: GPUSHMEM_HEAP_SIZE=16M does not fit" \
    $run --on-failure continue -n 3 sh -c '[ $GPUSHMEM_RUN_PE = 1 ] && export FAKE_CUDA_MEMORY=8000000; exec "$0"' "$bin/lifecycle"
works "no memory for the default size, which shrinks for all" "each PE's heap has 8M instead of the 256M that are the default: PE 1 \
has no room for more" $run -n 2 env -u GPUSHMEM_HEAP_SIZE sh -c '[ $GPUSHMEM_RUN_PE = 1 ] && export FAKE_CUDA_MEMORY=151663296
exec "$0" 8' "$bin/process_heap_size"
says "heaps here and there" "has its heap in" \
    $run -n 2 sh -c '[ $GPUSHMEM_RUN_PE = 1 ] && export GPUSHMEM_HEAP_KIND=host; exec "$0"' "$bin/lifecycle"

says "kernels on CPU threads, heap on a GPU" "a kernel was not launched: its kernels run on CPU threads, but the heap is in GPU \
memory; set GPUSHMEM_HEAP_KIND=host, or build the program with nvcc" env FAKE_CUDA_LEAKS=0 $run -n 2 "$bin/hello"

# ---- sharing the heap within the node ----
works "no VMM" "shared by CUDA IPC" env FAKE_CUDA_ATTRIBUTES=vmm=0 $job
works "no file descriptors for VMM memory" "shared by CUDA IPC" env FAKE_CUDA_ATTRIBUTES=posix_fd=0 $job
says "no VMM, but demanded" "GPUSHMEM_TEST_HEAP_EXPORT=vmm: Fake GPU 0 has no file descriptors for VMM memory; set it to auto" \
    env FAKE_CUDA_ATTRIBUTES=vmm=0 GPUSHMEM_TEST_HEAP_EXPORT=vmm $job
works "VMM refused after all" "operation not permitted (800, CUDA_ERROR_NOT_PERMITTED); CUDA IPC is used instead" \
    env FAKE_CUDA_FAIL=cuMemExportToShareableHandle:800 $job
works "one PE by VMM, one by IPC" "shared by CUDA IPC" \
    $run -n 2 sh -c '[ $GPUSHMEM_RUN_PE = 1 ] && export FAKE_CUDA_ATTRIBUTES=vmm=0; exec "$0"' "$bin/lifecycle"
says "IPC refused" "a CUDA IPC handle for the heap on Fake GPU 0; containers need --ipc=host for it: OS call failed" \
    env GPUSHMEM_TEST_HEAP_EXPORT=ipc FAKE_CUDA_FAIL=cuIpcGetMemHandle:304 $job
apart() {
    echo "PE 0 (Fake GPU 0 at 0000:10:00.0) and PE 1 (Fake GPU 1 at 0000:20:00.0) of this node do not reach each other: GPU 0000:10:00.0 \
cannot map PE 1's heap$1: peer access is not supported between these two devices (217, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED); nor by \
GPUSHMEM_TRANSPORTS=p2p. It takes peer access (nvidia-smi topo -p2p rw), verbs and an RDMA device, or GPUSHMEM_HEAP_KIND=host"
}
two_gpus="env FAKE_CUDA_DEVICES=2 FAKE_CUDA_PEER=0"
says "no peer access" "$(apart "")" $two_gpus GPUSHMEM_TRANSPORTS=p2p $job
says "no peer access, IPC" "$(apart " by CUDA IPC")" $two_gpus GPUSHMEM_TRANSPORTS=p2p GPUSHMEM_TEST_HEAP_EXPORT=ipc $job
says "no peer access, no NIC" "nor by GPUSHMEM_TRANSPORTS=p2p,verbs (verbs: no " $two_gpus GPUSHMEM_TRANSPORTS=p2p,verbs $job
works "no peer access, but a network" "PE 1 by ofi (" $two_gpus $job
works "no peer access, by NIC" "PE 1 by verbs (softhca" $nic $two_gpus $job
works "peer access between some, by NIC" "PE 2 by p2p (mapped GPU memory), atomics by verbs" \
    $nic $two_gpus $run -n 3 "$bin/lifecycle"
says "one import refused, the others are told" "PE 2 on $(hostname) could not initialise: PE 2 (Fake GPU 0 at \
0000:10:00.0) and PE 0 (Fake GPU 0 at 0000:10:00.0) of this node do not reach each other: \
GPU 0000:10:00.0 cannot map PE 0's heap: \
unknown error (999, CUDA_ERROR_UNKNOWN)" \
    env GPUSHMEM_TRANSPORTS=p2p $run --on-failure continue -n 3 \
    sh -c '[ $GPUSHMEM_RUN_PE = 2 ] && export FAKE_CUDA_FAIL=cuMemImportFromShareableHandle:999; exec "$0"' "$bin/lifecycle"

# ---- queues and kernels ----
says "no stream" "no stream on GPU 0000:10:00.0: out of memory (2, CUDA_ERROR_OUT_OF_MEMORY)" env FAKE_CUDA_FAIL=cuStreamCreate:2 $job
says "kernels are not loaded" "loading the library's kernels on Fake GPU 0: a PTX JIT compilation failed (218, " \
    env FAKE_CUDA_FAIL=cuModuleLoadData:218 $job
says "kernels are not loaded on one PE, the others are told" "PE 1 on $(hostname) could not initialise: loading the library's" \
    $run --on-failure continue -n 3 sh -c '[ $GPUSHMEM_RUN_PE = 1 ] && export FAKE_CUDA_FAIL=cuModuleLoadData:218; exec "$0"' "$bin/lifecycle"
says "launching refused" "loading the library's kernels on Fake GPU 0: unspecified launch failure (719, CUDA_ERROR_LAUNCH_FAILED)" \
    env FAKE_CUDA_FAIL=cuLaunchKernel:719 $job
says "copying refused" "bytes from " env FAKE_CUDA_LEAKS=0 FAKE_CUDA_FAIL=cuMemcpyHtoDAsync:719 $job

# ---- registration with NICs ----
direct="over the NIC's data-direct function"
works "dma-buf refused" "NIC softhca0:1 (RoCE): GPUDirect by peer memory (dma-buf: Operation not supported)" $nic GPUSHMEM_TRANSPORTS=verbs GPUSHMEM_SOFTHCA_DMABUF=0 $job
works "no dma-buf" "dma-buf: the driver has no dma-buf for GPU memory" $nic GPUSHMEM_TRANSPORTS=verbs FAKE_CUDA_ATTRIBUTES=dmabuf=0 $job
unregistered="$nic GPUSHMEM_TRANSPORTS=verbs GPUSHMEM_SOFTHCA_DMABUF=0 GPUSHMEM_SOFTHCA_PEERMEM=0"
works "no dma-buf, no peer memory" "the heap is staged through pinned host memory, which is slower than GPUDirect: softhca0:1 cannot \
register 83886080 bytes of GPU memory" $unregistered $job
says "no dma-buf, no peer memory, GPUDirect demanded" "softhca0:1 cannot register 83886080 bytes of GPU memory" \
    $unregistered GPUSHMEM_GPUDIRECT=always $job
says "dma-buf demanded and refused" "GPUSHMEM_TEST_VERBS_DMABUF=require, but the NIC refused the dma-buf of the GPU memory" \
    $nic GPUSHMEM_TRANSPORTS=verbs GPUSHMEM_TEST_VERBS_DMABUF=require GPUSHMEM_SOFTHCA_DMABUF=0 $job
only="GPUSHMEM_TRANSPORTS=verbs"
works "unordered writes, flushed" "Fake GPU 0 does not order what NICs write to it: the host's waits flush, but kernels that wait" \
    $nic $only FAKE_CUDA_ATTRIBUTES=ordering=0 $job
works "unordered writes, no flush" "and has no flush, so the host and kernels that wait for a signal from another node may see it" \
    $nic $only FAKE_CUDA_ATTRIBUTES=ordering=0,flush=0 $job
works "NIC that is not there" "GPUSHMEM_VERBS_DEVICES names mlx5_9, which this machine does not have (softhca0, softhca1)" \
    $nic GPUSHMEM_TRANSPORTS=verbs GPUSHMEM_VERBS_DEVICES=mlx5_9,softhca1 $job
works "data-direct function" "by dma-buf, $direct, flushed" $mlx5 $job
works_without "data-direct function, no flush" "$direct" $mlx5 FAKE_CUDA_ATTRIBUTES=flush=0 $job
works "data-direct function, dma-bufs of two kinds" "$direct" $mlx5 FAKE_CUDA_ATTRIBUTES=pcie_dmabuf=1 $job
works_without "data-direct function refuses" "$direct" $mlx5 FAKE_MLX5_REFUSES=1 $job
works_without "data-direct function not wanted" "$direct" $mlx5 GPUSHMEM_TEST_VERBS_DATA_DIRECT=off $job

[ $failures -eq 0 ]
