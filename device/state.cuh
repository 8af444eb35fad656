// SPDX-License-Identifier: BSD-3-Clause
// The implicit handle, bounded waiting, and reporting of what went wrong.
#ifndef GPUSHMEM_DEVICE_STATE_CUH
#define GPUSHMEM_DEVICE_STATE_CUH

#include "gpushmem/device/scope.cuh"
#include "gpushmem/device_host.h"

// The copy of the handle that functions without a handle argument use. On a GPU every translation
// unit has its own (it works with and without relocatable device code), filled in by the launch
// macro or gpushmem_device_attach (launch.cuh).
#if defined(__CUDACC__)
static __constant__ struct gpushmem_dev gpsh_dev_implicit;
#else
inline struct gpushmem_dev gpsh_dev_implicit;
#endif

// Functions that are not inlined take *dev.self, never dev: the address of a kernel's argument
// would make the compiler copy it into each thread's local memory, where nothing read from it
// counts as the same for a whole warp any more.

// The word that a thread waits for, and what it saw there last.
struct gpsh_dev_wanted {
    uint32_t kind; // enum gpushmem_fault_word
    int cmp;
    uint64_t value, seen;
};

// Records the first failure of the device side; later ones are dropped. The host reports it
// (gpushmem_device_error). Or answers the host's question, `status`, as the first one.
GPSH_DEV_CALL void gpsh_dev_record(struct gpushmem_device_fault *fault, uint32_t *claim, int status,
                                   int pe, const void *address, uint64_t bytes,
                                   struct gpsh_dev_wanted wanted)
{
    GPSH_DEV_BOUNDS();
    uint32_t mine = status < 0 ? 1u : (uint32_t)status;
    if (gpsh_dev_exchange32_relaxed_gpu(claim, mine) == mine)
        return;
    fault->pe = pe;
    fault->word = wanted.kind;
    fault->cmp = wanted.cmp;
    fault->wanted = wanted.value;
    fault->seen = wanted.seen;
    fault->block[0] = blockIdx.x;
    fault->block[1] = blockIdx.y;
    fault->block[2] = blockIdx.z;
    fault->thread[0] = threadIdx.x;
    fault->thread[1] = threadIdx.y;
    fault->thread[2] = threadIdx.z;
    fault->address = (uint64_t)address;
    fault->bytes = bytes;
    // a reader that sees the status also sees everything above
    gpsh_dev_store32_release_sys(&fault->status, (uint32_t)status);
}

GPSH_DEV void gpsh_dev_fail(const struct gpushmem_dev &dev, int status, int pe, const void *address,
                            uint64_t bytes, uint64_t call = 0)
{
    gpsh_dev_record(&dev.fault[GPUSHMEM_FAULT_FIRST], &dev.fault_claim[GPUSHMEM_FAULT_FIRST],
                    status, pe, address, bytes, {GPUSHMEM_FAULT_NO_WORD, 0, 0, call});
}

// A wait for [address, +bytes) of the heap that failed, with its status, or that was asked about,
// with the question.
GPSH_DEV void gpsh_dev_tell(const struct gpushmem_dev &dev, int status, const void *address,
                            uint64_t bytes, struct gpsh_dev_wanted wanted)
{
    int number = status < 0 ? GPUSHMEM_FAULT_FIRST : GPUSHMEM_FAULT_WAITING;
    gpsh_dev_record(&dev.fault[number], &dev.fault_claim[number], status, -1, address, bytes,
                    wanted);
}

