// SPDX-License-Identifier: BSD-3-Clause
// What failed in kernels: taken from where they have recorded it, as the thread's last failure.
#ifndef GPSH_KERNEL_FAULT_H
#define GPSH_KERNEL_FAULT_H

#include <stdbool.h>

#include "gpu/device_memory.h"
#include "proxy/handle.h"
#include "proxy/ring.h"

// Takes the first fault of kernels, so that the next one is recorded: its status, with a sentence,
// or 0. *mute: the call in the kernel had no status to tell it by, as p has none; left alone
// without a fault. One thread at a time.
int gpsh_kernel_fault_take(const struct gpsh_device_memory *memory, struct gpsh_handle_host *host,
                           struct gpsh_handle_device *device, const struct gpsh_ring_set *rings,
                           bool *mute);
// A kernel's wait has ended since a PE was lost, or the operation was towards that one.
bool gpsh_kernel_fault_is_loss(const struct gpsh_handle_host *host, int status);
// Fails with `status`, and names the first ring that kernels cannot use any more.
int gpsh_kernel_fault_of_ring(const struct gpsh_ring_set *rings, int status);
// Logs the thread's last failure, which was taken from a kernel: a program that looks at no status
// hears of it so. The first 16 of the process.
void gpsh_kernel_fault_say(void);

#endif
