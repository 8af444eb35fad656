// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// Operations of a stream: the host issues them, and each is executed after what is in the stream
// already and before what comes later. gpushmem.h includes this file; no CUDA header is needed.
//
//   cudaStream_t stream; // cudaStream_t, CUstream and gpushmem_stream_t are one type
//   kernel<<<grid, block, 0, stream>>>(outbox);
//   gpushmem_putmem_signal_on_stream(inbox, outbox, bytes, flag, 1, GPUSHMEM_SIGNAL_SET, right,
//                                    stream);
//   gpushmem_signal_wait_until_on_stream(flag, GPUSHMEM_CMP_GE, 1, stream);
//   next<<<grid, block, 0, stream>>>(inbox); // sees the left neighbour's data
//
// Rules that hold for all of them, beside those of gpushmem.h
//
//   Return     The calls check their arguments, enqueue the operation, and return 0 at once. With a
//              negative status nothing was enqueued. They never wait for the stream, for another PE
//              or for the GPU.
//   Order      Operations and kernels of one stream run one after the other; different streams are
//              independent. An operation sees what was before it in the stream, and what follows it
//              in the stream sees what it did here. At a PE that is mapped here (device_direct of
//              gpushmem_peer_info) it is complete before the next one begins; at any other PE a put
//              is complete after quiet_on_stream, barrier_all_on_stream, or gpushmem_quiet once the
//              stream has been synchronised.
//   Source     The source belongs to the operation until the stream has passed it. Later kernels
//              and operations of the stream may write it; the host may do so only after it has
//              synchronised with the stream, or with an event recorded after the operation.
//   Remote     memory is in the symmetric heap: static data of the program is refused.
//   Local      Local memory is in the symmetric heap, other memory of this GPU, or pinned host
//              memory. Pageable host memory is refused. Source and destination do not overlap.
//   Failures   What fails after the call has returned (a PE that is lost, GPUSHMEM_WAIT_TIMEOUT_MS)
//              is treated like a failure in a kernel: the operation ends, the stream goes on, and
//              gpushmem_device_error, gpushmem_quiet and gpushmem_barrier_all report it.
//   Graphs     All calls are legal while the stream is being captured into a CUDA graph, also the
//              first one of a program. The graph may be launched any number of times: the same
//              operation happens each time.
//   Threads    As everywhere. If two threads enqueue in one stream, the program orders them.
//   Streams    NULL is the default stream. Let the streams end before gpushmem_free of what they
//              use, and before gpushmem_finalize.
//   No GPU     Streams are those of gpushmem_stream_create (gpushmem/device.cuh), whose kernels run
//              on CPU threads. In a program without kernels only NULL is legal, and every call does
//              its work before it returns, waits included.
//   Errors     besides those of every function with an argument `pe`:
//                GPUSHMEM_ERR_INVALID      the local memory is NULL or pageable; the operator or
//                                          the comparison does not exist; a stride is below 1
//                GPUSHMEM_ERR_ALIGNMENT    a signal word is not a multiple of 8
//                GPUSHMEM_ERR_UNSUPPORTED  the library was built without CUDA's compiler, so it has
//                                          no kernels of its own; or the heap is in host memory,
//                                          and `stream` is a stream of a GPU
//                GPUSHMEM_ERR_CUDA         the driver refused the operation, as for a stream that
//                                          does not exist or belongs to another GPU
//                GPUSHMEM_ERR_NO_MEMORY    no memory for rings (at the first use), or for another
//                                          thread of the emulation
// clang-format on
#ifndef GPUSHMEM_STREAM_H
#define GPUSHMEM_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "gpushmem/impl/signatures.h"
#include "gpushmem/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// The same type as CUDA's cudaStream_t (runtime API) and CUstream (driver API).
typedef struct CUstream_st *gpushmem_stream_t;

// put copies from local memory to `dest` on `pe`, get from `source` on `pe` to local memory;
// put_signal then updates the signal word *sig of that PE (gpushmem_putmem_signal says how), never
// before its data is there. Zero elements are legal, and put_signal then sends the signal alone.
GPUSHMEM_API int gpushmem_putmem_on_stream(void *dest, const void *source, size_t bytes, int pe,
                                           gpushmem_stream_t stream);
