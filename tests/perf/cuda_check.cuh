// SPDX-License-Identifier: BSD-3-Clause
// For programs that only measure: a failed call of the CUDA runtime ends them with its place and
// reason.
#ifndef PERF_CUDA_CHECK_CUH
#define PERF_CUDA_CHECK_CUH

#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                          \
                    cudaGetErrorString(error_));                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
