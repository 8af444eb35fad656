// SPDX-License-Identifier: BSD-3-Clause
// gpushmem in kernels: one-sided communication from any thread of a GPU, or of a CPU thread
// standing in for one. The same source compiles with nvcc and, for the emulation, with any C++17
// compiler.
//
//   #include <gpushmem/gpushmem.h>
//   #include <gpushmem/device.cuh>
//   __global__ void hello(int *inbox)
//   {
//       int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes();
//       gpushmem_dev_int_p(inbox, me, (me + 1) % n);
//   }
//   ...
//   GPUSHMEM_LAUNCH(hello, 1, 1, NULL, inbox);
//   gpushmem_launch_wait(NULL);
//   gpushmem_barrier_all();
//
// Rules that hold everywhere
//
//   Handle     Every function below also exists with the handle as its first argument:
//   gpushmem_dev_quiet() uses the copy
//              that GPUSHMEM_LAUNCH put into the translation unit, gpushmem_dev_quiet(dev) the
//              `struct gpushmem_dev dev` that the kernel got as an argument (from
//              gpushmem_device_handle).
//   Symmetric  `dest` of put, `source` of get, words of atomics and signals are addresses in this
//   PE's symmetric heap; with a
//              PE number they name the same object there. The other side is any memory the kernel
//              can read or write; for a peer behind a NIC it should be in the heap or registered
//              (gpushmem_buffer_register).
//   Scope      NAME is called by one thread; NAME_warp by all threads of a warp, NAME_block by all
//   threads of a block, with
//              the same arguments, and its threads share the work. Warp and block calls begin and
//              end with a barrier of the scope: what its threads wrote before is sent, and any of
//              them may fence or quiet behind it.
//   Path       A peer that is mapped here is reached by loads and stores, any other through a
//   command ring and a proxy thread
//              of the host. GPUSHMEM_P2P=0 sends everything through the rings.
//   Order      Operations are unordered unless fence, quiet, a barrier or the operation itself
//   orders them. Errors     Functions have no status. The first failure is kept and reported by the
//   next host call that reports device
//              errors (gpushmem_launch_wait, gpushmem_device_error, gpushmem_quiet,
//              gpushmem_barrier_all), and waits end: by GPUSHMEM_WAIT_TIMEOUT_MS, by the loss of a
//              PE, by finalize. A failed fetch returns 0. With GPUSHMEM_DEVICE_CHECKS defined
//              before this header, bad PEs and addresses are refused on the spot, and the report
//              names PE, block and thread; without it only what goes through a ring is checked.
//   Nothing    Zero elements are legal everywhere, with any address.
//
// TYPE and NAME: the 25 types of gpushmem/types.h (GPUSHMEM_RMA_TYPES). BITS: 8, 16, 32, 64, 128.
//
// Who and where
//   int   gpushmem_dev_my_pe(void)
//   int   gpushmem_dev_n_pes(void)
//   void *gpushmem_dev_ptr(const void *address, int pe)       where pe's object can be loaded and
//   stored, or NULL
//
// Put and get. `put` returns when the source may be reused, `get` when the data is there; the _nbi
// forms at once: then the source of a put is in use, and the data of a get not there, until quiet.
// p and g move one value; an aligned p is never seen torn, nor an aligned put of 1, 2, 4 or 8
// bytes.
//   void gpushmem_dev_NAME_p(TYPE *dest, TYPE value, int pe)
//   TYPE gpushmem_dev_NAME_g(const TYPE *source, int pe)
//   void gpushmem_dev_NAME_put[_nbi][_warp|_block](TYPE *dest, const TYPE *source, size_t n, int
//   pe) void gpushmem_dev_NAME_get[_nbi][_warp|_block](TYPE *dest, const TYPE *source, size_t n,
//   int pe) void gpushmem_dev_putBITS..., gpushmem_dev_getBITS...     the same over elements of
//   BITS bits (void *) void gpushmem_dev_putmem..., gpushmem_dev_getmem...       the same over
//   bytes void gpushmem_dev_putmem_bulk(void *dest, const void *source, size_t bytes, int pe, void
//   *shared, size_t shared_bytes) void gpushmem_dev_getmem_bulk(...)                        one
//   thread; `shared`: shared memory of the block, a multiple of
//        128, lent until the call returns: with 32 KiB one thread moves tens of GB/s (sm_90;
//        elsewhere and for peers behind a ring as putmem and getmem)
//   void gpushmem_dev_NAME_iput[_warp|_block](TYPE *dest, const TYPE *source, ptrdiff_t dst,
//   ptrdiff_t sst, size_t n, int pe) void gpushmem_dev_NAME_iget[_warp|_block](TYPE *dest, const
//   TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe)
//        n elements, `dst` elements apart at dest and `sst` at source (both >= 1); also iputBITS,
//        igetBITS
//
// Put with signal: the signal word is never visible before the data of its own put; signal_op waits
// for nothing, so call fence where it tells of earlier puts. op: GPUSHMEM_SIGNAL_SET or _ADD.
//   void gpushmem_dev_NAME_put_signal[_nbi][_warp|_block](TYPE *dest, const TYPE *source, size_t n,
//                                                         uint64_t *signal, uint64_t value, int op,
//                                                         int pe)
//   void     gpushmem_dev_signal_op(uint64_t *signal, uint64_t value, int op, int pe)
//   uint64_t gpushmem_dev_signal_fetch(const uint64_t *signal)
//   uint64_t gpushmem_dev_signal_wait_until(const uint64_t *signal, int cmp, uint64_t value)
//   returns the word's value
//   int gpushmem_dev_signal_wait_until_status(const uint64_t *signal, int cmp, uint64_t value,
//                                             uint64_t *seen)     returns why it ended, *seen:
//                                             value
//
// Atomics, exclusive among atomics of the same type on the same word. Those that return a value
// wait for it; the others complete by quiet.
//   TYPE gpushmem_dev_NAME_atomic_fetch(const TYPE *source, int pe) GPUSHMEM_AMO_EXTENDED_TYPES
//   void gpushmem_dev_NAME_atomic_set(TYPE *dest, TYPE value, int pe)
//   TYPE gpushmem_dev_NAME_atomic_swap(TYPE *dest, TYPE value, int pe)
//   TYPE gpushmem_dev_NAME_atomic_compare_swap(TYPE *dest, TYPE compare, TYPE value, int pe)
//   GPUSHMEM_AMO_TYPES void gpushmem_dev_NAME_atomic_add(TYPE *dest, TYPE value, int pe)       TYPE
//   ..._atomic_fetch_add void gpushmem_dev_NAME_atomic_inc(TYPE *dest, int pe) TYPE
//   ..._atomic_fetch_inc void gpushmem_dev_NAME_atomic_and(TYPE *dest, TYPE value, int pe) TYPE
//   ..._atomic_fetch_and  BITWISE_TYPES
//        ... or, xor
//
// Waiting on words of this PE's own heap that others write (GPUSHMEM_SYNC_TYPES). All of them
// acquire: what was ordered before the flag is visible behind it. Words with status[i] != 0 are
// left out (status may be NULL). The _vector forms compare word i with value[i]. Nothing to wait
// for: any returns SIZE_MAX, some 0, test_all 1.
//   int    gpushmem_dev_NAME_wait_until(const TYPE *word, int cmp, TYPE value)
//   int    gpushmem_dev_NAME_wait_until_all[_vector](const TYPE *words, size_t n, const int
//   *status, int cmp, TYPE value) size_t gpushmem_dev_NAME_wait_until_any[_vector](...) index of a
//   satisfied word size_t gpushmem_dev_NAME_wait_until_some[_vector](const TYPE *words, size_t n,
//   size_t *indices, const int *status, ...) int    gpushmem_dev_NAME_test(const TYPE *word, int
//   cmp, TYPE value)                      and test_all, _any, _some
//
// Order and completion, over the default context
//   void gpushmem_dev_fence(void)        per PE: operations of this PE's kernels that happened
//   before
//                                        the call (the caller's own; those of other threads after a
//                                        barrier of the block, the grid or the like) are visible
//                                        there before the caller's later ones
//   void gpushmem_dev_block_fence(void)  the same for operations of the calling thread's block
//   alone:
//                                        cheaper where several proxy threads serve the rings
//   void gpushmem_dev_quiet(void)        everything this PE's kernels issued before is complete,
//   gets included void gpushmem_dev_pe_quiet(int pe)   the same towards one PE; does not wait for
//   the others void gpushmem_dev_barrier_all[_warp|_block](void)   quiet, and all PEs have come;
//   one scope per PE at a time void gpushmem_dev_sync_all[_warp|_block](void)      all PEs have
//   come; completes nothing remote
//
// Launching and the block's shared memory: GPUSHMEM_LAUNCH, gpushmem_launch_wait,
// gpushmem_stream_create, gpushmem_stream_destroy, GPUSHMEM_SHARED, gpushmem_device_attach:
// gpushmem/device/launch.cuh.
#ifndef GPUSHMEM_DEVICE_CUH
#define GPUSHMEM_DEVICE_CUH

// programs may compile with -Wextra: functions made from one pattern do not use every parameter
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

#if !defined(__CUDACC__)
#include "gpushmem/device/emu_cuda.hpp"
#endif

#include "gpushmem/device/api_amo.cuh"
#include "gpushmem/device/api_generic.cuh"
#include "gpushmem/device/api_rma.cuh"
#include "gpushmem/device/api_sync.cuh"
#include "gpushmem/device/launch.cuh"

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