// Checked with and without GPUSHMEM_DEVICE_CHECKS: nearly all calls pass a constant, for which the
// compiler leaves nothing of it.
GPSH_DEV bool gpsh_dev_check_operator(const struct gpushmem_dev &dev, bool known, int seen,
                                      bool comparison)
{
    if (!known)
        gpsh_dev_record(&dev.fault[GPUSHMEM_FAULT_FIRST], &dev.fault_claim[GPUSHMEM_FAULT_FIRST],
                        GPUSHMEM_ERR_INVALID, -1, nullptr, 0,
                        {GPUSHMEM_FAULT_OPERATOR, 0, comparison, (uint64_t)(int64_t)seen});
    return known;
}
GPSH_DEV bool gpsh_dev_check_signal_op(const struct gpushmem_dev &dev, int op)
{
    return gpsh_dev_check_operator(dev, op == GPUSHMEM_SIGNAL_SET || op == GPUSHMEM_SIGNAL_ADD, op,
                                   false);
}
GPSH_DEV bool gpsh_dev_check_cmp(const struct gpushmem_dev &dev, int cmp)
{
    return gpsh_dev_check_operator(dev, (unsigned)cmp <= GPUSHMEM_CMP_GE, cmp, true);
}

// One wait. Call gpsh_dev_spin in every empty iteration: not 0 ends the wait with that status.
struct gpsh_dev_wait {
    const struct gpushmem_device_control *control;
    uint64_t timeout_ns;
    uint64_t begin_ns; // the first look at the host's words
    uint32_t spins;
    int32_t asked; // the host's question what is waited for; 0: none
#if !defined(__CUDACC__)
    // of the proxy that serves this thread's ring; NULL: none, or it cannot be woken
    uint32_t *sleeping;
#endif
};

// The ring of the calling thread's block: then a fence by one of its threads covers what the others
// did before a __syncthreads. The launch's number spreads kernels of one block, and operations of
// streams, over the rings.
GPSH_DEV uint32_t gpsh_dev_ring_number(const struct gpushmem_dev &dev)
{
    return (gpsh_dev_block_number() + gpsh_dev_launch_number()) % dev.n_rings;
}

GPSH_DEV struct gpsh_dev_wait gpsh_dev_wait_begin(const struct gpushmem_dev &dev)
{
    struct gpsh_dev_wait wait = {};
    wait.control = dev.control;
    wait.timeout_ns = dev.timeout_ns;
#if !defined(__CUDACC__)
    wait.sleeping = dev.n_rings ? dev.rings[gpsh_dev_ring_number(dev)].sleeping : nullptr;
#endif
    return wait;
}

// How many spins between two looks at host memory, which all waiting threads of a GPU share: some
// milliseconds. With 135,000 of them a look every 256 spins took the whole PCIe bus: 61 M/s through
// the rings of an H200, 235 so, 343 without any looks.
#if defined(__CUDACC__)
enum { GPSH_DEV_LOOK_EVERY = 4096 };
#else
enum { GPSH_DEV_LOOK_EVERY = 64 };
#endif

// `on_memory`: the wait ends by another PE's action, so the loss of a PE ends it too, and the host
// may ask about it; otherwise it ends by the proxy, which answers for lost PEs, and on questions,
// itself.
GPSH_DEV int gpsh_dev_spin(struct gpsh_dev_wait *wait, bool on_memory)
{
    gpsh_dev_relax(wait->spins);
#if !defined(__CUDACC__)
    if (wait->sleeping) // the proxy may need the core that we spin on: do its work
        gpushmem_proxy_help(wait->sleeping);
#endif
    if (++wait->spins % GPSH_DEV_LOOK_EVERY)
        return 0;
    int status = gpsh_dev_load32_relaxed_sys(&wait->control->abort);
    if (!status && on_memory) {
        status = gpsh_dev_load32_relaxed_sys(&wait->control->peer_failed);
        // the host asks when it has read the answer before, over which this one is written
        wait->asked = (int32_t)gpsh_dev_load32_acquire_sys(&wait->control->question);
    }
    if (status)
        return status;
    uint64_t now = gpsh_dev_now_ns();
    if (!wait->begin_ns)
        wait->begin_ns = now;
    uint64_t lasted = now - wait->begin_ns;
    if (lasted >> GPUSHMEM_QUESTION_UNIT_SHIFT <
        (wait->asked & ((1u << GPUSHMEM_QUESTION_NUMBER_SHIFT) - 1)))
        wait->asked = 0;
    return wait->timeout_ns && lasted > wait->timeout_ns ? GPUSHMEM_ERR_TIMEOUT : 0;
}

