// SPDX-License-Identifier: BSD-3-Clause
// gpushmem: one-sided communication between the processing elements (PEs) of a parallel job. This
// is the host API; bootstrap.h is for starting without a launcher, stream.h for CUDA streams,
// device.cuh for kernels. C11 programs also get type-generic names (gpushmem_put and the like), C++
// programs overloads of the same names.
//
// Rules that hold everywhere
//
// PE         One process of the job, numbered 0 .. gpushmem_n_pes()-1.
// Symmetric  memory comes from gpushmem_malloc and its kin, called by all PEs alike. A symmetric
//            address is this PE's own; together with a PE number it names the same object on that
//            PE. Operations on oneself are legal. Global and static variables of the program itself
//            (not of shared libraries) are symmetric, too, for functions of the host: see
//            GPUSHMEM_STATIC_DATA. No other thread may write to them during the first init, and
//            what pins them (cudaHostRegister) comes after it. Streams and kernels reach only what
//            gpushmem_malloc gave.
// Errors     Functions returning int return 0 or a negative GPUSHMEM_ERR_* code, p and put among
//            them; functions returning a value return 0 on failure (_any: SIZE_MAX). Where that may
//            be meant, atomics, signals and waits have a form gpushmem_X_status, which returns the
//            code and writes the value to its last argument; g has none: get one element instead.
//            Where g and those forms without a status fail, the first of each kind of sentence and
//            PE is logged, and the others are counted until finalize; GPUSHMEM_ON_ERROR=abort ends
//            the job instead, ignore logs nothing. gpushmem_last_error() returns a sentence about
//            this thread's last failure, and gpushmem_last_error_code() its code; success leaves
//            both as they are. Outputs are written on success only. The library never exits or
//            aborts the process, except in gpushmem_global_exit() and under that setting. Every
//            function may fail with
//              GPUSHMEM_ERR_STATE        before gpushmem_init, or after gpushmem_finalize
//            and every function with an argument `pe` with
//              GPUSHMEM_ERR_PE           the PE does not exist
//              GPUSHMEM_ERR_ADDRESS      part of the remote range is outside the symmetric heap
//              GPUSHMEM_ERR_UNREACHABLE  no transport reaches the PE
//              GPUSHMEM_ERR_PE_FAILED    the PE died, or stopped answering and may have died
//              GPUSHMEM_ERR_TRANSPORT    the network failed in another way
//            Each function lists its further causes. If an argument is refused, nothing is sent.
//            Where only the connection with a PE is lost, and its process is known to live, what
//            is listed as GPUSHMEM_ERR_PE_FAILED is GPUSHMEM_ERR_TRANSPORT, until the PE dies.
// Local      addresses (the source of a put, the destination of a get) may be any memory of the
//            process; GPU memory too, if heaps are GPU memory. NULL is GPUSHMEM_ERR_INVALID;
//            they are not checked otherwise: a bad one may crash the process, as with memcpy.
// Nothing    Zero elements are legal everywhere, with any addresses, NULL included.
// Threads    Any thread may call anything if the thread level is GPUSHMEM_THREAD_MULTIPLE;
//            collective functions (marked so) are called by one thread of each PE at a time, in the
//            same order on all PEs.
// Order      Operations are unordered unless fence, quiet, a barrier or the contract of the
//            operation orders them. docs/memory-model.md is the table.
// Progress   Operations complete at the target without calls of the target.
// Units      `nelems` counts elements, `bytes` bytes. Strides count elements.
// Structs    that the library fills may grow at their end in later versions. The header passes the
//            size that it knows; the library fills the fields that both know, and sets the rest to
//            zero. Bindings to other languages call gpushmem_X_sized with the size of their own
//            declaration.
// Contexts   Each function gpushmem_X of the RMA, atomic, fence and quiet families also exists as
//            gpushmem_ctx_X(gpushmem_ctx_t ctx, same arguments...); without it the default context
//            is used. GPUSHMEM_CTX_INVALID is GPUSHMEM_ERR_INVALID, but for fence, quiet and
//            destroy, which then do nothing. A variable that was never filled in is refused
//            with GPUSHMEM_CHECK=1, and else ends the program: initialise it with
//            GPUSHMEM_CTX_INVALID.
//            Type-generic names take the context as a further first argument, as in OpenSHMEM:
//            gpushmem_put(ctx, dest, source, nelems, pe).
#ifndef GPUSHMEM_GPUSHMEM_H
#define GPUSHMEM_GPUSHMEM_H

#include <stddef.h>
#include <stdint.h>

#include "gpushmem/bootstrap.h"
#include "gpushmem/counters.h"
#include "gpushmem/impl/signatures.h"
#include "gpushmem/team.h"
#include "gpushmem/types.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
// a struct and the function that fills it have one name, as with stat(2)
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#endif

// ------------------------------------------------------------------------------------------
// lifecycle

