// SPDX-License-Identifier: BSD-3-Clause
// The length of files without a name that are memory (memfd_create).
#ifndef GPSH_MEMORY_FILE_H
#define GPSH_MEMORY_FILE_H

#include <stdint.h>

// As ftruncate, but what exceeds the limit of file sizes (ulimit -f, which counts for memory files,
// too) ends in EFBIG, where the kernel would end the process by SIGXFSZ. 0 or an errno. Any thread.
int gpsh_memory_file_grow(int fd, uint64_t bytes);

#endif
