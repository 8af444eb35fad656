// SPDX-License-Identifier: BSD-3-Clause
// What headers declare where GPSH_EMU_LINKED is defined: compiled once for all programs with
// kernels of this build.
#define GPSH_EMU_LIBRARY
// streams as runtime/stream/coll_kernels.cu has them
#define GPSH_COLL_LOADS 4
#define GPSH_COLL_SUMS  1
#include "gpushmem/device.cuh"