// Joins the job, as a job of one PE if there is no launcher; bootstrap.h has ways to join without
// one. Collective. Same as
// gpushmem_init_thread with level SINGLE. Init and finalize may be repeated in pairs. An init of a
// PE that has joined already is only counted; the PE leaves with as many finalizes. Until then
// SIGUSR1 makes each wait log what it waits for, unless the program handles or ignores that signal;
// after finalize it has no effect.
// A child forked between init and finalize is no PE: in the child every function, init too, fails
// with GPUSHMEM_ERR_STATE and leaves the job alone, so that exit handlers are harmless; mapped
// heaps may still be read. Threads that the library starts take none of the program's signals. If
// one of the descriptors 0 to 2 is closed, init opens it on /dev/null, and it stays open.
//   GPUSHMEM_ERR_SETTING    a GPUSHMEM_* environment variable is malformed or out of range
//   GPUSHMEM_ERR_BOOTSTRAP  the launcher is advertised but cannot be reached
//   GPUSHMEM_ERR_NO_MEMORY  the heap does not fit (memory, /dev/shm, memlock, GPU memory)
//   GPUSHMEM_ERR_TRANSPORT  a transport the settings require is not available
//   GPUSHMEM_ERR_PEER_DATA  a peer published data this version cannot use
GPUSHMEM_API int gpushmem_init(void);

// *provided (NULL: not wanted) is the level granted, never less than `requested`. An init of a PE
// that has joined already raises the level if it asks for a higher one: as with the level before,
// no other thread is in a call of the library then.
//   GPUSHMEM_ERR_INVALID    `requested` is not a thread level
GPUSHMEM_API int gpushmem_init_thread(enum gpushmem_thread_level requested, int *provided);
// Writes the level that was granted to *provided (NULL: not wanted).
GPUSHMEM_API int gpushmem_query_thread(int *provided);

// Completes everything, waits for all PEs, frees the heap and leaves the job. Collective, a
// barrier; under GPUSHMEM_ON_PE_FAILURE=notify a barrier of the PEs that are left. The PE leaves
// the job even if this fails.
//   GPUSHMEM_ERR_PE_FAILED  operations were lost, or a PE failed, so that not all PEs came
//   GPUSHMEM_ERR_TIMEOUT    not all PEs came within GPUSHMEM_WAIT_TIMEOUT_MS
GPUSHMEM_API int gpushmem_finalize(void);

// 1 between init and finalize, else 0. Never fails.
GPUSHMEM_API int gpushmem_initialized(void);

// Ends the whole job with exit status `status`, without waiting for anybody. Any PE, any thread.
// Does not return. What this PE has printed to standard output is written before, unless that would
// block; what other PEs still hold in their buffers is lost.
GPUSHMEM_API void gpushmem_global_exit(int status) __attribute__((noreturn));

// This PE's number, the number of PEs, and the same among the PEs of this node. Before init they
// return GPUSHMEM_ERR_STATE, and leave the last error as it is: a program that prints why init
// failed may ask for the PE number in the same statement.
GPUSHMEM_API int gpushmem_my_pe(void);
GPUSHMEM_API int gpushmem_n_pes(void);
GPUSHMEM_API int gpushmem_node_my_pe(void);
GPUSHMEM_API int gpushmem_node_n_pes(void);

// Version of the library (GPUSHMEM_VERSION_* is the header's). Legal at any time. Parts that are
// not wanted may be NULL.
GPUSHMEM_API void gpushmem_version(int *major, int *minor, int *patch);
GPUSHMEM_API const char *gpushmem_version_string(void);

// The same as OpenSHMEM's queries give it: major and minor number, and a name with the version,
// written to room for GPUSHMEM_MAX_NAME_LEN characters. Legal at any time; NULL: not wanted.
GPUSHMEM_API void gpushmem_info_get_version(int *major, int *minor);
GPUSHMEM_API void gpushmem_info_get_name(char *name);

// A few words for a status code; never NULL.
GPUSHMEM_API const char *gpushmem_strerror(int code);
// This thread's last failure: sentence ("" if none; valid until the thread's next failure) and code
// (0 if none).
GPUSHMEM_API const char *gpushmem_last_error(void);
GPUSHMEM_API int gpushmem_last_error_code(void);
// Forgets this thread's last failure. Call it before a function whose result 0 may also be a
// value, to tell the two apart afterwards.
GPUSHMEM_API void gpushmem_clear_error(void);

// ------------------------------------------------------------------------------------------
// memory

// Symmetric memory. Collective: all PEs pass the same arguments.
// Aligned to at least 256 bytes. Ends with a barrier, so that the memory may be used at once. The
// content is undefined, but for calloc: zero. NULL on failure; malloc(0), calloc of nothing and
// align of nothing return NULL without a failure and without a barrier.
//   GPUSHMEM_ERR_NO_MEMORY  no free block is large enough; nothing changed. GPUSHMEM_HEAP_SIZE sets
//                           the heap's size
//   GPUSHMEM_ERR_INVALID    `alignment` is not a power of two, or above what the heap can give: the
//                           largest power of two in its size before it has grown, at most 1 GiB;
//                           2 MiB where the heap is GPU memory
//   GPUSHMEM_ERR_ASYMMETRY  PEs passed different arguments, or were in different collective calls,
//                           or their heaps differ, since some of them alone have given up an
//                           earlier call (below); all PEs are told, and nothing changed
//   GPUSHMEM_ERR_TIMEOUT    not all PEs came within GPUSHMEM_WAIT_TIMEOUT_MS. Those that come later
//                           may get the block: then further allocations are refused on all PEs
GPUSHMEM_API void *gpushmem_malloc(size_t bytes);
GPUSHMEM_API void *gpushmem_calloc(size_t count, size_t size);
GPUSHMEM_API void *gpushmem_align(size_t alignment, size_t bytes);

