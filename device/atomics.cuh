// SPDX-License-Identifier: BSD-3-Clause
// Every PTX instruction and every raw atomic of the device side, each with its twin for CPU
// threads. The name says order and scope: _gpu is seen by this GPU, _sys by the host, NICs and
// other GPUs. On the CPU both are the same.
#ifndef GPUSHMEM_DEVICE_ATOMICS_CUH
#define GPUSHMEM_DEVICE_ATOMICS_CUH

#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "gpushmem/device_abi.h"

#if defined(__CUDACC__)
#define GPSH_DEV static __device__ __forceinline__
// long or rarely taken: one copy per translation unit
#define GPSH_DEV_CALL static __device__ __noinline__
#else
#define GPSH_DEV      static inline
#define GPSH_DEV_CALL [[maybe_unused]] static __attribute__((noinline))
#endif
// First in each GPSH_DEV_CALL. With relocatable device code such a function is compiled apart from
// its callers, with up to 255 registers, and nvlink gives a kernel as many as the greediest that it
// may call: then a launch of 1,024 threads, which have 64 each, fails. __local_maxnreg__ says the
// same, but is lost where a compiler drops arguments. Without relocatable code the kernel's own
// bounds hold for all, and ptxas would warn; as it does of a program linked with -dlto, which is
// compiled in one piece, too.
#if !defined(__CUDA_ARCH__) || !defined(__CUDACC_RDC__) || defined(GPUSHMEM_NVSHMEM_DEVICE_LIBRARY)
#define GPSH_DEV_BOUNDS() ((void)0)
#elif defined(GPUSHMEM_THREAD_LOADS) && GPUSHMEM_THREAD_LOADS >= 16 // blocks of up to 512
#define GPSH_DEV_BOUNDS() asm volatile(".pragma \"local_maxnreg 128\";")
#else
#define GPSH_DEV_BOUNDS() asm volatile(".pragma \"local_maxnreg 64\";")
#endif
#if defined(__CUDA_ARCH__)
#define GPSH_UNROLL    _Pragma("unroll")
#define GPSH_NO_UNROLL _Pragma("unroll 1")
#else
#define GPSH_UNROLL
#define GPSH_NO_UNROLL
#endif

// Program memory seen as words, whatever its declared type.
typedef uint64_t __attribute__((may_alias)) gpsh_dev_word64;
typedef uint32_t __attribute__((may_alias)) gpsh_dev_word32;
typedef uint16_t __attribute__((may_alias)) gpsh_dev_word16;

#if defined(__CUDA_ARCH__)
// The same pointer, known to the compiler as global memory: it merges the adds of a warp to one
// word then, and leaves out what an atomic on shared memory would need.
template <typename T> GPSH_DEV T *gpsh_dev_global(T *pointer)
{
    __builtin_assume(__isGlobal(pointer));
    return pointer;
}
#endif

// ---- Fences ----

// Stores before it are visible to this GPU before stores after it.
GPSH_DEV void gpsh_dev_fence_gpu(void)
{
#if defined(__CUDA_ARCH__)
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
#elif defined(__SANITIZE_THREAD__)
    // the sanitizer knows no fences: the accesses around them carry the order
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
#else
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
#endif
}

GPSH_DEV void gpsh_dev_fence_sys(void)
{
#if defined(__CUDA_ARCH__)
    asm volatile("fence.acq_rel.sys;" ::: "memory");
#else
    gpsh_dev_fence_gpu();
#endif
}

// Used after a load that saw an answer: what was written before the answer is visible to all later
// loads. Unlike fence.acq_rel it does not wait for this thread's own stores (0.6 us, more while
// stores to host memory are on their way).
GPSH_DEV void gpsh_dev_fence_acquire_sys(void)
{
#if defined(__CUDA_ARCH__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1208
    asm volatile("fence.acquire.sys;" ::: "memory"); // PTX 8.6
#else
    gpsh_dev_fence_sys();
#endif
}