// A wait that keeps little in registers: the rest is looked up when it matters.
struct gpsh_dev_lean_wait {
    uint64_t begin_ns;
    uint32_t spins;
};

// gpsh_dev_spin of such a wait, which ends by a NIC or by another thread.
GPSH_DEV int gpsh_dev_lean_spin(const struct gpushmem_dev &dev, struct gpsh_dev_lean_wait *lean)
{
#if defined(__CUDACC__)
    if ((lean->spins + 1) % GPSH_DEV_LOOK_EVERY) {
        gpsh_dev_relax(lean->spins++);
        return 0;
    }
#endif
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(dev);
    wait.spins = lean->spins;
    wait.begin_ns = lean->begin_ns;
    const int status = gpsh_dev_spin(&wait, false);
    *lean = {wait.begin_ns, wait.spins};
    return status;
}

// GPUSHMEM_DEVICE_CHECKS: refuses a bad PE, an address outside the heap or an atomic's or flag's
// that is not aligned, and records the first offender. On CPU threads that is so unless the macro
// is 0, on a GPU if it is defined (as anything but 0). Otherwise nothing is checked here; commands
// that go through a ring are checked by the proxy in any case.
#if !defined(GPUSHMEM_DEVICE_CHECKS) && !defined(__CUDACC__)
#define GPUSHMEM_DEVICE_CHECKS 1
#endif
// the second: defined as nothing
#if defined(GPUSHMEM_DEVICE_CHECKS) &&                                                             \
    (GPUSHMEM_DEVICE_CHECKS + 0 || 7 - GPUSHMEM_DEVICE_CHECKS - 7 == 14)
#define GPSH_DEV_CHECKS 1
#else
#define GPSH_DEV_CHECKS 0
#endif

#if defined(__CUDACC__) || !GPSH_DEV_CHECKS
#define GPSH_DEV_IMPLICIT gpsh_dev_implicit
#else
// That of a thread that runs no kernel, which nvcc would not have compiled: of a job without PEs,
// so that the call is refused.
inline const struct gpushmem_dev &gpsh_dev_outside(const char *function)
{
    static struct gpushmem_device_fault faults[GPUSHMEM_FAULTS];
    static uint32_t claims[GPUSHMEM_FAULTS];
    static const struct gpushmem_device_control control = {};
    static uint64_t sequence;
    static struct gpushmem_dev none;
    gpushmem_outside_kernel(function);
    none.flags = GPUSHMEM_DEV_DIRECT_ATOMICS | GPUSHMEM_DEV_ALL_DIRECT;
    none.fault = faults;
    none.fault_claim = claims;
    none.control = &control;
    none.sync_sequence = &sequence;
    none.self = &none;
    return none;
}

inline const struct gpushmem_dev &gpsh_dev_of_kernel(const char *function = __builtin_FUNCTION())
{
    return gpushmem_emu_in_kernel() ? gpsh_dev_implicit : gpsh_dev_outside(function);
}
#define GPSH_DEV_IMPLICIT gpsh_dev_of_kernel()
#endif

// [offset, +bytes) of the heap is the program's, whatever is allocated there.
GPSH_DEV bool gpsh_dev_is_plain(const struct gpushmem_dev &dev, uint64_t offset, uint64_t bytes)
{
    const uint64_t plain = (uint64_t)dev.plain * GPUSHMEM_DEV_PLAIN_BYTES;
    return offset <= plain && bytes <= plain - offset;
}

