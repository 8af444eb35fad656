// SPDX-License-Identifier: BSD-3-Clause
// A CUDA driver without a GPU: a libcuda.so.1 for tests, found through LD_LIBRARY_PATH. It
// implements the functions of runtime/gpu_driver.h, and is stricter than a driver:
//   - What lies in "GPU memory" is not accessible at the address that the program sees: a
//   dereference by the host, which a GPU
//     would answer with a crash as well, crashes. Only calls of the driver move data.
//   - Streams run their work on threads of their own, later: who forgets to wait sees old data.
//   - Work that reaches outside an allocation breaks the context (error 700, sticky); a double
//   free, a bad handle or a size that
//     is no multiple of the granularity ends the process with a sentence; what is not released is
//     told at exit (exit code 66).
//   - Calls that need a current context fail without one.
// The memory itself is an anonymous file, so that other processes really map it: by VMM handles, or
// by IPC handles.
//
// Environment
//   FAKE_CUDA_DEVICES=n          GPUs (1)
//   FAKE_CUDA_PCI=list           their PCI addresses (0000:10:00.0,0000:20:00.0,...)
//   FAKE_CUDA_MEMORY=bytes       memory of each, as each process sees it (8 GiB)
//   FAKE_CUDA_VERSION=n          13000: what cuDriverGetVersion says
//   FAKE_CUDA_ATTRIBUTES=list    vmm=0,posix_fd=0,rdma_vmm=0,rdma=0,dmabuf=0,ordering=0,flush=0:
//   what the GPU has not;
//                                pcie_dmabuf=1: it has two kinds of dma-buf; pageable=1: it reaches
//                                all memory of the process
//   FAKE_CUDA_PEER=0             no GPU reaches another one's memory
//   FAKE_CUDA_FAIL=list          cuMemCreate:2,cuMemMap:1@3: calls that fail, with which code, from
//   which call on (1); names
//                                without their _v2. cuMemMap:1@3-3: only the third
//   FAKE_CUDA_DELAY_US=n         each operation of a stream begins that much later
//   FAKE_CUDA_VISIBLE=1          GPU memory is accessible to the host, for kernels that run on CPU
//   threads FAKE_CUDA_LEAKS=0            nothing is said at exit, for programs that are killed or
//   leave in the middle
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

// For programs that look behind the curtain: found by dlsym in the loaded library.
// where the driver itself
// reaches it, or NULL
__attribute__((visibility("default"))) void *fake_cuda_host(unsigned long long device_pointer);
// so far; name without _v2
__attribute__((visibility("default"))) unsigned long fake_cuda_calls(const char *function);
// Calls of the function, in all threads, return after the next fake_cuda_hold(NULL) only: as in a
// driver where another thread copies pageable memory in the default stream behind a kernel.
__attribute__((visibility("default"))) void fake_cuda_hold(const char *function);

#endif