// Also orders stores before later loads: what quiet needs.
GPSH_DEV void gpsh_dev_fence_full_sys(void)
{
#if defined(__CUDA_ARCH__)
    asm volatile("fence.sc.sys;" ::: "memory");
#elif defined(__SANITIZE_THREAD__)
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// ---- Kernels of a stream, launched early ----

// For a kernel that was launched before its predecessor in the stream has ended: waits for that
// end. After it, everything that the predecessor did is visible.
GPSH_DEV void gpsh_dev_await_kernel_before(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The stream's next kernel may be launched early, if it is one that awaits this one.
GPSH_DEV void gpsh_dev_let_next_kernel_start(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// ---- Words in device memory, shared by the threads of this GPU ----

GPSH_DEV uint64_t gpsh_dev_add64_relaxed_gpu(uint64_t *word, uint64_t value)
{
#if defined(__CUDA_ARCH__)
    // state space global: for a generic address the compiler adds code for shared memory
    uint64_t old;
    asm volatile("atom.add.relaxed.gpu.global.u64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(word), "l"(value)
                 : "memory");
    return old;
#else
    return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
#endif
}

// What this thread did, and what it knows that others did, comes before.
GPSH_DEV void gpsh_dev_add64_release_gpu(uint64_t *word, uint64_t value)
{
#if defined(__CUDA_ARCH__)
    asm volatile("red.add.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
#else
    __atomic_fetch_add(word, value, __ATOMIC_RELEASE);
#endif
}

// The CPU twin acquires and releases, as those of the loads and stores below.
GPSH_DEV void gpsh_dev_max64_relaxed_gpu(uint64_t *word, uint64_t value)
{
#if defined(__CUDA_ARCH__)
    asm volatile("red.max.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
#else
    uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (old < value && !__atomic_compare_exchange_n(word, &old, value, true, __ATOMIC_ACQ_REL,
                                                       __ATOMIC_RELAXED))
        ;
#endif
}

// Returns what was there; without order, as an exchange of 32 bits.
GPSH_DEV uint64_t gpsh_dev_cas64_relaxed_gpu(uint64_t *word, uint64_t compare, uint64_t value)
{
#if defined(__CUDA_ARCH__)
    uint64_t old;
    asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "l"(word), "l"(compare), "l"(value)
                 : "memory");
    return old;
#else
    __atomic_compare_exchange_n(word, &compare, value, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
    return compare;
#endif
}

// As a NIC reads numbers.
GPSH_DEV uint32_t gpsh_dev_big32(uint32_t value)
{
#if defined(__CUDA_ARCH__)
    return __byte_perm(value, 0, 0x0123);
#else
    return __builtin_bswap32(value);
#endif
}

GPSH_DEV uint64_t gpsh_dev_big64(uint64_t value)
{
    return (uint64_t)gpsh_dev_big32((uint32_t)value) << 32 |
           gpsh_dev_big32((uint32_t)(value >> 32));
}

// Takes what is there and leaves `value`: claims something. Without order, so that it goes out
// together with what follows.
GPSH_DEV uint32_t gpsh_dev_exchange32_relaxed_gpu(uint32_t *word, uint32_t value)
{
#if defined(__CUDA_ARCH__)
    uint32_t old;
    asm volatile("atom.relaxed.gpu.global.exch.b32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(word), "r"(value)
                 : "memory");
    return old;
#else
    return __atomic_exchange_n(word, value, __ATOMIC_ACQUIRE);
#endif
}

// ---- Single loads and stores ----

// One function a row: its words, what the GPU's instruction promises, and the order of the CPU
// twin, whose acquire and release are free on x86 and let sanitizers see the order that fences make
// on the GPU.
#if defined(__CUDA_ARCH__)
#define GPSH_DEV_REGISTER64 "l"
#define GPSH_DEV_REGISTER32 "r"
#define GPSH_DEV_REGISTER16 "h"
#define GPSH_DEV_LOAD(type, name, pointer, bits, gpu, cpu)                                         \
    GPSH_DEV type name(pointer word)                                                               \
    {                                                                                              \
        type value;                                                                                \
        asm volatile("ld." gpu ".global.u" #bits " %0, [%1];"                                      \
                     : "=" GPSH_DEV_REGISTER##bits(value)                                          \
                     : "l"(word)                                                                   \
                     : "memory");                                                                  \
        return value;                                                                              \
    }
#define GPSH_DEV_STORE(name, pointer, bits, gpu, cpu)                                              \
    GPSH_DEV void name(pointer word, uint##bits##_t value)                                         \
    {                                                                                              \
        asm volatile("st." gpu ".global.u" #bits " [%0], %1;" ::"l"(word),                         \
                     GPSH_DEV_REGISTER##bits(value)                                                \
                     : "memory");                                                                  \
    }
#else
#define GPSH_DEV_LOAD(type, name, pointer, bits, gpu, cpu)                                         \
    GPSH_DEV type name(pointer word)                                                               \
    {                                                                                              \
        return (type)__atomic_load_n((const gpsh_dev_word##bits *)word, __ATOMIC_##cpu);           \
    }
#define GPSH_DEV_STORE(name, pointer, bits, gpu, cpu)                                              \
    GPSH_DEV void name(pointer word, uint##bits##_t value)                                         \
    {                                                                                              \
        __atomic_store_n((gpsh_dev_word##bits *)word, value, __ATOMIC_##cpu);                      \
    }
#endif

// Words in device memory, shared by the threads of this GPU.
GPSH_DEV_LOAD(uint64_t, gpsh_dev_load64_relaxed_gpu, const uint64_t *, 64, "relaxed.gpu", ACQUIRE)
GPSH_DEV_LOAD(uint32_t, gpsh_dev_load32_relaxed_gpu, const uint32_t *, 32, "relaxed.gpu", ACQUIRE)
GPSH_DEV_LOAD(uint64_t, gpsh_dev_load64_acquire_gpu, const uint64_t *, 64, "acquire.gpu", ACQUIRE)
GPSH_DEV_STORE(gpsh_dev_store64_relaxed_gpu, uint64_t *, 64, "relaxed.gpu", RELAXED)
GPSH_DEV_STORE(gpsh_dev_store32_relaxed_gpu, uint32_t *, 32, "relaxed.gpu", RELEASE)

// Words that the host or other PEs read and write.
GPSH_DEV_LOAD(uint64_t, gpsh_dev_load64_acquire_sys, const void *, 64, "acquire.sys", ACQUIRE)
GPSH_DEV_LOAD(uint32_t, gpsh_dev_load32_acquire_sys, const void *, 32, "acquire.sys", ACQUIRE)
GPSH_DEV_LOAD(uint16_t, gpsh_dev_load16_acquire_sys, const void *, 16, "acquire.sys", ACQUIRE)
GPSH_DEV_STORE(gpsh_dev_store64_release_sys, void *, 64, "release.sys", RELEASE)
GPSH_DEV_STORE(gpsh_dev_store32_release_sys, void *, 32, "release.sys", RELEASE)
GPSH_DEV_LOAD(int32_t, gpsh_dev_load32_relaxed_sys, const int32_t *, 32, "relaxed.sys", RELAXED)

// Single values of programs, without order. Never torn: programs put their flags with them.
GPSH_DEV_LOAD(uint64_t, gpsh_dev_load64_value_sys, const void *, 64, "relaxed.sys", ACQUIRE)
GPSH_DEV_LOAD(uint32_t, gpsh_dev_load32_value_sys, const void *, 32, "relaxed.sys", ACQUIRE)
GPSH_DEV_LOAD(uint16_t, gpsh_dev_load16_value_sys, const void *, 16, "relaxed.sys", ACQUIRE)
GPSH_DEV_STORE(gpsh_dev_store64_sys, void *, 64, "relaxed.sys", RELEASE)
GPSH_DEV_STORE(gpsh_dev_store32_sys, void *, 32, "relaxed.sys", RELEASE)
GPSH_DEV_STORE(gpsh_dev_store16_sys, void *, 16, "relaxed.sys", RELEASE)

#undef GPSH_DEV_LOAD
#undef GPSH_DEV_STORE

GPSH_DEV void gpsh_dev_store8_sys(void *word, uint8_t value)
{
#if defined(__CUDA_ARCH__)
    // no register has 8 bits
    asm volatile("st.relaxed.sys.global.u8 [%0], %1;" ::"l"(word), "h"((uint16_t)value) : "memory");
#else
    __atomic_store_n((uint8_t *)word, value, __ATOMIC_RELEASE);
#endif
}

// Past the first-level cache, without order: for what a peer may have written since it was read
// last.
#if defined(__CUDA_ARCH__)
GPSH_DEV void gpsh_dev_load_uncached(uint4 *word, const uint4 *from)
{
    *word = __ldcg(from);
}
GPSH_DEV void gpsh_dev_load_uncached(gpsh_dev_word64 *word, const gpsh_dev_word64 *from)
{
    *word = __ldcg((const unsigned long long *)from);
}
GPSH_DEV void gpsh_dev_load_uncached(gpsh_dev_word32 *word, const gpsh_dev_word32 *from)
{
    *word = __ldcg((const unsigned int *)from);
}
GPSH_DEV void gpsh_dev_load_uncached(gpsh_dev_word16 *word, const gpsh_dev_word16 *from)
{
    *word = __ldcg((const unsigned short *)from);
}
GPSH_DEV void gpsh_dev_load_uncached(uint8_t *word, const uint8_t *from)
{
    *word = __ldcg((const unsigned char *)from);
}
GPSH_DEV void gpsh_dev_load_uncached(char *word, const char *from)
{
    *word = (char)__ldcg((const unsigned char *)from);
}
#else
template <typename W> GPSH_DEV void gpsh_dev_load_uncached(W *word, const W *from)
{
    __atomic_load(from, word, __ATOMIC_ACQUIRE);
}
#endif

// ---- The ring ----

// The eight words of a command, in any order: each carries its lap bit. On the CPU word 0 is stored
// last and releases what the command describes; on the GPU the fence before it has done that.
GPSH_DEV void gpsh_dev_store_command(uint64_t *slot, const uint64_t *words)
{
#if defined(__CUDA_ARCH__)
#pragma unroll
    for (int i = 0; i < GPUSHMEM_COMMAND_WORDS; i += 2)
        asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(slot + i), "l"(words[i]),
                     "l"(words[i + 1])
                     : "memory");
#else
    for (int i = 1; i < GPUSHMEM_COMMAND_WORDS; i++)
        __atomic_store_n(&slot[i], words[i], __ATOMIC_RELAXED);
    __atomic_store_n(&slot[0], words[0], __ATOMIC_RELEASE);
#endif
}

// Both words in one load (also of a count and the error next to it). Not yet an acquire on the GPU:
// a fence follows once the answer is there.
GPSH_DEV struct gpushmem_reply gpsh_dev_load_reply(const struct gpushmem_reply *reply)
{
    struct gpushmem_reply value;
#if defined(__CUDA_ARCH__)
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(value.low), "=l"(value.high)
                 : "l"(reply)
                 : "memory");
#else
    value.low = __atomic_load_n(&reply->low, __ATOMIC_ACQUIRE);
    value.high = __atomic_load_n(&reply->high, __ATOMIC_ACQUIRE);
#endif
    return value;
}

// A packet of a collective: two words of 64 bits, each with flag and data of its own, so that their
// order does not matter and no fence is needed.
struct gpsh_dev_packet {
    uint64_t low, high;
};

GPSH_DEV void gpsh_dev_store_packet(void *to, struct gpsh_dev_packet packet)
{
#if defined(__CUDA_ARCH__)
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(packet.low),
                 "l"(packet.high)
                 : "memory");
#else
    __atomic_store_n((gpsh_dev_word64 *)to, packet.low, __ATOMIC_RELEASE);
    __atomic_store_n((gpsh_dev_word64 *)to + 1, packet.high, __ATOMIC_RELEASE);
#endif
}

// Not "memory": several of them are under way at once. What follows depends on their values.
GPSH_DEV struct gpsh_dev_packet gpsh_dev_load_packet(const void *from)
{
    struct gpsh_dev_packet packet;
#if defined(__CUDA_ARCH__)
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(packet.low), "=l"(packet.high)
                 : "l"(from));
#else
    packet.low = __atomic_load_n((const gpsh_dev_word64 *)from, __ATOMIC_ACQUIRE);
    packet.high = __atomic_load_n((const gpsh_dev_word64 *)from + 1, __ATOMIC_ACQUIRE);
#endif
    return packet;
}

// A packet of more data: one access of 128 bits, which is not torn (PTX ISA 8.3 says so of .b128;
// what older assemblers make of .v4 is the same instruction). CPU threads read the flag first.
struct gpsh_dev_dense_packet {
    uint32_t data[3], flag;
};

GPSH_DEV void gpsh_dev_store_dense(void *to, const struct gpsh_dev_dense_packet &packet)
{
#if defined(__CUDA_ARCH__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1203
    uint64_t low = packet.data[0] | (uint64_t)packet.data[1] << 32,
             high = packet.data[2] | (uint64_t)packet.flag << 32;
    asm volatile("{\n\t.reg .b128 all;\n\tmov.b128 all, {%1, %2};\n\t"
                 "st.relaxed.sys.global.b128 [%0], all;\n\t}" ::"l"(to),
                 "l"(low), "l"(high)
                 : "memory");
#elif defined(__CUDA_ARCH__)
    asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to),
                 "r"(packet.data[0]), "r"(packet.data[1]), "r"(packet.data[2]), "r"(packet.flag)
                 : "memory");
#else
    for (int i = 0; i < 3; i++)
        __atomic_store_n((gpsh_dev_word32 *)to + i, packet.data[i], __ATOMIC_RELAXED);
    __atomic_store_n((gpsh_dev_word32 *)to + 3, packet.flag, __ATOMIC_RELEASE);
#endif
}

// Not "memory", as above.
GPSH_DEV struct gpsh_dev_dense_packet gpsh_dev_load_dense(const void *from)
{
    struct gpsh_dev_dense_packet packet;
#if defined(__CUDA_ARCH__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1203
    uint64_t low, high;
    asm volatile("{\n\t.reg .b128 all;\n\tld.relaxed.sys.global.b128 all, [%2];\n\t"
                 "mov.b128 {%0, %1}, all;\n\t}"
                 : "=l"(low), "=l"(high)
                 : "l"(from));
    packet.data[0] = (uint32_t)low, packet.data[1] = (uint32_t)(low >> 32);
    packet.data[2] = (uint32_t)high, packet.flag = (uint32_t)(high >> 32);
#elif defined(__CUDA_ARCH__)
    asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(packet.data[0]), "=r"(packet.data[1]), "=r"(packet.data[2]),
                   "=r"(packet.flag)
                 : "l"(from));
#else
    packet.flag = __atomic_load_n((const gpsh_dev_word32 *)from + 3, __ATOMIC_ACQUIRE);
    for (int i = 0; i < 3; i++)
        packet.data[i] = __atomic_load_n((const gpsh_dev_word32 *)from + i, __ATOMIC_RELAXED);
#endif
    return packet;
}

// CPU threads only: true if the proxy sleeps and is to be woken. Full barrier: the command written
// before must be visible to a proxy that is not seen sleeping (pairs with the exchange in proxy.c).
#if !defined(__CUDA_ARCH__)
GPSH_DEV bool gpsh_dev_must_wake(uint32_t *sleeping)
{
    return __atomic_fetch_or(sleeping, 0, __ATOMIC_SEQ_CST) != 0;
}
#endif

// ---- Atomics on symmetric memory of directly mapped PEs ----

// The word as CUDA's intrinsics and the compilers' builtins take it.
template <typename T> struct gpsh_dev_atomic_word;
template <> struct gpsh_dev_atomic_word<uint64_t> {
    typedef unsigned long long __attribute__((may_alias)) type;
};
template <> struct gpsh_dev_atomic_word<uint32_t> {
    typedef unsigned int __attribute__((may_alias)) type;
};

// Returns the previous value. T is uint64_t or uint32_t.
template <typename T>
GPSH_DEV T gpsh_dev_atomic(void *target, enum gpushmem_amo amo, T operand, T compare)
{
    typedef typename gpsh_dev_atomic_word<T>::type type;
#if defined(__CUDA_ARCH__)
    type *word = (type *)gpsh_dev_global(target);
    switch (amo) {
    case GPUSHMEM_AMO_FETCH:
        return sizeof(T) == 8 ? (T)gpsh_dev_load64_value_sys(word)
                              : (T)gpsh_dev_load32_value_sys(word);
    case GPUSHMEM_AMO_SET:
    case GPUSHMEM_AMO_SWAP: return atomicExch_system(word, operand);
    case GPUSHMEM_AMO_ADD: return atomicAdd_system(word, operand);
    case GPUSHMEM_AMO_CSWAP: return atomicCAS_system(word, compare, operand);
    case GPUSHMEM_AMO_AND: return atomicAnd_system(word, operand);
    case GPUSHMEM_AMO_OR: return atomicOr_system(word, operand);
    case GPUSHMEM_AMO_XOR: return atomicXor_system(word, operand);
    default: return 0;
    }
#else
    type *word = (type *)target, found = compare;
    switch (amo) {
    case GPUSHMEM_AMO_FETCH:
        return sizeof(T) == 8 ? (T)gpsh_dev_load64_value_sys(word)
                              : (T)gpsh_dev_load32_value_sys(word);
    case GPUSHMEM_AMO_SET:
    case GPUSHMEM_AMO_SWAP: return __atomic_exchange_n(word, operand, __ATOMIC_ACQ_REL);
    case GPUSHMEM_AMO_ADD: return __atomic_fetch_add(word, operand, __ATOMIC_ACQ_REL);
    case GPUSHMEM_AMO_CSWAP:
        __atomic_compare_exchange_n(word, &found, operand, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE);
        return found;
    case GPUSHMEM_AMO_AND: return __atomic_fetch_and(word, operand, __ATOMIC_ACQ_REL);
    case GPUSHMEM_AMO_OR: return __atomic_fetch_or(word, operand, __ATOMIC_ACQ_REL);
    case GPUSHMEM_AMO_XOR: return __atomic_fetch_xor(word, operand, __ATOMIC_ACQ_REL);
    default: return 0;
    }
#endif
}

// The same, nobody wants the previous value: a GPU does not wait for it then.
#if defined(__CUDA_ARCH__)
#define GPSH_DEV_RED(amo, what, bits)                                                              \
    case GPUSHMEM_AMO_##amo:                                                                       \
        asm volatile("red.relaxed.sys.global." what #bits " [%0], %1;" ::"l"(target),              \
                     GPSH_DEV_REGISTER##bits(operand)                                              \
                     : "memory");                                                                  \
        return;
#define GPSH_DEV_REDS(bits)                                                                        \
    switch (amo) {                                                                                 \
        GPSH_DEV_RED(ADD, "add.u", bits)                                                           \
        GPSH_DEV_RED(AND, "and.b", bits)                                                           \
        GPSH_DEV_RED(OR, "or.b", bits)                                                             \
        GPSH_DEV_RED(XOR, "xor.b", bits)                                                           \
    default: break;                                                                                \
    }
#else
#define GPSH_DEV_REDS(bits)
#endif
#define GPSH_DEV_REDUCE(bits)                                                                      \
    GPSH_DEV void gpsh_dev_reduce##bits(void *target, enum gpushmem_amo amo,                       \
                                        uint##bits##_t operand)                                    \
    {                                                                                              \
        GPSH_DEV_REDS(bits)                                                                        \
        gpsh_dev_atomic<uint##bits##_t>(target, amo, operand, 0);                                  \
    }
GPSH_DEV_REDUCE(64)
GPSH_DEV_REDUCE(32)

// ---- Time and patience ----

// Of the threads of a warp that execute this together, one; nothing may depend on which, or on how
// many there are.
GPSH_DEV bool gpsh_dev_is_first_here(void)
{
#if defined(__CUDA_ARCH__)
    unsigned before;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(before));
    return !(__activemask() & before);
#else
    return true;
#endif
}

// Whether no other thread of the warp executes this together with the caller. On the CPU every
// other time, so that both ways are taken there.
GPSH_DEV bool gpsh_dev_lane_is_alone(void)
{
#if defined(__CUDA_ARCH__)
    const unsigned here = __activemask();
    return !(here & (here - 1));
#else
    static thread_local bool alone;
    return alone = !alone;
#endif
}

// The threads of a warp that execute this together with the same word, as a mask. They go on
// together until they have met, and each calls the functions below in the same place.
GPSH_DEV unsigned gpsh_dev_lanes_with(const void *word)
{
#if defined(__CUDA_ARCH__)
    const unsigned mask = __match_any_sync(__activemask(), (unsigned long long)(uintptr_t)word);
    __builtin_assume(mask);
    return mask;
#else
    (void)word;
    return 1;
#endif
}

// Instead of such a mask, for a thread that has nobody to meet: what follows costs it nothing.
#define GPSH_LANE_ALONE 0u

GPSH_DEV unsigned gpsh_dev_lanes_size(unsigned mask)
{
#if defined(__CUDA_ARCH__)
    return mask ? (unsigned)__popc(mask) : 1;
#else
    (void)mask;
    return 1;
#endif
}

// The caller's place among them.
GPSH_DEV unsigned gpsh_dev_lanes_rank(unsigned mask)
{
#if defined(__CUDA_ARCH__)
    unsigned before;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(before));
    return (unsigned)__popc(mask & before);
#else
    (void)mask;
    return 0;
#endif
}

// What the first one, or the last one, brings.
GPSH_DEV uint64_t gpsh_dev_lanes_first(unsigned mask, uint64_t value)
{
#if defined(__CUDA_ARCH__)
    return mask ? __shfl_sync(mask, (unsigned long long)value, __ffs((int)mask) - 1) : value;
#else
    (void)mask;
    return value;
#endif
}

GPSH_DEV uint64_t gpsh_dev_lanes_last(unsigned mask, uint64_t value)
{
#if defined(__CUDA_ARCH__)
    return mask ? __shfl_sync(mask, (unsigned long long)value, 31 - __clz((int)mask)) : value;
#else
    (void)mask;
    return value;
#endif
}

GPSH_DEV bool gpsh_dev_lanes_any(unsigned mask, bool value)
{
#if defined(__CUDA_ARCH__)
    return mask ? __any_sync(mask, value) != 0 : value;
#else
    (void)mask;
    return value;
#endif
}

GPSH_DEV void gpsh_dev_lanes_meet(unsigned mask)
{
#if defined(__CUDA_ARCH__)
    if (mask)
        __syncwarp(mask);
#else
    (void)mask;
#endif
}

GPSH_DEV uint64_t gpsh_dev_now_ns(void)
{
#if defined(__CUDA_ARCH__)
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

// Gives way to others for a moment, when somebody else does the work.
GPSH_DEV void gpsh_dev_nap(void)
{
#if defined(__CUDA_ARCH__)
    __nanosleep(100);
#else
    sched_yield();
#endif
}

// A pause after a command, before the first look at its answer: a look that comes at once misses
// the answer, which is still on its way, and costs a whole PCIe round trip (median from command to
// answer: 3.0 us, with the pause 2.1; docs/design/kernels.md).
#if !defined(GPUSHMEM_TRAVEL_CLOCKS)
#define GPUSHMEM_TRAVEL_CLOCKS 450
#endif
GPSH_DEV void gpsh_dev_let_it_travel(void)
{
#if defined(__CUDA_ARCH__)
    for (long long begin = clock64(); clock64() - begin < GPUSHMEM_TRAVEL_CLOCKS;)
        ;
#endif
}

// One empty iteration of a spin. CPU threads give their core away soon: there may be more of them
// than cores, and the proxy that will end the wait needs one too.
GPSH_DEV void gpsh_dev_relax(uint32_t spins)
{
#if !defined(__CUDACC__)
    if (spins > 16)
        gpsh_emu_give_way(spins - 16);
#if defined(__x86_64__)
    else
        __builtin_ia32_pause();
#endif
#endif
}

#endif
