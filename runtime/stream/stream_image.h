// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_STREAM_IMAGE_H
#define GPSH_STREAM_IMAGE_H

// Fatbins with the kernels, or NULL: built without CUDA's compiler.
extern const void *const gpsh_stream_image; // of single operations
extern const void *const gpsh_coll_image;   // of collectives

#endif
