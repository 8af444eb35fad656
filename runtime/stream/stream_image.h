// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_STREAM_IMAGE_H
#define GPSH_STREAM_IMAGE_H

// A fatbin with the kernels, or NULL: built without CUDA's compiler.
extern const void *const gpsh_stream_image;

#endif