GPUSHMEM_API int gpushmem_getmem_on_stream(void *dest, const void *source, size_t bytes, int pe,
                                           gpushmem_stream_t stream);
GPUSHMEM_API int gpushmem_putmem_signal_on_stream(void *dest, const void *source, size_t bytes,
                                                  uint64_t *sig, uint64_t signal,
                                                  enum gpushmem_signal_op sig_op, int pe,
                                                  gpushmem_stream_t stream);

// The same for elements of a type, and of so many bits. iput and iget move `nelems` elements that
// are `dst` elements apart in dest and `sst` in source; strides start at 1. p stores `value`, which
// is taken at the call; g copies one element to local memory. Parameters are those of gpushmem.h's
// functions, and then the stream.
#define GPUSHMEM_DECLARE_ONE(NAME, FORM, TYPE)                                                     \
    GPUSHMEM_API int gpushmem_##NAME##_on_stream(GPSH_P_##FORM(TYPE, enum gpushmem_signal_op),     \
                                                 gpushmem_stream_t stream);
#define GPUSHMEM_DECLARE_TYPE(VERB, REST, FORM, NAME, TYPE)                                        \
    GPUSHMEM_DECLARE_ONE(NAME##_##VERB##REST, FORM, TYPE)
#define GPUSHMEM_DECLARE_SIZE(VERB, REST, FORM, BITS)                                              \
    GPUSHMEM_DECLARE_ONE(VERB##BITS##REST, FORM, void)
#define GPUSHMEM_DECLARE(NAME, TYPE)                                                               \
    GPSH_STREAM_MOVES(GPUSHMEM_DECLARE_TYPE, NAME, TYPE)                                           \
    GPUSHMEM_DECLARE_ONE(NAME##_p, VALUE, TYPE)                                                    \
    GPUSHMEM_API int gpushmem_##NAME##_g_on_stream(TYPE *dest, const TYPE *source, int pe,         \
                                                   gpushmem_stream_t stream);
GPUSHMEM_RMA_TYPES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE
#define GPUSHMEM_DECLARE(BITS) GPSH_STREAM_MOVES(GPUSHMEM_DECLARE_SIZE, BITS)
GPUSHMEM_RMA_SIZES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE
#undef GPUSHMEM_DECLARE_SIZE
#undef GPUSHMEM_DECLARE_TYPE
#undef GPUSHMEM_DECLARE_ONE

// Sends the signal alone: `sig_op` is GPUSHMEM_SIGNAL_SET or GPUSHMEM_SIGNAL_ADD. A thread that
// sees the signal also sees all that the stream did before it at PEs that are mapped here; for
// other PEs, call quiet_on_stream first.
GPUSHMEM_API int gpushmem_signal_op_on_stream(uint64_t *sig, uint64_t signal,
                                              enum gpushmem_signal_op sig_op, int pe,
                                              gpushmem_stream_t stream);

// The stream goes on when the comparison `cmp` (enum gpushmem_cmp) of this PE's word *sig with
// `value` is true. Later operations and kernels of the stream see the data that the signal
// announced. One thread of the GPU polls meanwhile. The wait ends with an error when a PE is lost,
// after GPUSHMEM_WAIT_TIMEOUT_MS, and at gpushmem_finalize.
GPUSHMEM_API int gpushmem_signal_wait_until_on_stream(uint64_t *sig, enum gpushmem_cmp cmp,
                                                      uint64_t value, gpushmem_stream_t stream);

// The stream goes on when everything before it in the stream, kernels' operations included, is
// complete at its target. There is no fence of a stream: operations on mapped PEs need none, and
// towards other PEs a fence would have to wait as quiet does.
GPUSHMEM_API int gpushmem_quiet_on_stream(gpushmem_stream_t stream);

// The stream goes on when all PEs' streams have come to this call. barrier_all does quiet_on_stream
// first, so that what follows sees what every PE put before. Collective with
// gpushmem_dev_barrier_all and gpushmem_dev_sync_all of kernels: all PEs run the same sequence of
// these, one at a time, each from a stream of its choice. Independent of the host's
// gpushmem_barrier_all.
GPUSHMEM_API int gpushmem_barrier_all_on_stream(gpushmem_stream_t stream);
GPUSHMEM_API int gpushmem_sync_all_on_stream(gpushmem_stream_t stream);

#ifdef __cplusplus
}
#endif

#endif
