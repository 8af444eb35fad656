// SPDX-License-Identifier: BSD-3-Clause
// Queues of NICs that kernels post to by themselves (GPUSHMEM_DEVICE_POST): the table of them in
// the handle of kernels, which fills as kernels ask for queues and transports make them; what the
// host waits for there, and what a failure means. docs/design/nic_posts.md.
#ifndef GPSH_KERNEL_QUEUES_H
#define GPSH_KERNEL_QUEUES_H

#include <stdbool.h>

#include "gpu/device_memory.h"
#include "gpushmem/device_abi.h"
#include "proxy/handle.h"

// Makes the table, where the setting asks for it and a transport has such queues. Words that
// kernels fetch land in the host's part of the handle. `dev`: that of kernels, in device memory.
int gpsh_kernel_queues_make(const struct gpsh_device_memory *memory, struct gpsh_handle_host *host,
                            const struct gpushmem_dev *dev);
// No kernel runs any more. `rings_used`: their rings brought operations for transports.
void gpsh_kernel_queues_unmake(bool rings_used);
// Of a context of kernels; 0: the default one. Device memory; NULL: none was made.
struct gpushmem_nic *gpsh_kernel_queues_table(int context);

// A kernel wants that context's queue towards `pe`. Any thread.
void gpsh_kernel_queues_ask(int context, int pe);

// Waits until what kernels that have ended posted to that context's queues (GPSH_CONTEXT_ALL: to
// any) is complete: 0, or a negative status with a sentence.
int gpsh_kernel_queues_quiet(int context);

// Takes the first error completion that a kernel has found and nobody has heard of, of one queue:
// its status, with a sentence as the thread's last error; 0: none. Others are left to the next
// call, but of a lost PE one is enough. Those who hear of lost PEs are told.
int gpsh_kernel_queues_take_error(void);

#endif