// malloc with hints what the memory is for: an or of enum gpushmem_malloc_hint, or 0. Collective,
// as malloc. GPUSHMEM_MALLOC_HOST takes host memory: of the heap, or where that is GPU memory of
// GPUSHMEM_HOST_HEAP_SIZE bytes beside it, which only host calls can name. The other hints are
// accepted and change nothing.
//   GPUSHMEM_ERR_INVALID    unknown hint bits; else as malloc
GPUSHMEM_API void *gpushmem_malloc_with_hints(size_t bytes, long hints);

// Moves a block: returns one of the new size whose first bytes are those of the old one, as many as
// fit into both; the old one is freed. Collective; begins with gpushmem_barrier_all and ends with
// gpushmem_sync_all. NULL as address: same as malloc. 0 bytes: same as free, returns NULL. NULL and
// 0 do nothing. On failure NULL; the old block is still allocated and unchanged.
//   GPUSHMEM_ERR_NO_MEMORY  as malloc: the old and the new block exist side by side for a moment
//   GPUSHMEM_ERR_ADDRESS    not the address of an allocated block
//   GPUSHMEM_ERR_ASYMMETRY  as malloc
GPUSHMEM_API void *gpushmem_realloc(void *address, size_t bytes);

// Collective; begins with a barrier, so that no PE still uses the block. NULL is legal and does
// nothing.
//   GPUSHMEM_ERR_ADDRESS    not the address of an allocated block (foreign, inside a block, or
//                           freed already)
//   GPUSHMEM_ERR_ASYMMETRY  as above: the block is still allocated
GPUSHMEM_API int gpushmem_free(void *address);

// 1 if operations reach `pe`; and if also `address` is symmetric memory, so that they may name it;
// else 0, also for a PE that does not exist, has failed, or before init. Local; never fail.
GPUSHMEM_API int gpushmem_pe_accessible(int pe);
GPUSHMEM_API int gpushmem_addr_accessible(const void *address, int pe);

// The address at which this process can load and store `sym` of `pe`: with the processor, or, where
// the heap is GPU memory, in kernels and copies of its GPU. NULL if that PE's heap is not mapped
// here (another node, for example), or that PE has failed, which is no failure of the call; also
// NULL for a bad argument, and then the last error is set. fence orders the processor's stores
// through the address and quiet completes them, as with puts.
GPUSHMEM_API void *gpushmem_ptr(const void *sym, int pe);

// How this PE reaches another one, as decided at init. Local.
//   GPUSHMEM_ERR_INVALID    `info` is NULL
struct gpushmem_peer_info {
    // who moves the host's data: "p2p", "verbs", "loop"; valid until finalize
    const char *transport;
    // what executes atomics: "processor", "agent" (a thread of that PE), or a transport's name
    const char *atomics;
    int same_node;         // 1: on this node
    int device_direct;     // 1: kernels reach it by loads and stores; 0: through ring and proxy
    char description[256]; // one sentence for a reader
};
GPUSHMEM_API int gpushmem_peer_info_sized(int pe, struct gpushmem_peer_info *info, size_t size);
static inline int gpushmem_peer_info(int pe, struct gpushmem_peer_info *info)
{
    return gpushmem_peer_info_sized(pe, info, sizeof *info);
}

// What is in this PE's heap. Local.
//   GPUSHMEM_ERR_INVALID    `info` is NULL
struct gpushmem_heap_info {
    size_t bytes;              // size of the heap
    size_t used_bytes;         // allocated, rounding included
    size_t largest_free_bytes; // the largest block that could be allocated now
    size_t allocations;        // number of allocated blocks
    const char *kind;          // "host" or "device"
    const char *pages;         // page size in words, and why they are not larger
};
GPUSHMEM_API int gpushmem_heap_info_sized(struct gpushmem_heap_info *info, size_t size);
static inline int gpushmem_heap_info(struct gpushmem_heap_info *info)
{
    return gpushmem_heap_info_sized(info, sizeof *info);
}

// Registers local memory outside the heap with every transport, so that transfers from and to it
// need no extra copy. Local; optional: it only makes transfers faster. The memory must stay mapped
// until it is unregistered. Ranges must not overlap.
//   GPUSHMEM_ERR_INVALID    zero bytes; not memory of this process; an overlap with another
//                           registered range or the symmetric heap; (unregister) not the start of
//                           a registered range
//   GPUSHMEM_ERR_NO_MEMORY  the memory cannot be locked (memlock limit)
GPUSHMEM_API int gpushmem_buffer_register(void *address, size_t bytes);
GPUSHMEM_API int gpushmem_buffer_unregister(void *address);

