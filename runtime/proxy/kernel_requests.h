// SPDX-License-Identifier: BSD-3-Clause
// What kernels have posted to queues of NICs, as the host sees it: whether it is complete, and
// which of it has failed. It consumes no completion: kernels do. docs/design/nic_posts.md.
#ifndef GPSH_KERNEL_REQUESTS_H
#define GPSH_KERNEL_REQUESTS_H

#include "proxy/kernel_lane.h"

// As gpsh_kernel_queues_quiet and gpsh_kernel_queues_take_error, which call them. Any thread,
// without the lane's lock; take_error: while there are tables.
int gpsh_kernel_requests_quiet(struct gpsh_kernel_lane *lane, int context);
int gpsh_kernel_requests_take_error(struct gpsh_kernel_lane *lane);

// Looks for error completions that no kernel has found, of some queues each time. The caller holds
// the lock.
void gpsh_kernel_requests_find_failures(struct gpsh_kernel_lane *lane);

#endif
