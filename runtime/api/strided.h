// SPDX-License-Identifier: BSD-3-Clause
// iput and iget: their checks, for those of streams, too.
#ifndef GPSH_STRIDED_H
#define GPSH_STRIDED_H

#include <stddef.h>

// Strides in elements of `size` bytes. *span: bytes from the first to the end of the last element
// of `sym`.
int gpsh_strided_check(const char *function, const void *sym, ptrdiff_t remote_stride,
                       const void *local, ptrdiff_t local_stride, size_t nelems, size_t size,
                       int pe, size_t *span);

#endif