// Makes memory that the program allocated symmetric, with what it holds: `bytes` at `buffer`,
// the same number on every PE at any address. Collective; contains barriers. The pages move into
// the symmetric heap, which must have room for them, and stay where they are, too: the program goes
// on using `buffer`. Returns the symmetric address of the same memory, by which every call names
// it: of the host, of streams, of kernels. Host calls also take `buffer` itself. Where the heap is
// GPU memory the pages move to the host memory beside it (GPUSHMEM_HOST_HEAP_SIZE), which only host
// calls can name. NULL on failure: then nothing has changed on any PE.
//
// Where the heap is GPU memory and GPUSHMEM_HEAP_MAX leaves room, `buffer` may be GPU memory on the
// heap's GPU, on all PEs: all of one allocation of cuMemCreate, made with
// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR. The heap goes on in it. Every call takes the symmetric
// address; `buffer` is what it was, and no remote address. The program may free it when it has been
// unregistered. Its room is not given back before finalize, and growths and such buffers are 24 at
// most.
//
// Host memory is private, readable and writable: of mmap, aligned_alloc, another library. Address
// and size are multiples of the heap's pages (4096, but for heaps of huge pages). No thread writes
// to it during the two calls, nobody has pinned it before (cudaHostRegister, a NIC), and until it
// is unregistered the program does not unmap or free it. A child that is forked has a copy of its
// own, in which what it has not written to still follows its parent.
//   GPUSHMEM_ERR_INVALID    empty; not such memory; overlaps symmetric or registered memory; of
//                           GPU memory: on another GPU than the heap, or not one whole allocation
//   GPUSHMEM_ERR_ALIGNMENT  address or size is no multiple of the page size, or of the GPU's
//                           granularity
//   GPUSHMEM_ERR_NO_MEMORY  no room in heap or host memory; more than 63 such buffers; no memory to
//                           move it; of GPU memory: beyond GPUSHMEM_HEAP_MAX, or the 25th
//   GPUSHMEM_ERR_UNSUPPORTED  GPU memory that the driver does not export, cudaMalloc's for example
//   GPUSHMEM_ERR_ASYMMETRY  PEs passed different sizes or kinds of memory, or were in different
//                           collective calls
// If one PE fails, all do, with its code and sentence.
GPUSHMEM_API void *gpushmem_buffer_register_symmetric(void *buffer, size_t bytes);

// Makes it plain private memory again, where it is, with what it holds. `address`: the program's or
// the symmetric one. Collective; begins with a barrier, so that no PE still uses it. What the
// program has unmapped meanwhile stays as it is. On failure nothing has changed on any PE.
//   GPUSHMEM_ERR_INVALID    no symmetric buffer begins there
//   GPUSHMEM_ERR_NO_MEMORY  no memory to move it
//   GPUSHMEM_ERR_ASYMMETRY  PEs passed different buffers
GPUSHMEM_API int gpushmem_buffer_unregister_symmetric(void *address);

// ------------------------------------------------------------------------------------------
// contexts

// A context orders and completes its own operations, independently of all others. The default one
// exists from init on and may be used by every thread the thread level allows.
typedef struct gpushmem_ctx *gpushmem_ctx_t;
#define GPUSHMEM_CTX_INVALID ((gpushmem_ctx_t)0)
#define GPUSHMEM_CTX_DEFAULT ((gpushmem_ctx_t)1)

// `options` is an or of enum gpushmem_ctx_option. Local. At a time, GPUSHMEM_CONTEXTS contexts have
// queues of their own. Further ones share those of the default context: they are correct, but may
// wait for its operations and for each other's, and the first of them logs a warning.
// Where every PE is reached by loads and stores, contexts need no queues and never wait.
// gpushmem_finalize completes and frees the contexts that are left.
//   GPUSHMEM_ERR_INVALID    unknown option bits, or `ctx` is NULL
//   GPUSHMEM_ERR_NO_MEMORY  out of host memory
GPUSHMEM_API int gpushmem_ctx_create(long options, gpushmem_ctx_t *ctx);

// Completes everything issued on `ctx` and frees it. GPUSHMEM_CTX_INVALID does nothing. Of the 64
// contexts destroyed last, later calls are refused with GPUSHMEM_ERR_INVALID (fence and quiet do
// nothing); an older handle must not be used.
//   GPUSHMEM_ERR_INVALID    the default context; one that was destroyed already
GPUSHMEM_API int gpushmem_ctx_destroy(gpushmem_ctx_t ctx);
// Writes the options that `ctx` was created with; the default context's are GPUSHMEM_CTX_SHARED.
//   GPUSHMEM_ERR_INVALID    `options` is NULL
GPUSHMEM_API int gpushmem_ctx_get_options(gpushmem_ctx_t ctx, long *options);

// A context of a team: in calls on it `pe` is a rank of the team, in kernels as well
// (gpushmem_ctx_device). Local. Destroy it before the team.
//   GPUSHMEM_ERR_INVALID    as gpushmem_ctx_create; or `team` is none of this PE's
GPUSHMEM_API int gpushmem_team_create_ctx(gpushmem_team_t team, long options, gpushmem_ctx_t *ctx);
// Writes the team that `ctx` was created from; GPUSHMEM_TEAM_WORLD for other contexts, and on
// failure GPUSHMEM_TEAM_INVALID.
//   GPUSHMEM_ERR_INVALID    `ctx` is GPUSHMEM_CTX_INVALID, or `team` is NULL
GPUSHMEM_API int gpushmem_ctx_get_team(gpushmem_ctx_t ctx, gpushmem_team_t *team);