// Also beyond what is plain: at the end of the first piece, or in what was added to it up to now,
// which only heaps in host memory have. With GPUSHMEM_CHECK=1 nothing is plain, and CPU threads ask
// which blocks there are.
GPSH_DEV bool gpsh_dev_in_heap(const struct gpushmem_dev &dev, uint64_t offset, uint64_t bytes)
{
    const uint64_t user_bytes = (uint64_t)((const char *)dev.sync - dev.heap);
    if (offset > user_bytes || bytes > user_bytes - offset) {
        const uint64_t now = gpsh_dev_load64_value_sys(&dev.control->heap_bytes);
        if (offset < dev.control->heap_first_bytes || offset > now || bytes > now - offset)
            return false;
    }
#if !defined(__CUDACC__)
    if (dev.flags & GPUSHMEM_DEV_BLOCKS)
        return gpushmem_block_holds(dev.heap + offset, bytes);
#endif
    return true;
}

// Of what is not plainly good.
GPSH_DEV_CALL bool gpsh_dev_check_well(const struct gpushmem_dev &dev, const void *address,
                                       uint64_t bytes, int pe, uint64_t call)
{
    GPSH_DEV_BOUNDS();
    const bool exists = (uint32_t)pe < (uint32_t)dev.n_pes;
    if (exists && gpsh_dev_in_heap(dev, (uint64_t)((const char *)address - dev.heap), bytes))
        return true;
    gpsh_dev_fail(dev, exists ? (int)GPUSHMEM_ERR_ADDRESS : (int)GPUSHMEM_ERR_PE, pe, address,
                  bytes, exists ? call : 0);
    return false;
}

GPSH_DEV bool gpsh_dev_check(const struct gpushmem_dev &dev, const void *address, uint64_t bytes,
                             int pe, uint64_t call = 0)
{
#if GPSH_DEV_CHECKS
    if ((uint32_t)pe < (uint32_t)dev.n_pes &&
        gpsh_dev_is_plain(dev, (uint64_t)((const char *)address - dev.heap), bytes))
        return true;
    return gpsh_dev_check_well(dev, address, bytes, pe, call);
#else
    return true;
#endif
}

// The same for the calling thread's side of a put or get that is not empty.
GPSH_DEV bool gpsh_dev_check_local(const struct gpushmem_dev &dev, const void *local, int pe,
                                   bool is_put)
{
#if GPSH_DEV_CHECKS
    if (!local)
        gpsh_dev_record(&dev.fault[GPUSHMEM_FAULT_FIRST], &dev.fault_claim[GPUSHMEM_FAULT_FIRST],
                        GPUSHMEM_ERR_INVALID, pe, nullptr, 0,
                        {GPUSHMEM_FAULT_LOCAL, 0, !is_put, 0});
    return local != nullptr;
#else
    return true;
#endif
}

// The same for strides, in elements.
GPSH_DEV bool gpsh_dev_check_strides(const struct gpushmem_dev &dev, ptrdiff_t there,
                                     ptrdiff_t here, int pe)
{
#if GPSH_DEV_CHECKS
    const bool good = there > 0 && here > 0;
    if (!good)
        gpsh_dev_record(&dev.fault[GPUSHMEM_FAULT_FIRST], &dev.fault_claim[GPUSHMEM_FAULT_FIRST],
                        GPUSHMEM_ERR_INVALID, pe, nullptr, 0,
                        {GPUSHMEM_FAULT_STRIDE, 0, (uint64_t)here, (uint64_t)there});
    return good;
#else
    return true;
#endif
}

// The same for a word of `width` bytes that atomics and signals change.
GPSH_DEV bool gpsh_dev_check_word(const struct gpushmem_dev &dev, const void *address,
                                  uint64_t width, int pe)
{
#if GPSH_DEV_CHECKS
    if ((uint64_t)address % width) {
        gpsh_dev_fail(dev, GPUSHMEM_ERR_ALIGNMENT, pe, address, width);
        return false;
    }
#endif
    return gpsh_dev_check(dev, address, width, pe);
}

