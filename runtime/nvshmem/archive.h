// SPDX-License-Identifier: BSD-3-Clause
// What the jumps of libnvshmem.a (archive.sh) want from archive.c.
#ifndef GPSH_NVSHMEM_ARCHIVE_H
#define GPSH_NVSHMEM_ARCHIVE_H

#include <stddef.h>

// Writes the addresses of the `n` functions whose names follow each other in `names`, each with
// its zero, into `slots`. Loads libnvshmem_host for that; ends the process with status 127 and a
// sentence, as the dynamic loader does, if the library or one of the functions is not to be found.
__attribute__((visibility("hidden"))) void gpsh_nvshmem_archive_fill(void **slots,
                                                                     const char *names, size_t n);

#endif