// The context as kernels use it, by value (gpushmem/device.cuh, "Contexts"); the same value each
// time. From the first call on its queues, if it has some of its own, serve what kernels issue on
// it, and its host calls share those of the default context. gpushmem_ctx_quiet(ctx) completes
// both, as does gpushmem_ctx_destroy, after which no kernel may use the value. Not while another
// thread uses `ctx`.
//   GPUSHMEM_ERR_INVALID    `ctx` is GPUSHMEM_CTX_INVALID, or `out` is NULL
//   others                  as gpushmem_device_handle (gpushmem/device_host.h)
struct gpushmem_dev_ctx;
GPUSHMEM_API int gpushmem_ctx_device(gpushmem_ctx_t ctx, struct gpushmem_dev_ctx *out);

// Between start and stop the program promises many operations on `ctx`, as `options` (an or of enum
// gpushmem_ctx_session_option) and the fields of *config that `config_mask` names say. These are
// hints: they change neither results nor order, and are not needed for speed here. NULL is legal as
// config if the mask is 0. OpenSHMEM 1.6.
//   GPUSHMEM_ERR_INVALID    unknown option or mask bits; an invalid context; a mask without config
struct gpushmem_ctx_session_config {
    size_t total_ops; // operations to come, about
};
GPUSHMEM_API int gpushmem_ctx_session_start(gpushmem_ctx_t ctx, long options,
                                            const struct gpushmem_ctx_session_config *config,
                                            long config_mask);
GPUSHMEM_API int gpushmem_ctx_session_stop(gpushmem_ctx_t ctx);

// Declares gpushmem_NAME(...) and gpushmem_ctx_NAME(ctx, ...).
#define GPUSHMEM_FUNCTION(RETURN, NAME, ...)                                                       \
    GPUSHMEM_API RETURN gpushmem_##NAME(__VA_ARGS__);                                              \
    GPUSHMEM_API RETURN gpushmem_ctx_##NAME(gpushmem_ctx_t ctx, __VA_ARGS__);

// ------------------------------------------------------------------------------------------
// remote memory access

