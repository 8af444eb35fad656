// SPDX-License-Identifier: BSD-3-Clause
#include "stream/stream_image.h"

#include <stddef.h>

// Built with nvcc: the bytes of the files GPSH_STREAM_IMAGE and GPSH_COLL_IMAGE
// (cmake/GpushmemStreamKernels.cmake).
#if defined(GPSH_STREAM_IMAGE)
#define IMAGE(NAME, FILE)                                                                          \
    __asm__(".pushsection .rodata\n"                                                               \
            ".balign 64\n" NAME ":\n"                                                              \
            ".incbin \"" FILE "\"\n"                                                               \
            ".popsection\n")
IMAGE("gpsh_stream_image_bytes", GPSH_STREAM_IMAGE);
IMAGE("gpsh_coll_image_bytes", GPSH_COLL_IMAGE);
extern const char gpsh_stream_image_bytes[] __attribute__((visibility("hidden")));
extern const char gpsh_coll_image_bytes[] __attribute__((visibility("hidden")));
const void *const gpsh_stream_image = gpsh_stream_image_bytes;
const void *const gpsh_coll_image = gpsh_coll_image_bytes;
#else
const void *const gpsh_stream_image = NULL;
const void *const gpsh_coll_image = NULL;
#endif
