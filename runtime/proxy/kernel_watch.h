// SPDX-License-Identifier: BSD-3-Clause
// A thread of the library that tells what kernels wait for: on each SIGUSR1; on the board while a
// thread of the program is in gpushmem_launch_wait; and in the log, once, when one of their waits
// has lasted GPUSHMEM_HANG_REPORT seconds. A kernel that computes is no hang, however long. A call
// of the CUDA driver that keeps a thread of the library is told likewise, also if nobody is in a
// wait.
#ifndef GPSH_KERNEL_WATCH_H
#define GPSH_KERNEL_WATCH_H

#include "proxy/handle.h"

// The memory stays until the stop. 0, GPUSHMEM_ERR_NO_MEMORY or GPUSHMEM_ERR_SYSTEM.
int gpsh_kernel_watch_start(struct gpsh_handle_host *host);
void gpsh_kernel_watch_stop(void); // legal if it was never started
// Each gpushmem_launch_wait begins with a call of this; it may come out of a job.
void gpsh_kernel_watch_before_wait(void (*send_off)(void));

#endif
