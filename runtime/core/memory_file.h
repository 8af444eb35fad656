// SPDX-License-Identifier: BSD-3-Clause
// The length of files without a name that are memory (memfd_create).
#ifndef GPSH_MEMORY_FILE_H
#define GPSH_MEMORY_FILE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

// In whole pages of whatever machine: each one's are a part of 64 KiB, so all get the same.
static inline uint64_t gpsh_whole_pages(uint64_t bytes)
{
    const uint64_t most = 65536;
    return (bytes + most - 1) / most * most;
}

// As ftruncate, but what exceeds the limit of file sizes (ulimit -f, which counts for memory files,
// too) ends in EFBIG, where the kernel would end the process by SIGXFSZ. 0 or an errno. Any thread.
int gpsh_memory_file_grow(int fd, uint64_t bytes);

// Between these two calls of a thread, what it writes beyond the limit of file sizes ends in EFBIG
// and no signal, in other files, too. `exceeded`: that has happened.
struct gpsh_file_limit {
    sigset_t old;
    bool theirs;
};
void gpsh_file_limit_begin(struct gpsh_file_limit *limit);
void gpsh_file_limit_end(const struct gpsh_file_limit *limit, bool exceeded);

#endif