// The same for n words of this PE that are waited for: 0 or why not.
GPSH_DEV int gpsh_dev_check_wait(const struct gpushmem_dev &dev, const void *words, size_t n,
                                 size_t width)
{
#if GPSH_DEV_CHECKS
    uint64_t offset = (uint64_t)((const char *)words - dev.heap);
    bool inside = n <= SIZE_MAX / width && (gpsh_dev_is_plain(dev, offset, n * width) ||
                                            gpsh_dev_in_heap(dev, offset, n * width));
    int status = !n                        ? 0
                 : (uint64_t)words % width ? (int)GPUSHMEM_ERR_ALIGNMENT
                 : inside                  ? 0
                                           : (int)GPUSHMEM_ERR_ADDRESS;
    if (status)
        gpsh_dev_fail(dev, status, -1, words, n * width);
    return status;
#else
    return 0;
#endif
}

// n elements of `size` bytes. With checks, an overflow counts as what fits into no heap.
GPSH_DEV size_t gpsh_dev_bytes(size_t n, size_t size)
{
#if GPSH_DEV_CHECKS
    if (n > SIZE_MAX / size)
        return SIZE_MAX;
#endif
    return n * size;
}

// The same from the first to the last of n elements, n > 0, that are `stride` elements apart.
GPSH_DEV size_t gpsh_dev_span(size_t n, ptrdiff_t stride, size_t size)
{
#if GPSH_DEV_CHECKS
    if (stride < 0 || (stride > 0 && n - 1 > (SIZE_MAX / size - 1) / (size_t)stride))
        return SIZE_MAX;
#endif
    return ((n - 1) * (size_t)stride + 1) * size;
}

// How far pe's heap is from this PE's for loads and stores, plus 1, or 0: go through a ring, where
// a PE that does not exist is refused.
//
// The constant is read before the comparison ends: behind a branch its latency would come on top,
// and g of a neighbour takes 8 % longer than a load.
GPSH_DEV uint64_t gpsh_dev_away(const struct gpushmem_dev &dev, int pe)
{
    uint64_t near = dev.near_away[(unsigned)pe % GPUSHMEM_DEV_NEAR_PEERS];
    if (__builtin_expect((unsigned)pe < GPUSHMEM_DEV_NEAR_PEERS, 1))
        return near;
    return (unsigned)pe < (unsigned)dev.n_pes ? dev.away[pe] : 0;
}

// Where an object of this PE is in a heap that is `away`, which is not 0.
GPSH_DEV char *gpsh_dev_at(uint64_t away, const void *address)
{
    return (char *)((uintptr_t)address + away - 1);
}

// An operation by loads and stores, on CPU threads where GPUSHMEM_STATS is set. A GPU counts none:
// what it takes to know whether to count would slow down those that do not.
GPSH_DEV void gpsh_dev_count(const struct gpushmem_dev &dev, int pe, uint64_t bytes)
{
#if defined(__CUDACC__)
    (void)dev, (void)pe, (void)bytes;
#else
    if (__builtin_expect(dev.flags & GPUSHMEM_DEV_COUNTED, 0))
        gpushmem_direct_counted(pe, bytes);
#endif
}

// Both at once. Whoever branches on it asks for gpsh_dev_away: the compiler cannot know that a sum
// is not NULL, and compares that as well.
GPSH_DEV char *gpsh_dev_direct(const struct gpushmem_dev &dev, const void *address, int pe)
{
    uint64_t away = gpsh_dev_away(dev, pe);
    return away ? gpsh_dev_at(away, address) : nullptr;
}

// A question, not an operation: a PE that does not exist is no mistake.
GPSH_DEV void *gpsh_dev_ptr(const struct gpushmem_dev &dev, const void *address, int pe)
{
    if ((uint32_t)pe >= (uint32_t)dev.n_pes || !gpsh_dev_check(dev, address, 1, pe))
        return nullptr;
    return pe == dev.my_pe ? (void *)address : (void *)gpsh_dev_direct(dev, address, pe);
}

#endif
