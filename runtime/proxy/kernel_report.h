// SPDX-License-Identifier: BSD-3-Clause
// What kernels say: where one failed, and on SIGUSR1 what one waits for.
#ifndef GPSH_KERNEL_REPORT_H
#define GPSH_KERNEL_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/device_memory.h"
#include "proxy/handle.h"

enum { GPSH_KERNEL_TEXT = 384 };

// "block (0,0,0), thread (1,0,0), for the word at heap offset 64, which is 0, to be >= 7", or
// whatever else the thread has told.
void gpsh_kernel_describe(const struct gpushmem_device_fault *fault, char *text, size_t bytes);
// Whether that says what was wrong, so that the status need not be told as well.
bool gpsh_kernel_explained(const struct gpushmem_device_fault *fault);

// From now on a thread of the library logs, on each SIGUSR1, what a kernel waits for and how many
// threads of the program are in gpushmem_launch_wait. The memory stays until the stop. 0 or
// GPUSHMEM_ERR_SYSTEM.
int gpsh_kernel_report_start(const struct gpsh_device_memory *memory, struct gpsh_handle_host *host,
                             struct gpsh_handle_device *device);
void gpsh_kernel_report_stop(void); // legal if it was never started

#endif
