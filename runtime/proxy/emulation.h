// SPDX-License-Identifier: BSD-3-Clause
// Kernels on CPU threads: what the headers in device/ and the library tell each other.
#ifndef GPSH_EMULATION_H
#define GPSH_EMULATION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "gpushmem/stream.h"

struct gpushmem_stream_op;
typedef int gpsh_enqueue(gpushmem_stream_t stream, const struct gpushmem_stream_op *op);

// Carries out operations in the program's emulated streams; NULL until it launched a kernel there.
gpsh_enqueue *gpsh_emulation(void);

// The program's kernels run on CPU threads, which wake a sleeping proxy. Set when they make
// themselves known. GPU kernels can use a host heap too (HMM, Grace), and wake nobody.
extern _Atomic bool gpsh_kernels_wake;

// 0, or GPUSHMEM_ERR_INVALID with a sentence: a call of a block or warp that not all of its threads
// made, since the last time that this was asked.
int gpsh_emulation_take_missed(void);

// Waits until emulated kernels have ended: they would wait on, and help the proxy, in memory that
// is gone. (A GPU's driver waits by itself before it frees memory.)
void gpsh_emulation_await_kernels(void);

#endif