// put copies from local memory (any address) to `dest` on `pe`, get from `source` on `pe` to local
// memory.
//   gpushmem_TYPE_put(TYPE *dest, const TYPE *source, size_t nelems, int pe); get alike
//   gpushmem_TYPE_iput(TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,
//                      int pe); iget alike
//   gpushmem_TYPE_ibput(TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
//                       size_t nblocks, int pe); ibget alike
//   put         returns when the source may be reused; the data arrives later (see fence, quiet)
//   get         returns when the data is there
//   p, g        put one value, get one. (get of one element is the form of g with a status.)
//   iput, iget  move nelems elements, dst and sst elements apart (GPUSHMEM_ERR_INVALID: below 1)
//   ibput, ibget  move nblocks blocks of bsize elements; at the destination they begin dst elements
//               apart, at the source sst (GPUSHMEM_ERR_INVALID: below 1 or below bsize)
//   _nbi        return at once: the source must not change, and the destination must not be read,
//               before quiet
// An aligned transfer of one element of at most 8 bytes is never seen in halves (row "small put" of
// the memory model).
#define GPUSHMEM_DECLARE_TYPE(VERB, REST, FORM, NAME, TYPE)                                        \
    GPUSHMEM_FUNCTION(int, NAME##_##VERB##REST, GPSH_P_##FORM(TYPE, enum gpushmem_signal_op))
#define GPUSHMEM_DECLARE_SIZE(VERB, REST, FORM, BITS)                                              \
    GPUSHMEM_FUNCTION(int, VERB##BITS##REST, GPSH_P_##FORM(void, enum gpushmem_signal_op))
#define GPUSHMEM_DECLARE(NAME, TYPE)                                                               \
    GPSH_PLAIN_MOVES(GPUSHMEM_DECLARE_TYPE, NAME, TYPE)                                            \
    GPUSHMEM_FUNCTION(int, NAME##_p, TYPE *dest, TYPE value, int pe)                               \
    GPUSHMEM_FUNCTION(TYPE, NAME##_g, const TYPE *source, int pe)                                  \
    GPSH_STRIDED_MOVES(GPUSHMEM_DECLARE_TYPE, NAME, TYPE)                                          \
    GPSH_BLOCKED_MOVES(GPUSHMEM_DECLARE_TYPE, NAME, TYPE)
GPUSHMEM_RMA_TYPES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE

// The same by size of an element in bits: put8 .. put128, get8 .., iput8 .., iget8 .., ibput8 ..,
// ibget8 .., put8_nbi .., get8_nbi ..
#define GPUSHMEM_DECLARE(BITS)                                                                     \
    GPSH_PLAIN_MOVES(GPUSHMEM_DECLARE_SIZE, BITS)                                                  \
    GPSH_STRIDED_MOVES(GPUSHMEM_DECLARE_SIZE, BITS)                                                \
    GPSH_BLOCKED_MOVES(GPUSHMEM_DECLARE_SIZE, BITS)
GPUSHMEM_RMA_SIZES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE

// The same in bytes, at any address.
GPUSHMEM_FUNCTION(int, putmem, void *dest, const void *source, size_t bytes, int pe)
GPUSHMEM_FUNCTION(int, getmem, void *dest, const void *source, size_t bytes, int pe)
GPUSHMEM_FUNCTION(int, putmem_nbi, void *dest, const void *source, size_t bytes, int pe)
GPUSHMEM_FUNCTION(int, getmem_nbi, void *dest, const void *source, size_t bytes, int pe)

// ------------------------------------------------------------------------------------------
// put with signal

// put, then update the signal word *sig of the same PE: GPUSHMEM_SIGNAL_SET stores `signal`,
// GPUSHMEM_SIGNAL_ADD adds it. A thread that sees the new signal sees this put's data, but nothing
// else is implied. With zero elements only the signal is sent. Atomic to other signal operations
// with the same operator. OpenSHMEM 1.5, section 9.8.
//   GPUSHMEM_ERR_INVALID    `sig_op` is no signal operation
//   GPUSHMEM_ERR_ALIGNMENT  `sig` is not a multiple of 8
//   gpushmem_TYPE_put_signal(TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig,
//                            uint64_t signal, enum gpushmem_signal_op sig_op, int pe)
#define GPUSHMEM_DECLARE(NAME, TYPE) GPSH_SIGNAL_MOVES(GPUSHMEM_DECLARE_TYPE, NAME, TYPE)
GPUSHMEM_RMA_TYPES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE
#define GPUSHMEM_DECLARE(BITS) GPSH_SIGNAL_MOVES(GPUSHMEM_DECLARE_SIZE, BITS)
GPUSHMEM_RMA_SIZES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE
#undef GPUSHMEM_DECLARE_SIZE
#undef GPUSHMEM_DECLARE_TYPE

GPUSHMEM_FUNCTION(int, putmem_signal, void *dest, const void *source, size_t bytes, uint64_t *sig,
                  uint64_t signal, enum gpushmem_signal_op sig_op, int pe)
GPUSHMEM_FUNCTION(int, putmem_signal_nbi, void *dest, const void *source, size_t bytes,
                  uint64_t *sig, uint64_t signal, enum gpushmem_signal_op sig_op, int pe)

// Sends the signal alone, as a put_signal of zero elements does.
GPUSHMEM_FUNCTION(int, signal_op, uint64_t *sig, uint64_t signal, enum gpushmem_signal_op sig_op,
                  int pe)

// The same with the operator in the name.
GPUSHMEM_FUNCTION(int, signal_set, uint64_t *sig, uint64_t signal, int pe)
GPUSHMEM_FUNCTION(int, signal_add, uint64_t *sig, uint64_t signal, int pe)

// Reads this PE's own signal word, with acquire semantics.
GPUSHMEM_API uint64_t gpushmem_signal_fetch(const uint64_t *sig);
GPUSHMEM_API int gpushmem_signal_fetch_status(const uint64_t *sig, uint64_t *value);

// Waits like gpushmem_uint64_wait_until and returns the value that ended the wait; on failure 0.
GPUSHMEM_API uint64_t gpushmem_signal_wait_until(uint64_t *sig, enum gpushmem_cmp cmp,
                                                 uint64_t value);
// *seen (NULL: not wanted): the value that ended the wait.
GPUSHMEM_API int gpushmem_signal_wait_until_status(const uint64_t *sig, enum gpushmem_cmp cmp,
                                                   uint64_t value, uint64_t *seen);

// ------------------------------------------------------------------------------------------
// atomics

// These work on one aligned word of `pe`. They are atomic with respect to all other atomics of the
// same type, from any PE, host or device, and to nothing else: while other threads update a word by
// atomics, read it with atomic_fetch, wait or test. The fetching forms return the previous value;
// with _status they write it to *before and return a status. The others return a status, at once.
// The _nbi forms write the previous value to *fetch, where it is valid after quiet. If NIC atomics
// are atomic only among themselves, 4-byte updates block until they are complete
// (docs/design/atomics.md). fetch_inc and inc add one. Integers wrap. float and double
// are moved bit by bit. compare_swap stores `value` if the word equals `cond`. OpenSHMEM 1.5,
// section 9.7.
//   gpushmem_TYPE_atomic_fetch(const TYPE *source, int pe)
//   gpushmem_TYPE_atomic_compare_swap(TYPE *dest, TYPE cond, TYPE value, int pe)
//   inc, fetch_inc  (TYPE *dest, int pe)
//   the others      (TYPE *dest, TYPE value, int pe)
//   GPUSHMEM_ERR_ALIGNMENT  the address is not a multiple of the word's size
#define GPUSHMEM_DECLARE_FETCH(OP, FORM, NUMBER, NAME, TYPE)                                       \
    GPUSHMEM_FUNCTION(TYPE, NAME##_atomic_##OP, GPSH_P_##FORM(TYPE, ))                             \
    GPUSHMEM_FUNCTION(int, NAME##_atomic_##OP##_status, GPSH_P_##FORM(TYPE, ), TYPE *before)       \
    GPUSHMEM_FUNCTION(int, NAME##_atomic_##OP##_nbi, TYPE *fetch, GPSH_P_##FORM(TYPE, ))
#define GPUSHMEM_DECLARE_UPDATE(OP, FORM, NUMBER, NAME, TYPE)                                      \
    GPUSHMEM_FUNCTION(int, NAME##_atomic_##OP, GPSH_P_##FORM(TYPE, ))
#define GPUSHMEM_DECLARE(NAME, TYPE)                                                               \
    GPSH_EXTENDED_ATOMICS(GPUSHMEM_DECLARE_FETCH, GPUSHMEM_DECLARE_UPDATE, NAME, TYPE)
GPUSHMEM_AMO_EXTENDED_TYPES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE
#define GPUSHMEM_DECLARE(NAME, TYPE)                                                               \
    GPSH_ATOMICS(GPUSHMEM_DECLARE_FETCH, GPUSHMEM_DECLARE_UPDATE, NAME, TYPE)
GPUSHMEM_AMO_TYPES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE
#define GPUSHMEM_DECLARE(NAME, TYPE)                                                               \
    GPSH_BITWISE_ATOMICS(GPUSHMEM_DECLARE_FETCH, GPUSHMEM_DECLARE_UPDATE, NAME, TYPE)
GPUSHMEM_AMO_BITWISE_TYPES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE
#undef GPUSHMEM_DECLARE_UPDATE
#undef GPUSHMEM_DECLARE_FETCH

// ------------------------------------------------------------------------------------------
// wait and test

// `var` is a word, `vars` are words, of this PE's heap that other PEs update; `cmp` compares the
// word on the left with the value on the right. All have acquire semantics: what was ordered before
// the update is visible after the call. wait blocks; meanwhile it drives the default context, and
// yields its core to other threads. test does not block.
//   wait_until       0 when true                        test       1 true, 0 false
//   wait_until_all   0 when all are                     test_all   1 all true, 0 not all
//   wait_until_any   index of one that is               test_any   index, or SIZE_MAX
//   wait_until_some  how many are; their indices        test_some  how many; their indices
// The _status forms of _any and _some return 0 or the code, and write index or count to their last
// argument.
// status (NULL: none) excludes element i where status[i] is not 0. If no element is left, _all is
// true, _any returns SIZE_MAX and _some 0. _any is fair: no element is passed over for ever. The
// _vector forms have a value per element. On failure wait_until(_all) and test(_all) return the
// code, _any SIZE_MAX and _some 0 (see gpushmem_clear_error).
//   GPUSHMEM_ERR_INVALID    unknown comparison
//   GPUSHMEM_ERR_ADDRESS    not in the symmetric heap
//   GPUSHMEM_ERR_ALIGNMENT  not a multiple of the word's size
//   GPUSHMEM_ERR_PE_FAILED  some PE failed while the condition was false; each thread is told once
//                           of each failure, and may wait again
//   GPUSHMEM_ERR_TIMEOUT    the condition was false for GPUSHMEM_WAIT_TIMEOUT_MS
//   gpushmem_TYPE_wait_until(const volatile TYPE *var, enum gpushmem_cmp cmp, TYPE value)
//   gpushmem_TYPE_wait_until_all(const volatile TYPE *vars, size_t nelems, const int *status,
//                                enum gpushmem_cmp cmp, TYPE value); _any alike
//   gpushmem_TYPE_wait_until_some(const volatile TYPE *vars, size_t nelems, size_t *indices,
//                                 const int *status, enum gpushmem_cmp cmp, TYPE value)
#define GPUSHMEM_DECLARE_all(NAME, ...) GPUSHMEM_API int gpushmem_##NAME(__VA_ARGS__);
#define GPUSHMEM_DECLARE_any(NAME, ...)                                                            \
    GPUSHMEM_API size_t gpushmem_##NAME(__VA_ARGS__);                                              \
    GPUSHMEM_API int gpushmem_##NAME##_status(__VA_ARGS__, size_t *index);
#define GPUSHMEM_DECLARE_some(NAME, ...)                                                           \
    GPUSHMEM_API size_t gpushmem_##NAME(__VA_ARGS__);                                              \
    GPUSHMEM_API int gpushmem_##NAME##_status(__VA_ARGS__, size_t *count);
#define GPUSHMEM_DECLARE_SET(VERB, WHICH, FORM, NAME, TYPE, VECTOR, VALUE)                         \
    GPUSHMEM_DECLARE_##WHICH(NAME##_##VERB##_##WHICH##VECTOR,                                      \
                             GPSH_P_##FORM(const volatile TYPE *vars, enum gpushmem_cmp, VALUE))
#define GPUSHMEM_DECLARE(NAME, TYPE)                                                               \
    GPUSHMEM_API int gpushmem_##NAME##_wait_until(const volatile TYPE *var, enum gpushmem_cmp cmp, \
                                                  TYPE value);                                     \
    GPUSHMEM_API int gpushmem_##NAME##_test(const volatile TYPE *var, enum gpushmem_cmp cmp,       \
                                            TYPE value);                                           \
    GPSH_WAITS(GPUSHMEM_DECLARE_SET, NAME, TYPE, , TYPE value)                                     \
    GPSH_WAITS(GPUSHMEM_DECLARE_SET, NAME, TYPE, _vector, const TYPE *values)
GPUSHMEM_SYNC_TYPES(GPUSHMEM_DECLARE)
#undef GPUSHMEM_DECLARE
#undef GPUSHMEM_DECLARE_SET
#undef GPUSHMEM_DECLARE_some
#undef GPUSHMEM_DECLARE_any
#undef GPUSHMEM_DECLARE_all

// While a wait of the host lasts, waits in collectives and in quiet included, the waiting thread
// calls hook(argument) about every 50 ms. If the result is not 0, the wait ends as if
// GPUSHMEM_WAIT_TIMEOUT_MS were over: with GPUSHMEM_ERR_TIMEOUT and what that means for the call.
// For languages whose signal handlers have to run in a waiting thread, and for programs that cancel
// waits. The hook calls nothing of this library. One hook per process; NULL takes it away. Legal at
// any time at which no thread waits. Never fails. Meetings of init by a unique id do not call it.
GPUSHMEM_API int gpushmem_set_wait_hook(int (*hook)(void *argument), void *argument);

// -----------------------------------------------------------------------------------------
// ordering, completion

// fence: the puts, signals, atomics and stores through gpushmem_ptr that the calling thread issued
// before it arrive at each PE before those issued after it. It orders per PE and per context,
// completes nothing, and does not wait, with one exception (docs/memory-model.md, row "fence,
// mixed").
//   GPUSHMEM_ERR_TIMEOUT    the exception's wait took GPUSHMEM_WAIT_TIMEOUT_MS: nothing is ordered
GPUSHMEM_API int gpushmem_fence(void);
GPUSHMEM_API int gpushmem_ctx_fence(gpushmem_ctx_t ctx);
// The same towards one PE.
GPUSHMEM_API int gpushmem_pe_fence(int pe);
GPUSHMEM_API int gpushmem_ctx_pe_fence(gpushmem_ctx_t ctx, int pe);

// quiet: returns when everything issued before it on the context is complete: puts, signals,
// atomics and stores through gpushmem_ptr are visible to every PE, and the results of _nbi
// operations are there. On a context that threads share it covers the other threads' earlier
// operations too.
//   GPUSHMEM_ERR_PE_FAILED  operations towards a PE were lost since the context's last quiet; all
//                           others are complete
GPUSHMEM_API int gpushmem_quiet(void);
GPUSHMEM_API int gpushmem_ctx_quiet(gpushmem_ctx_t ctx);
// The same towards the PEs in pes[0 .. npes-1]; with npes = 0 it returns at once.
GPUSHMEM_API int gpushmem_pe_quiet(const int *pes, size_t npes);
GPUSHMEM_API int gpushmem_ctx_pe_quiet(gpushmem_ctx_t ctx, const int *pes, size_t npes);

// ------------------------------------------------------------------------------------------
// synchronisation

// sync_all: returns when all PEs have called it; completes nothing. barrier_all: gpushmem_quiet,
// then sync_all, so that after it every PE sees what every PE has put on the default context (what
// was put on others is the program's business: gpushmem_ctx_quiet before). Collective.
//   GPUSHMEM_ERR_ASYMMETRY  some PEs are in another collective call; all PEs are told
//   GPUSHMEM_ERR_PE_FAILED  a PE failed: the barrier can never be complete
//   GPUSHMEM_ERR_TIMEOUT    not all PEs came within GPUSHMEM_WAIT_TIMEOUT_MS
GPUSHMEM_API int gpushmem_sync_all(void);
GPUSHMEM_API int gpushmem_barrier_all(void);

// ------------------------------------------------------------------------------------------
// locks

// A lock is a symmetric long, zero at first (gpushmem_calloc), that only these functions touch. One
// PE has it at a time; PEs get it in the order in which they asked. It belongs to the PE and not to
// a thread: one thread of a PE uses a lock at a time.
//   set    waits until this PE has the lock, and meanwhile drives the default context
//   test   0: this PE has the lock now; 1: it has it already, or another PE has; never waits
//   clear  does gpushmem_quiet, so that the next PE sees what this one did, then gives the lock to
//          the PE that has waited longest. The lock is passed on also if it fails with what
//          gpushmem_quiet lists
//   GPUSHMEM_ERR_STATE      (set) this PE has the lock already; (clear) it does not have it
//   GPUSHMEM_ERR_ADDRESS    not in the symmetric heap
//   GPUSHMEM_ERR_ALIGNMENT  not a multiple of 8
//   GPUSHMEM_ERR_PE_FAILED  a PE failed while this one waited. If that PE was in the queue, nobody
//                           after it gets the lock any more
//   GPUSHMEM_ERR_TIMEOUT    (set) not this PE's turn for GPUSHMEM_WAIT_TIMEOUT_MS. After this and
//                           the error above it keeps its place: set again waits on, and only then
//                           may it be cleared
GPUSHMEM_API int gpushmem_set_lock(long *lock);
GPUSHMEM_API int gpushmem_test_lock(long *lock);
GPUSHMEM_API int gpushmem_clear_lock(long *lock);

#undef GPUSHMEM_FUNCTION

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif

#endif

// Collectives, streams, and names without a type. A header of ours that needs none of them leaves
// them away, and a program that includes this one after that gets them all the same.
#if !defined(GPSH_HOST_FUNCTIONS_ALONE)
#include "gpushmem/coll.h"
#include "gpushmem/coll_stream.h"
#include "gpushmem/stream.h"
#ifdef __cplusplus
#include "gpushmem/impl/overloads.hpp"
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#include "gpushmem/impl/generic.h"
#endif
#endif
