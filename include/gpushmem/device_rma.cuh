// SPDX-License-Identifier: BSD-3-Clause
// gpushmem in kernels without collectives of teams: puts, gets, signals, atomics, waits, contexts,
// order and barriers of all PEs, and launches. Contracts are in gpushmem/device.cuh, which includes
// this and the collectives; a file that uses none compiles faster with this header.
#ifndef GPUSHMEM_DEVICE_RMA_ONLY_CUH
#define GPUSHMEM_DEVICE_RMA_ONLY_CUH

#if __cplusplus < 201703L
#error "gpushmem in kernels is C++17: compile with -std=c++17 or newer"
#endif

// programs may compile with -Wextra: functions made from one pattern do not use every parameter
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

#if !defined(__CUDACC__)
#include "gpushmem/device/emu_cuda.hpp"
#endif

#include "gpushmem/device/api_generic.cuh"
#include "gpushmem/device/api_rma.cuh"
#include "gpushmem/device/api_sync.cuh"
#include "gpushmem/device/launch.cuh"
#include "gpushmem/device/launch_collective.cuh"

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
