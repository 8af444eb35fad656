// SPDX-License-Identifier: BSD-3-Clause
// Loads past the first-level cache, which clang's CUDA headers lack. Included before all else where
// clang compiles libnvshmem_device.bc.
#define GPSH_CLANG_LOAD(TYPE, PTX, REGISTER, VALUE)                                                \
    static __device__ __forceinline__ TYPE __ldcg(const TYPE *from)                                \
    {                                                                                              \
        VALUE value;                                                                               \
        asm volatile("ld.global.cg." PTX " %0, [%1];"                                              \
                     : "=" REGISTER(value)                                                         \
                     : "l"(from)                                                                   \
                     : "memory");                                                                  \
        return (TYPE)value;                                                                        \
    }
GPSH_CLANG_LOAD(unsigned char, "u8", "r", unsigned)
GPSH_CLANG_LOAD(unsigned short, "u16", "h", unsigned short)
GPSH_CLANG_LOAD(unsigned, "u32", "r", unsigned)
GPSH_CLANG_LOAD(unsigned long long, "u64", "l", unsigned long long)
#undef GPSH_CLANG_LOAD

static __device__ __forceinline__ uint2 __ldcg(const uint2 *from)
{
    uint2 all;
    asm volatile("ld.global.cg.v2.u32 {%0, %1}, [%2];"
                 : "=r"(all.x), "=r"(all.y)
                 : "l"(from)
                 : "memory");
    return all;
}

static __device__ __forceinline__ uint4 __ldcg(const uint4 *from)
{
    uint4 all;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(all.x), "=r"(all.y), "=r"(all.z), "=r"(all.w)
                 : "l"(from)
                 : "memory");
    return all;
}
