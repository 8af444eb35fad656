// SPDX-License-Identifier: BSD-3-Clause
// How much memory this process may ever have.
#ifndef GPSH_MEMORY_LIMIT_H
#define GPSH_MEMORY_LIMIT_H

#include <stdint.h>

// Bytes: the machine's memory, or less if this process's control group, or one above it, may have
// less. Any thread.
uint64_t gpsh_memory_limit(void);

// The smallest limit among the control groups that the file `membership` names (as
// /proc/self/cgroup) and those above them, looked for below the folder `mount` (as /sys/fs/cgroup),
// versions 1 and 2. UINT64_MAX: none.
uint64_t gpsh_memory_limit_of_groups(const char *membership, const char *mount);

#endif
