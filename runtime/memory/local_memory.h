// SPDX-License-Identifier: BSD-3-Clause
// Memory outside the heap that kernels name as the local side of an operation: a wild pointer must
// fail that operation, and not take the proxy with it.
#ifndef GPSH_LOCAL_MEMORY_H
#define GPSH_LOCAL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// With heaps in GPU memory: is all of [address, + bytes) GPU memory or pinned host memory that CUDA
// knows, a registered buffer, or, where the GPU reaches pageable memory, mapped at all? Answers
// stay good for a millisecond, so what is freed while an operation on it is under way may pass. Any
// thread.
bool gpsh_local_known(uint64_t address, uint64_t bytes);

// Whether this process has such memory: GPU memory, or mapped at its first and last byte and
// without a hole between them.
bool gpsh_local_exists(const void *base, size_t bytes);

// Buffers of gpushmem_buffer_register. GPUSHMEM_ERR_INVALID: overlaps another one;
// GPUSHMEM_ERR_NO_MEMORY. Unregister: false if none begins at `base`.
bool gpsh_local_overlaps(const void *base, size_t bytes); // one of them
int gpsh_local_register(void *base, size_t bytes);
bool gpsh_local_unregister(const void *base);
void *gpsh_local_any(void); // where one of them begins; NULL: there is none
void gpsh_local_finalize(void);

#endif
