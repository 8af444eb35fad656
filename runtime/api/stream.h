// SPDX-License-Identifier: BSD-3-Clause
// Streams, as other calls of the host use them.
#ifndef GPSH_STREAM_H
#define GPSH_STREAM_H

#include "gpushmem/stream.h"

// Returns when everything in `stream` has ended. `function` is for the sentence of a failure.
int gpsh_stream_drain(const char *function, gpushmem_stream_t stream);

#endif
