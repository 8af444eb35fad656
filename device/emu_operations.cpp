// SPDX-License-Identifier: BSD-3-Clause
// What headers declare where GPSH_EMU_LINKED is defined: compiled once for all programs with
// kernels of this build.
#define GPSH_EMU_LIBRARY
#include "gpushmem/device.cuh"
