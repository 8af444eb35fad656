// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// gpushmem in kernels: one-sided communication from any thread of a GPU, or of a CPU thread
// standing in for one. The same source compiles with nvcc and, for the emulation
// (docs/emulation.md), with any C++17 compiler.
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
//              gpushmem_dev_quiet() uses the copy that GPUSHMEM_LAUNCH put into the translation
//              unit, gpushmem_dev_quiet(dev) the `struct gpushmem_dev dev` that the kernel got as
//              an argument (from gpushmem_device_handle).
//   Symmetric  `dest` of put, `source` of get, words of atomics and signals are addresses in this
//              PE's symmetric heap; with a PE number they name the same object there.
//   Local      The other side of put and get is any memory that the kernel can read or write. Large
//              transfers to or from a peer that is reached through a NIC are fast if that memory is
//              in the heap or registered (gpushmem_buffer_register). Variables of a thread and
//              shared memory are safe with the blocking forms, at any size: a put of up to 40 bytes
//              (with signal 24) travels in its command, a larger one in pieces of 8 bytes, so
//              beyond some 64 bytes the heap is faster. With the _nbi forms they are safe on a GPU,
//              where they are read before the call returns; on CPU threads they must last until
//              quiet, like everything that an _nbi form names.
//   Scope      NAME is called by one thread; NAME_warp by all threads of a warp, NAME_block by all
//              threads of a block, with the same arguments, and its threads share the work. Warp
//              and block calls begin and end with a barrier of the scope: what its threads wrote
//              before is sent, and any of them may fence or quiet after it.
//   Path       A peer that is mapped here is reached by loads and stores, any other through a
//              command ring and a proxy thread of the host. GPUSHMEM_P2P=0 sends everything through
//              the rings. With GPUSHMEM_DEVICE_POST=nic, kernels that were compiled with
//              -DGPUSHMEM_DEVICE_NIC=1 post to queues of an mlx5 NIC themselves what these take.
//   Order      Operations are unordered unless fence, quiet, a barrier or the operation itself
//              orders them.
//   Errors     Only waits have a status. The first failure is kept, and reported by the next host
//              call that reports device errors (gpushmem_launch_wait, gpushmem_device_error,
//              gpushmem_quiet, gpushmem_barrier_all; finalize, too). What has no status is logged
//              then, up to 16 times in a process. Waits end: by GPUSHMEM_WAIT_TIMEOUT_MS, by the
//              loss of a PE, by finalize. A failed fetch returns 0. GPUSHMEM_DEVICE_CHECKS, defined
//              before this header (on CPU threads unless it is 0), refuses bad PEs, addresses and
//              alignments on the spot, and the report names PE, block and thread; without it only
//              operations that go through a ring are checked. Signal operations and comparisons are
//              checked always.
//   Nothing    Zero elements are legal everywhere, with any address.
//   Compiling  gpushmem/device_rma.cuh has all of this but the collectives of teams, and takes a
//              compiler less time.
//   Types      TYPE in a name stands for one of the 25 types of gpushmem/types.h
//              (GPUSHMEM_RMA_TYPES), BITS for 8, 16, 32, 64 or 128; brackets for parts that may be
//              left out. In C++ the type may be left out, too: gpushmem_dev_put(dest, source,
//              nelems, pe).
//
// This PE's number and the number of PEs. ptr returns the address at which the kernel can load and
// store pe's object, or NULL.
//   int gpushmem_dev_my_pe(void);
//   int gpushmem_dev_n_pes(void);
//   void *gpushmem_dev_ptr(const void *address, int pe);
//
// Put and get. `put` returns when the source may be reused, `get` when the data is there. The _nbi
// forms return at once: until quiet, the source of a put is in use, and the data of a get is not
// there. p and g move one value. Neither an aligned p nor an aligned put of 1, 2, 4 or 8 bytes is
// ever seen torn. p_warp is a p by each thread of a warp, which all call it together, each with
// arguments of its own: where a PE is reached through a ring, values of neighbouring threads for
// neighbouring places travel together, up to 40 bytes in a command.
//   void gpushmem_dev_TYPE_p(TYPE *dest, TYPE value, int pe);
//   void gpushmem_dev_TYPE_p_warp(TYPE *dest, TYPE value, int pe);
//   TYPE gpushmem_dev_TYPE_g(const TYPE *source, int pe);
//   void gpushmem_dev_TYPE_put[_nbi][_warp|_block](TYPE *dest, const TYPE *source, size_t nelems,
//       int pe);
//   void gpushmem_dev_TYPE_get[_nbi][_warp|_block](TYPE *dest, const TYPE *source, size_t nelems,
//       int pe);
//   void gpushmem_dev_putBITS[_nbi][_warp|_block](void *dest, const void *source, size_t nelems,
//       int pe);
//   void gpushmem_dev_getBITS[_nbi][_warp|_block](void *dest, const void *source, size_t nelems,
//       int pe);
//   void gpushmem_dev_putmem[_nbi][_warp|_block](void *dest, const void *source, size_t nelems,
//       int pe);
//   void gpushmem_dev_getmem[_nbi][_warp|_block](void *dest, const void *source, size_t nelems,
//       int pe);
//
// The same by one thread, through a buffer in the block's shared memory: `shared` is a multiple of
// 128, and belongs to the call until it returns. With 32 KiB one thread moves tens of GB/s on
// sm_90. On other GPUs, and for peers that are reached through a ring, these calls do what putmem
// and getmem do.
//   void gpushmem_dev_putmem_bulk(void *dest, const void *source, size_t bytes, int pe,
//       void *shared, size_t shared_bytes);
//   void gpushmem_dev_getmem_bulk(void *dest, const void *source, size_t bytes, int pe,
//       void *shared, size_t shared_bytes);
//
// nelems elements, `dst` elements apart at dest and `sst` at source (both >= 1).
//   void gpushmem_dev_TYPE_iput[_warp|_block](TYPE *dest, const TYPE *source, ptrdiff_t dst,
//       ptrdiff_t sst, size_t nelems, int pe);
//   void gpushmem_dev_TYPE_iget[_warp|_block](TYPE *dest, const TYPE *source, ptrdiff_t dst,
//       ptrdiff_t sst, size_t nelems, int pe);
//   void gpushmem_dev_iputBITS[_warp|_block](void *dest, const void *source, ptrdiff_t dst,
//       ptrdiff_t sst, size_t nelems, int pe);
//   void gpushmem_dev_igetBITS[_warp|_block](void *dest, const void *source, ptrdiff_t dst,
//       ptrdiff_t sst, size_t nelems, int pe);
//
// Put with signal: the signal word *sig is never visible before the data of its own put. signal_op
// sends the signal alone and waits for nothing; if the signal announces earlier puts, call fence
// before it. sig_op: GPUSHMEM_SIGNAL_SET or GPUSHMEM_SIGNAL_ADD. wait_until returns the word's
// value. Its status form returns 0, or the negative status that ended the wait, and writes the last
// value to *seen. In its warp and block forms one thread polls, and all see what was announced.
//   void gpushmem_dev_TYPE_put_signal[_nbi][_warp|_block](TYPE *dest, const TYPE *source,
//       size_t nelems, uint64_t *sig, uint64_t signal, enum gpushmem_signal_op sig_op, int pe);
//   void gpushmem_dev_putBITS_signal[_nbi][_warp|_block](void *dest, const void *source,
//       size_t nelems, uint64_t *sig, uint64_t signal, enum gpushmem_signal_op sig_op, int pe);
//   void gpushmem_dev_putmem_signal[_nbi][_warp|_block](void *dest, const void *source,
//       size_t nelems, uint64_t *sig, uint64_t signal, enum gpushmem_signal_op sig_op, int pe);
//   void gpushmem_dev_signal_op(uint64_t *sig, uint64_t signal, enum gpushmem_signal_op sig_op,
//       int pe);
//   uint64_t gpushmem_dev_signal_fetch(const uint64_t *sig);
//   uint64_t gpushmem_dev_signal_wait_until(const uint64_t *sig, enum gpushmem_cmp cmp,
//       uint64_t value);
//   void gpushmem_dev_signal_wait_until_warp(const uint64_t *sig, enum gpushmem_cmp cmp,
//       uint64_t value);
//   void gpushmem_dev_signal_wait_until_block(const uint64_t *sig, enum gpushmem_cmp cmp,
//       uint64_t value);
//   int gpushmem_dev_signal_wait_until_status(const uint64_t *sig, enum gpushmem_cmp cmp,
//       uint64_t value, uint64_t *seen);
//
// Atomics, exclusive among atomics of the same type on the same word. Those that return a value
// wait for it; the others complete by quiet. fetch, set, swap: GPUSHMEM_AMO_EXTENDED_TYPES; and,
// or, xor: GPUSHMEM_AMO_BITWISE_TYPES; the others: GPUSHMEM_AMO_TYPES.
//   TYPE gpushmem_dev_TYPE_atomic_fetch(const TYPE *source, int pe);
//   void gpushmem_dev_TYPE_atomic_set(TYPE *dest, TYPE value, int pe);
//   TYPE gpushmem_dev_TYPE_atomic_swap(TYPE *dest, TYPE value, int pe);
//   TYPE gpushmem_dev_TYPE_atomic_compare_swap(TYPE *dest, TYPE cond, TYPE value, int pe);
//   void gpushmem_dev_TYPE_atomic_[add|and|or|xor](TYPE *dest, TYPE value, int pe);
//   TYPE gpushmem_dev_TYPE_atomic_fetch_[add|and|or|xor](TYPE *dest, TYPE value, int pe);
//   void gpushmem_dev_TYPE_atomic_inc(TYPE *dest, int pe);
//   TYPE gpushmem_dev_TYPE_atomic_fetch_inc(TYPE *dest, int pe);
//
// Waiting on words of this PE's own heap that others write (GPUSHMEM_SYNC_TYPES). All of them
// acquire: what was ordered before the flag is visible after the wait. wait_until and its _all form
// return 0, or the negative status that ended the wait. Words with status[i] != 0 are left out
// (status may be NULL). The _vector forms compare word i with values[i]. _any returns the index of
// a word that satisfies the comparison; _some returns how many do, and writes their indices. If
// there is nothing to wait for, or if the wait failed, _any returns SIZE_MAX and _some 0; test_all
// of no words returns 1. The _status forms of _any and _some return 0 or the negative status that
// ended the wait, and write index or count to their last argument if it is 0.
//   int gpushmem_dev_TYPE_wait_until(const volatile TYPE *var, enum gpushmem_cmp cmp, TYPE value);
//   int gpushmem_dev_TYPE_wait_until_all(const volatile TYPE *vars, size_t nelems,
//       const int *status, enum gpushmem_cmp cmp, TYPE value);
//   size_t gpushmem_dev_TYPE_wait_until_any(const volatile TYPE *vars, size_t nelems,
//       const int *status, enum gpushmem_cmp cmp, TYPE value);
//   int gpushmem_dev_TYPE_wait_until_any_status(const volatile TYPE *vars, size_t nelems,
//       const int *status, enum gpushmem_cmp cmp, TYPE value, size_t *index);
//   size_t gpushmem_dev_TYPE_wait_until_some(const volatile TYPE *vars, size_t nelems,
//       size_t *indices, const int *status, enum gpushmem_cmp cmp, TYPE value);
//   int gpushmem_dev_TYPE_wait_until_some_status(const volatile TYPE *vars, size_t nelems,
//       size_t *indices, const int *status, enum gpushmem_cmp cmp, TYPE value, size_t *count);
//   int gpushmem_dev_TYPE_wait_until_all_vector(const volatile TYPE *vars, size_t nelems,
//       const int *status, enum gpushmem_cmp cmp, const TYPE *values);
//   size_t gpushmem_dev_TYPE_wait_until_any_vector(const volatile TYPE *vars, size_t nelems,
//       const int *status, enum gpushmem_cmp cmp, const TYPE *values);
//   int gpushmem_dev_TYPE_wait_until_any_vector_status(const volatile TYPE *vars, size_t nelems,
//       const int *status, enum gpushmem_cmp cmp, const TYPE *values, size_t *index);
//   size_t gpushmem_dev_TYPE_wait_until_some_vector(const volatile TYPE *vars, size_t nelems,
//       size_t *indices, const int *status, enum gpushmem_cmp cmp, const TYPE *values);
//   int gpushmem_dev_TYPE_wait_until_some_vector_status(const volatile TYPE *vars, size_t nelems,
//       size_t *indices, const int *status, enum gpushmem_cmp cmp, const TYPE *values,
//       size_t *count);
//   int gpushmem_dev_TYPE_test(const volatile TYPE *var, enum gpushmem_cmp cmp, TYPE value);
//   int gpushmem_dev_TYPE_test_all(const volatile TYPE *vars, size_t nelems, const int *status,
//       enum gpushmem_cmp cmp, TYPE value);
//   size_t gpushmem_dev_TYPE_test_any(const volatile TYPE *vars, size_t nelems, const int *status,
//       enum gpushmem_cmp cmp, TYPE value);
//   size_t gpushmem_dev_TYPE_test_some(const volatile TYPE *vars, size_t nelems, size_t *indices,
//       const int *status, enum gpushmem_cmp cmp, TYPE value);
//   int gpushmem_dev_TYPE_test_all_vector(const volatile TYPE *vars, size_t nelems,
//       const int *status, enum gpushmem_cmp cmp, const TYPE *values);
//   size_t gpushmem_dev_TYPE_test_any_vector(const volatile TYPE *vars, size_t nelems,
//       const int *status, enum gpushmem_cmp cmp, const TYPE *values);
//   size_t gpushmem_dev_TYPE_test_some_vector(const volatile TYPE *vars, size_t nelems,
//       size_t *indices, const int *status, enum gpushmem_cmp cmp, const TYPE *values);
//
// Contexts order and complete their own operations, and those alone: quiet of one does not wait for
// another's. A gpushmem_dev_ctx is a value: pass it to kernels, copy it, keep it in shared memory.
// A kernel creates one, for a block that owns it for a while, or gets the value of a host's context
// (gpushmem_ctx_device). Every call of the sections above that moves data or changes words exists
// with a context before its arguments as gpushmem_dev_ctx_NAME; without the type in the name the
// context goes first as well: gpushmem_dev_put(ctx, dest, source, nelems, pe).
//   create     of options (enum gpushmem_ctx_option, or-ed) makes *ctx, one place for all threads
//              of the scope: for a warp or block in shared memory,
//              GPUSHMEM_SHARED(gpushmem_dev_ctx, ctx, 1), and never a variable of each thread.
//              Returns 0, or a negative status with the invalid context:
//              GPUSHMEM_ERR_INVALID, unknown options; others: the proxy did not answer. Up to
//              GPUSHMEM_CONTEXTS contexts of host and kernels together have a ring and queues of
//              their own at a time; further ones share those of the default context, which the
//              first one logs. It takes a round trip to the host. A context outlives its kernel;
//              another one may destroy it
//   destroy    completes what was issued on the context and gives its queues back
//   fence      what this context's operations that happened before the call did becomes visible at
//              each PE before what those after it do
//   quiet      every operation on this context that happened before the call is complete
//   pe_quiet   the same towards one PE
// GPUSHMEM_CTX_NOSTORE: where no PE is reached by loads and stores, fence and quiet leave out the
// fences for the calling thread's own stores. SERIALIZED and PRIVATE are promises that nothing here
// depends on. Initialise with GPUSHMEM_DEV_CTX_DEFAULT for the default context, and with
// GPUSHMEM_DEV_CTX_INVALID for one on which fence, quiet and destroy do nothing. With
// GPUSHMEM_DEVICE_CHECKS, calls on an invalid context, on one that was destroyed or comes from
// somewhere else are refused (GPUSHMEM_ERR_INVALID), if it had a ring of its own; without it they
// are another context's operations, or nobody's, but a destroy is always refused.
//   team_create_ctx  the same for a context of a team, in whose calls `pe` is a rank of the team:
//              GPUSHMEM_ERR_INVALID if this PE is not in it. A call that names no rank of it is
//              refused (GPUSHMEM_ERR_PE), and so is one after the team was destroyed (with
//              GPUSHMEM_DEVICE_CHECKS GPUSHMEM_ERR_INVALID): destroy the context before. Such calls
//              find the rank's PE in the GPU's memory; those on other contexts do not look
//   get_team   the context's team; GPUSHMEM_TEAM_WORLD for others
//   int gpushmem_dev_ctx_create[_warp|_block](long options, gpushmem_dev_ctx *ctx);
//   int gpushmem_dev_team_create_ctx[_warp|_block](gpushmem_team_t team, long options,
//       gpushmem_dev_ctx *ctx);
//   gpushmem_team_t gpushmem_dev_ctx_get_team(gpushmem_dev_ctx ctx);
//   void gpushmem_dev_ctx_destroy[_warp|_block](gpushmem_dev_ctx ctx);
//   void gpushmem_dev_ctx_fence(gpushmem_dev_ctx ctx);
//   void gpushmem_dev_ctx_quiet(gpushmem_dev_ctx ctx);
//   void gpushmem_dev_ctx_pe_quiet(gpushmem_dev_ctx ctx, int pe);
//
// Order and completion, over the default context.
//   fence        operations of this PE's kernels that happened before the call become visible at
//                each PE before the caller's later ones: the caller's own, and those of other
//                threads if a barrier of the block, the grid or the like lies between
//   block_fence  the same for operations of the calling thread's block alone: cheaper where several
//                proxy threads serve the rings
//   quiet        everything that this PE's kernels issued before is complete, gets included
//   pe_quiet     the same towards one PE; does not wait for the others
//   barrier_all  quiet, then waits for all PEs to enter; one scope (thread, warp, block) of each PE
//                at a time
//   sync_all     waits for all PEs to enter; completes nothing remote
//   void gpushmem_dev_fence(void);
//   void gpushmem_dev_block_fence(void);
//   void gpushmem_dev_quiet(void);
//   void gpushmem_dev_pe_quiet(int pe);
//   void gpushmem_dev_barrier_all[_warp|_block](void);
//   void gpushmem_dev_sync_all[_warp|_block](void);
//
// Collectives of a team, called by one scope (thread, warp, block) of each member; scopes may
// differ between members. All members call the same operations of a channel in one order, with the
// same arguments: only nelems of collect may differ. The operations of a channel are one sequence:
// concurrent blocks take a channel each (GPUSHMEM_TEAM_CHANNEL; the team itself is channel 0). They
// are independent of the team's operations on streams and of the host. 0, or a negative status, the
// same for all threads of the scope: GPUSHMEM_ERR_INVALID (no such team or channel on this PE), or
// why the wait for the others ended, or the others' data could not be fetched; then the team can
// only be destroyed, and its later calls return the same status at once. What dest and source may
// be, when they belong to the operation, and in which order reductions fold:
// gpushmem/coll_stream.h. What members stored or put before is not completed by a collective,
// except by barrier. min, max, sum, prod: all 25 types; and, or, xor: GPUSHMEM_INTEGER_TYPES; sum,
// prod and scans: complexf and complexd, too. With GPUSHMEM_CHECK=1 each call first exchanges a
// message with all members: where functions or arguments differ (the places of dest and source in
// the heap, too), or some are wrong, no member begins, all return GPUSHMEM_ERR_ASYMMETRY, or what
// is wrong, and the team goes on. The forms with _grid are called by all threads of a grid that
// was launched by GPUSHMEM_LAUNCH_COLLECTIVE; #include <gpushmem/coll_grid.cuh> has them, and says
// what is different.
//   int gpushmem_dev_team_my_pe(gpushmem_team_t team);
//   int gpushmem_dev_team_n_pes(gpushmem_team_t team);
//   int gpushmem_dev_team_world_pe(gpushmem_team_t team, int rank);
//   int gpushmem_dev_team_sync[_warp|_block|_grid](gpushmem_team_t team);
//   int gpushmem_dev_barrier[_warp|_block|_grid](gpushmem_team_t team);
//   int gpushmem_dev_TYPE_broadcast[_warp|_block|_grid](gpushmem_team_t team, TYPE *dest,
//       const TYPE *source, size_t nelems, int root);
//   int gpushmem_dev_TYPE_[collect|fcollect|alltoall][_warp|_block|_grid](gpushmem_team_t team,
//       TYPE *dest, const TYPE *source, size_t nelems);
//   int gpushmem_dev_TYPE_alltoalls[_warp|_block|_grid](gpushmem_team_t team, TYPE *dest,
//       const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems);
//   int gpushmem_dev_broadcastmem[_warp|_block|_grid](gpushmem_team_t team, void *dest,
//       const void *source, size_t nelems, int root);
//   int gpushmem_dev_[collectmem|fcollectmem|alltoallmem][_warp|_block|_grid](gpushmem_team_t team,
//       void *dest, const void *source, size_t nelems);
//   int gpushmem_dev_alltoallsmem[_warp|_block|_grid](gpushmem_team_t team, void *dest,
//       const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems);
//   int gpushmem_dev_TYPE_[min|max|sum|prod]_reduce[_warp|_block|_grid](gpushmem_team_t team,
//       TYPE *dest, const TYPE *source, size_t nelems);
//   int gpushmem_dev_TYPE_[min|max|sum|prod]_reducescatter[_warp|_block|_grid](gpushmem_team_t
//       team, TYPE *dest, const TYPE *source, size_t nelems);
//   int gpushmem_dev_TYPE_[and|or|xor]_reduce[_warp|_block|_grid](gpushmem_team_t team,
//       TYPE *dest, const TYPE *source, size_t nelems);
//   int gpushmem_dev_TYPE_[and|or|xor]_reducescatter[_warp|_block|_grid](gpushmem_team_t team,
//       TYPE *dest, const TYPE *source, size_t nelems);
//   int gpushmem_dev_TYPE_sum_[inscan|exscan][_warp|_block|_grid](gpushmem_team_t team, TYPE *dest,
//       const TYPE *source, size_t nelems);
//   int gpushmem_dev_double2_maxloc_reduce[_warp|_block|_grid](gpushmem_team_t team,
//       gpushmem_double2 *dest, const gpushmem_double2 *source, size_t nelems);
//
// Launching and the block's shared memory: GPUSHMEM_LAUNCH, gpushmem_launch_wait,
// gpushmem_stream_create, gpushmem_stream_destroy, GPUSHMEM_SHARED, gpushmem_device_attach:
// gpushmem/device/launch.cuh.
//
// Launches by all PEs together, with all blocks running at once: GPUSHMEM_LAUNCH_COLLECTIVE,
// gpushmem_launch_collective_grid: gpushmem/device/launch_collective.cuh.
//   grid_sync    in such a kernel, waits for all threads of this PE's grid; 0 or a negative status.
//                It wants #include <gpushmem/grid_sync.cuh> besides, which takes nvcc a while
//   int gpushmem_dev_grid_sync(void);
// clang-format on
#ifndef GPUSHMEM_DEVICE_CUH
#define GPUSHMEM_DEVICE_CUH

#include "gpushmem/device_rma.cuh"

// programs may compile with -Wextra: functions made from one pattern do not use every parameter
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#include "gpushmem/device/api_coll.cuh"
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
