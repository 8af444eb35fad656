// SPDX-License-Identifier: BSD-3-Clause
// Where the main program's static data lies in this process, and which program it is.
#ifndef GPSH_STATICS_IMAGE_H
#define GPSH_STATICS_IMAGE_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

struct gpsh_statics_image {
    char *base; // whole pages: .data and .bss without what the loader made read-only
    uint64_t bytes;
    uint64_t file_bytes; // of them, so many from the start may come from the file
    uint64_t id;         // equal in processes of the same program, at whatever address
};

// 0, or GPUSHMEM_ERR_UNSUPPORTED with a sentence: the program's writable segments are not one range
// of ordinary private memory.
int gpsh_statics_image_find(struct gpsh_statics_image *out);

// The same of program headers at `bias`, for tests: the range, whatever is mapped there.
int gpsh_statics_image_range(const ElfW(Phdr) * headers, size_t n, uintptr_t bias,
                             struct gpsh_statics_image *out);

#endif
