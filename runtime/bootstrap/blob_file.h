// SPDX-License-Identifier: BSD-3-Clause
// Blobs of PEs in files of the session directory. A PMIx server keeps all that was ever put and
// sends it along with every exchange; libpmix 4.2 does not find again what was put twice under one
// key. So each further init of a process would take longer than the one before.
#ifndef GPSH_BLOB_FILE_H
#define GPSH_BLOB_FILE_H

#include <stddef.h>
#include <stdint.h>

// Writes the blob of PE `pe` in `round`, in the place of the one of two rounds before: with an
// exchange in each round, all PEs have read that. 0, or a negative status and its sentence.
int gpsh_blob_file_write(const char *dir, int pe, uint32_t round, const void *blob, size_t bytes);
// *blob is for the caller to free.
int gpsh_blob_file_read(const char *dir, int pe, uint32_t round, void **blob, size_t *bytes);

#endif
