// SPDX-License-Identifier: BSD-3-Clause
#include "stream/stream_image.h"

#include <stddef.h>

// Built with nvcc: the bytes of the file GPSH_STREAM_IMAGE (cmake/GpushmemStreamKernels.cmake).
#if defined(GPSH_STREAM_IMAGE)
__asm__(".pushsection .rodata\n"
        ".balign 64\n"
        "gpsh_stream_image_bytes:\n"
        ".incbin \"" GPSH_STREAM_IMAGE "\"\n"
        ".popsection\n");
extern const char gpsh_stream_image_bytes[] __attribute__((visibility("hidden")));
const void *const gpsh_stream_image = gpsh_stream_image_bytes;
#else
const void *const gpsh_stream_image = NULL;
#endif
