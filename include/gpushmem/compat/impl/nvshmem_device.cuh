// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM's functions of kernels over ours, included by nvshmem.h where kernels can be compiled.
// For each row GPSH_NVS_BOTH of nvshmem_rows.h there is a function gpsh_dev_NAME here, which that
// row's function calls in kernels; what kernels alone have, such as the forms of warps and blocks,
// has its public name. Each is one call of the bodies that gpushmem_dev_... is made of, so it
// compiles to the same instructions. docs/design/compatibility.md
#ifndef GPUSHMEM_COMPAT_IMPL_NVSHMEM_DEVICE_CUH
#define GPUSHMEM_COMPAT_IMPL_NVSHMEM_DEVICE_CUH

#if !defined(__CUDACC__)
#include "gpushmem/device/emu_cuda.hpp" // before all that has kernels in it
#endif

// functions made from one pattern do not use every parameter
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

#if defined(GPUSHMEM_NVSHMEM_DEVICE_LIBRARY)
// the functions alone (runtime/nvshmem/device/library.py)
#elif defined(__CUDACC__)
// Programs expect it of nvshmem.h. Without the parts that take cuda::atomic it costs a tenth: a
// program that wants these includes it before.
#define _CG_LIMIT_INCLUDED_DEPENDENCIES
#include <cooperative_groups.h>
#undef _CG_LIMIT_INCLUDED_DEPENDENCIES
#else
#include "gpushmem/compat/impl/nvshmem_emu_launch.hpp"
#include "gpushmem/device/launch.cuh"
#endif

#include "gpushmem/compat/impl/nvshmem_device_state.cuh"
#include "gpushmem/compat/impl/nvshmem_types.h"
#include "gpushmem/device/api.cuh"
#include "gpushmem/impl/coll_types.h"

// clang-format off
#define GPSH_NV nvshmemi_device_state_d

// nvcc compiles a file twice. Where it compiles the host's side, kernels need the names of these
// functions alone (GPSH_NV_FUNCTION), and of device halves nothing (GPSH_NV_HALF).
// GPSH_NV_SCOPES: X(PREFIX, SUFFIX, SCOPE, arguments...): the name of a function is PREFIX name
// SUFFIX. The one of threads is the device half of a name that the host has, too.
#define GPSH_NV_GROUPS(X, ...) \
    X(nvshmemx_, _warp, gpsh_scope_warp, __VA_ARGS__) \
    X(nvshmemx_, _block, gpsh_scope_block, __VA_ARGS__)
// Of functions that kernels alone have, all three.
#define GPSH_NV_ALL_SCOPES(X, ...) \
    X(, , gpsh_scope_thread, __VA_ARGS__) \
    GPSH_NV_GROUPS(X, __VA_ARGS__)
#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)
#define GPSH_NV_FUNCTION(RESULT, NAME, PARAMETERS, ...) __device__ RESULT NAME PARAMETERS;
#define GPSH_NV_HALF(RESULT, NAME, PARAMETERS, ...)
#define GPSH_NV_SCOPES GPSH_NV_GROUPS
#else
#define GPSH_NV_FUNCTION(RESULT, NAME, PARAMETERS, ...) GPSH_DEV RESULT NAME PARAMETERS __VA_ARGS__
#define GPSH_NV_HALF(RESULT, NAME, PARAMETERS, ...) GPSH_DEV RESULT NAME PARAMETERS __VA_ARGS__
#define GPSH_NV_SCOPES(X, ...) \
    X(gpsh_dev_nvshmem_, , gpsh_scope_thread, __VA_ARGS__) \
    GPSH_NV_GROUPS(X, __VA_ARGS__)
#endif

// ---- Put and get ----

#define GPSH_NV_MOVE(PREFIX, SUFFIX, SCOPE, NAME, DO, FORM, TYPE, SIZE) \
    GPSH_NV_FUNCTION(void, PREFIX##NAME##SUFFIX, (GPSH_P_##FORM(TYPE, int)), { \
        GPSH_DO_##DO(SCOPE, GPSH_NV, GPSH_NV, SIZE); \
    })
#define GPSH_NV_TYPED(VERB, REST, FORM, NAME, TYPE) \
    GPSH_NV_SCOPES(GPSH_NV_MOVE, NAME##_##VERB##REST, VERB##REST, FORM, TYPE, sizeof(TYPE))
#define GPSH_NV_SIZED(VERB, REST, FORM, BITS, SIZE) \
    GPSH_NV_SCOPES(GPSH_NV_MOVE, VERB##BITS##REST, VERB##REST, FORM, void, SIZE)

#define GPSH_NV_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_NV_HALF(void, gpsh_dev_nvshmem_##NAME##_p, (TYPE *dest, const TYPE value, int pe), { \
        gpsh_dev_put_value(GPSH_NV, GPSH_NV, dest, gpsh_dev_to_bits(value), sizeof value, pe); \
    }) \
    GPSH_NV_HALF(TYPE, gpsh_dev_nvshmem_##NAME##_g, (const TYPE *source, int pe), { \
        return gpsh_dev_from_bits<TYPE>( \
            gpsh_dev_get_value(GPSH_NV, GPSH_NV, source, sizeof *source, pe)); \
    }) \
    GPSH_MOVES(GPSH_NV_TYPED, NAME, TYPE) \
    GPSH_STRIDED_MOVES(GPSH_NV_TYPED, NAME, TYPE)
GPSH_NVS_RMA_TYPES(GPSH_NV_ROWS)
#undef GPSH_NV_ROWS
#define GPSH_NV_ROWS(BITS) \
    GPSH_MOVES(GPSH_NV_SIZED, BITS, BITS / 8) \
    GPSH_STRIDED_MOVES(GPSH_NV_SIZED, BITS, BITS / 8)
GPUSHMEM_RMA_SIZES(GPSH_NV_ROWS)
#undef GPSH_NV_ROWS
GPSH_MOVES(GPSH_NV_SIZED, mem, 1)
#undef GPSH_NV_SIZED
#undef GPSH_NV_TYPED
#undef GPSH_NV_MOVE

// ---- Atomics ----

#define GPSH_NV_UPDATE(OP, FORM, NUMBER, NAME, TYPE) \
    GPSH_NV_HALF(void, gpsh_dev_nvshmem_##NAME##_atomic_##OP, (GPSH_P_##FORM(TYPE, )), { \
        GPSH_DO_##FORM(GPSH_NV, GPSH_NV, GPUSHMEM_AMO_##NUMBER, TYPE, false); \
    })
#define GPSH_NV_FETCH(OP, FORM, NUMBER, NAME, TYPE) \
    GPSH_NV_HALF(TYPE, gpsh_dev_nvshmem_##NAME##_atomic_##OP, (GPSH_P_##FORM(TYPE, )), { \
        return GPSH_DO_##FORM(GPSH_NV, GPSH_NV, GPUSHMEM_AMO_##NUMBER, TYPE, true); \
    })
#define GPSH_NV_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_EXTENDED_ATOMICS(GPSH_NV_FETCH, GPSH_NV_UPDATE, NAME, TYPE)
GPSH_NVS_AMO_EXTENDED_TYPES(GPSH_NV_ROWS)
#undef GPSH_NV_ROWS
#define GPSH_NV_ROWS(NAME, TYPE, AS, CTYPE) GPSH_ATOMICS(GPSH_NV_FETCH, GPSH_NV_UPDATE, NAME, TYPE)
GPSH_NVS_AMO_TYPES(GPSH_NV_ROWS)
#undef GPSH_NV_ROWS
#define GPSH_NV_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_BITWISE_ATOMICS(GPSH_NV_FETCH, GPSH_NV_UPDATE, NAME, TYPE)
GPSH_NVS_AMO_BITWISE_TYPES(GPSH_NV_ROWS)
#undef GPSH_NV_ROWS
#undef GPSH_NV_FETCH
#undef GPSH_NV_UPDATE

// Sums of floating point values in kernels: no transport adds them, so the word is compared and
// swapped until nobody came between. They return the value before, and 0 where a fetch failed. A
// half is part of a word of 4 bytes.
template <typename Bits, typename Add>
GPSH_DEV Bits gpsh_dev_nvshmem_float_add(Bits *word, int pe, Add add)
{
    Bits before =
        gpsh_dev_amo_typed<Bits>(GPSH_NV, GPSH_NV, GPUSHMEM_AMO_FETCH, word, 0, 0, pe, true);
    for (Bits expected = ~before; expected != before;) {
        expected = before;
        before = gpsh_dev_amo_typed<Bits>(GPSH_NV, GPSH_NV, GPUSHMEM_AMO_CSWAP, word,
                                          add(expected), expected, pe, true);
        if (before != expected && gpsh_dev_load32_relaxed_sys(&GPSH_NV.control->abort))
            break; // waits have ended, and fetches return 0
    }
    return before;
}
template <typename T, typename Bits> struct gpsh_nvshmem_add {
    T value;
    __device__ Bits operator()(Bits bits) const
    {
        return (Bits)gpsh_dev_to_bits(gpsh_dev_from_bits<T>(bits) + value);
    }
};
struct gpsh_nvshmem_add_half {
    float value;
    unsigned shift; // of the half in its word
    __device__ uint32_t operator()(uint32_t bits) const
    {
        float sum = gpsh_dev_half_value((uint16_t)(bits >> shift)) + value;
        return (bits & ~((uint32_t)0xffff << shift)) | (uint32_t)gpsh_dev_half_bits(sum) << shift;
    }
};
GPSH_DEV float gpsh_dev_nvshmem_add(float *dest, float value, int pe)
{
    return gpsh_dev_from_bits<float>(gpsh_dev_nvshmem_float_add(
        (uint32_t *)dest, pe, gpsh_nvshmem_add<float, uint32_t>{value}));
}
GPSH_DEV double gpsh_dev_nvshmem_add(double *dest, double value, int pe)
{
    return gpsh_dev_from_bits<double>(gpsh_dev_nvshmem_float_add(
        (uint64_t *)dest, pe, gpsh_nvshmem_add<double, uint64_t>{value}));
}
GPSH_DEV gpsh_nvshmem_half gpsh_dev_nvshmem_add(gpsh_nvshmem_half *dest, gpsh_nvshmem_half value,
                                                int pe)
{
    const unsigned shift = (unsigned)((uintptr_t)dest & 2) * 8;
    uint32_t before = gpsh_dev_nvshmem_float_add(
        (uint32_t *)((uintptr_t)dest & ~(uintptr_t)3), pe,
        gpsh_nvshmem_add_half{gpsh_dev_half_value((uint16_t)gpsh_dev_to_bits(value)), shift});
    return gpsh_dev_from_bits<gpsh_nvshmem_half>((uint16_t)(before >> shift));
}
#define GPSH_NV_ROWS(NAME, TYPE) \
    GPSH_NV_HALF(TYPE, gpsh_dev_nvshmemx_##NAME##_atomic_fetch_add, \
                 (TYPE *dest, TYPE value, int pe), { \
        return gpsh_dev_nvshmem_add(dest, value, pe); \
    }) \
    GPSH_NV_HALF(void, gpsh_dev_nvshmemx_##NAME##_atomic_add, (TYPE *dest, TYPE value, int pe), { \
        gpsh_dev_nvshmem_add(dest, value, pe); \
    })
GPSH_NV_ROWS(half, gpsh_nvshmem_half)
GPSH_NV_ROWS(float, float)
GPSH_NV_ROWS(double, double)
#undef GPSH_NV_ROWS
// The same by the names of the others.
#define GPSH_NV_ROWS(NAME, TYPE) \
    GPSH_NV_FUNCTION(TYPE, nvshmem_##NAME##_atomic_fetch_add, \
                     (TYPE *dest, TYPE value, int pe), { \
        return gpsh_dev_nvshmem_add(dest, value, pe); \
    }) \
    GPSH_NV_FUNCTION(void, nvshmem_##NAME##_atomic_add, (TYPE *dest, TYPE value, int pe), { \
        gpsh_dev_nvshmem_add(dest, value, pe); \
    }) \
    GPSH_NV_FUNCTION(TYPE, nvshmem_##NAME##_atomic_compare_swap, \
                     (TYPE *dest, TYPE cond, TYPE value, int pe), { \
        return gpsh_dev_amo_typed<TYPE>(GPSH_NV, GPSH_NV, GPUSHMEM_AMO_CSWAP, dest, value, cond, \
                                        pe, true); \
    })
GPSH_NV_ROWS(float, float)
GPSH_NV_ROWS(double, double)
#undef GPSH_NV_ROWS

// ---- Signals ----

GPSH_NV_HALF(void, gpsh_dev_nvshmemx_signal_op,
             (uint64_t *sig_addr, uint64_t signal, int sig_op, int pe), {
    gpsh_dev_signal(GPSH_NV, GPSH_NV, sig_addr, signal, sig_op, pe);
})
GPSH_NV_HALF(uint64_t, gpsh_dev_nvshmem_signal_fetch, (const uint64_t *sig_addr), {
    return gpsh_dev_load_acquire(sig_addr);
})
GPSH_NV_HALF(uint64_t, gpsh_dev_nvshmem_signal_wait_until,
             (const uint64_t *sig_addr, int cmp, uint64_t cmp_value), {
    return gpsh_dev_wait_value<uint64_t>(GPSH_NV, sig_addr, cmp, cmp_value);
})
GPSH_NV_HALF(void, gpsh_dev_nvshmemx_signal_counted_reset, (uint64_t *sig_addr), {
    gpsh_dev_amo_typed<uint64_t>(GPSH_NV, GPSH_NV, GPUSHMEM_AMO_SET, sig_addr, 0, 0, GPSH_NV.my_pe,
                                 false);
})
// The signal of releases before 2.6: a word of any type, set.
#define GPSH_NV_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_NV_FUNCTION(void, nvshmemx_##NAME##_signal, (TYPE *dest, const TYPE value, int pe), { \
        gpsh_dev_amo_typed<TYPE>(GPSH_NV, GPSH_NV, GPUSHMEM_AMO_SET, dest, value, (TYPE)0, pe, \
                                 false); \
    })
GPSH_NVS_AMO_EXTENDED_TYPES(GPSH_NV_ROWS)
#undef GPSH_NV_ROWS

// ---- Waits and tests ----

// One comparison value for all words, and (vector) one for each.
#define GPSH_NV_RESULT_wait_until_all  void
#define GPSH_NV_RESULT_wait_until_any  size_t
#define GPSH_NV_RESULT_wait_until_some size_t
#define GPSH_NV_RESULT_test_all        int
#define GPSH_NV_RESULT_test_any        size_t
#define GPSH_NV_RESULT_test_some       size_t
#define GPSH_NV_WORDS(VERB, WHICH, FORM, NAME, TYPE, VECTOR, VALUE, WORDS) \
    GPSH_NV_HALF(GPSH_NV_RESULT_##VERB##_##WHICH, \
                 gpsh_dev_nvshmem_##NAME##_##VERB##_##WHICH##VECTOR, \
                 (GPSH_P_##FORM(TYPE *ivars, int, VALUE)), { \
        return (GPSH_NV_RESULT_##VERB##_##WHICH)GPSH_DO_##VERB##_##WHICH(GPSH_NV, TYPE, WORDS); \
    })
#define GPSH_NV_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_NV_HALF(void, gpsh_dev_nvshmem_##NAME##_wait_until, \
                 (TYPE *ivar, int cmp, TYPE cmp_value), { \
        gpsh_dev_wait_status<TYPE>(GPSH_NV, ivar, cmp, cmp_value); \
    }) \
    GPSH_NV_HALF(int, gpsh_dev_nvshmem_##NAME##_test, (TYPE *ivar, int cmp, TYPE cmp_value), { \
        return gpsh_dev_test<TYPE>(GPSH_NV, ivar, cmp, cmp_value); \
    }) \
    GPSH_WAITS(GPSH_NV_WORDS, NAME, TYPE, , TYPE cmp_value, \
               (gpsh_dev_words<TYPE>{ivars, nelems, status, cmp, cmp_value, nullptr})) \
    GPSH_WAITS(GPSH_NV_WORDS, NAME, TYPE, _vector, const TYPE *cmp_values, \
               (gpsh_dev_words<TYPE>{ivars, nelems, status, cmp, (TYPE)0, cmp_values}))
GPSH_NVS_SYNC_TYPES(GPSH_NV_ROWS)
#undef GPSH_NV_ROWS
#undef GPSH_NV_WORDS

// ---- This PE, teams, addresses ----

GPSH_NV_HALF(int, gpsh_dev_nvshmem_my_pe, (void), {
    return GPSH_NV.my_pe;
})
GPSH_NV_HALF(int, gpsh_dev_nvshmem_n_pes, (void), {
    return GPSH_NV.n_pes;
})
GPSH_NV_HALF(void *, gpsh_dev_nvshmem_ptr, (const void *dest, int pe), {
    return gpsh_dev_ptr(GPSH_NV, dest, pe);
})
// There are no multicast addresses.
GPSH_NV_HALF(void *, gpsh_dev_nvshmemx_mc_ptr, (nvshmem_team_t team, const void *ptr), {
    return nullptr;
})
GPSH_DEV int gpsh_dev_nvshmem_team_my_pe(nvshmem_team_t team)
{
    const struct gpushmem_dev_team *entry = gpsh_dev_team_entry(GPSH_NV, team);
    return entry ? entry->my_rank : -1;
}
GPSH_DEV int gpsh_dev_nvshmem_team_n_pes(nvshmem_team_t team)
{
    const struct gpushmem_dev_team *entry = gpsh_dev_team_entry(GPSH_NV, team);
    return entry ? entry->n : -1;
}
GPSH_NV_HALF(int, gpsh_dev_nvshmem_team_translate_pe,
             (nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team), {
    const struct gpushmem_dev_team *from = gpsh_dev_team_entry(GPSH_NV, src_team),
                                   *to = gpsh_dev_team_entry(GPSH_NV, dest_team);
    if (!from || !to || (unsigned)src_pe >= (unsigned)from->n)
        return -1;
    for (int rank = 0; rank < to->n; rank++)
        if (to->pes[rank] == from->pes[src_pe])
            return rank;
    return -1;
})

GPSH_NV_HALF(void, gpsh_dev_nvshmem_info_get_version, (int *major, int *minor), {
    if (major)
        *major = NVSHMEM_MAJOR_VERSION;
    if (minor)
        *minor = NVSHMEM_MINOR_VERSION;
})
GPSH_NV_HALF(void, gpsh_dev_nvshmemx_vendor_get_version_info,
             (int *major, int *minor, int *patch), {
    if (major)
        *major = NVSHMEM_VENDOR_MAJOR_VERSION;
    if (minor)
        *minor = NVSHMEM_VENDOR_MINOR_VERSION;
    if (patch)
        *patch = NVSHMEM_VENDOR_PATCH_VERSION;
})
GPSH_NV_HALF(void, gpsh_dev_nvshmem_info_get_name, (char *name), {
    const char *text = NVSHMEM_VENDOR_STRING;
    for (size_t i = 0; name && (i == 0 || text[i - 1]); i++)
        name[i] = text[i];
})

// ---- Order, completion, barriers ----

GPSH_NV_HALF(void, gpsh_dev_nvshmem_fence, (void), {
    gpsh_dev_fence(GPSH_NV, GPSH_NV);
})
GPSH_NV_HALF(void, gpsh_dev_nvshmem_quiet, (void), {
    gpsh_dev_quiet(GPSH_NV, GPSH_NV);
})

// Sources of nonblocking puts may be written again. Stores have read theirs by then; what went
// through rings is waited for.
template <class Scope> GPSH_DEV void gpsh_dev_nvshmem_flush_by(void)
{
    Scope::sync();
    if (!(GPSH_NV.flags & GPUSHMEM_DEV_ALL_DIRECT) && Scope::rank() == 0)
        gpsh_dev_quiet_away(GPSH_NV);
    Scope::sync();
}
GPSH_NV_HALF(void, gpsh_dev_nvshmemx_flush, (void), {
    gpsh_dev_nvshmem_flush_by<gpsh_scope_thread>();
})
GPSH_NV_FUNCTION(void, nvshmemx_flush_warp, (void), {
    gpsh_dev_nvshmem_flush_by<gpsh_scope_warp>();
})
GPSH_NV_FUNCTION(void, nvshmemx_flush_block, (void), {
    gpsh_dev_nvshmem_flush_by<gpsh_scope_block>();
})

// Commands of all threads share the doorbells of the proxy's passes in any case: a region is known,
// and changes nothing. Shared memory comes with anything in it.
#define GPSH_NV_IN_REGION 0x6e7673686d656d72ull
#if defined(__CUDACC__)
#define GPSH_NV_REGION __shared__ uint64_t gpsh_region
#else
#define GPSH_NV_REGION \
    static char gpsh_region_key; \
    uint64_t &gpsh_region = *(uint64_t *)gpsh_emu_shared(&gpsh_region_key, sizeof(uint64_t))
#endif
template <int UNUSED> GPSH_DEV uint64_t *gpsh_dev_nvshmem_region(void)
{
    GPSH_NV_REGION;
    return &gpsh_region;
}
GPSH_DEV void gpsh_dev_nvshmem_region_is(uint64_t value)
{
    gpsh_scope_block::sync();
    if (gpsh_scope_block::rank() == 0)
        *gpsh_dev_nvshmem_region<0>() = value;
    gpsh_scope_block::sync();
}
GPSH_NV_FUNCTION(int, nvshmemx_region_start_block, (unsigned int hints), {
    gpsh_dev_nvshmem_region_is(GPSH_NV_IN_REGION);
    return 0;
})
GPSH_NV_FUNCTION(int, nvshmemx_region_stop_block, (void), {
    gpsh_dev_nvshmem_region_is(0);
    return 0;
})
GPSH_NV_HALF(int, gpsh_dev_nvshmemx_region_is_active, (void), {
    return *gpsh_dev_nvshmem_region<0>() == GPSH_NV_IN_REGION;
})
#undef GPSH_NV_REGION

#define GPSH_NV_MEET(PREFIX, SUFFIX, SCOPE, UNUSED) \
    GPSH_NV_FUNCTION(void, PREFIX##barrier_all##SUFFIX, (void), { \
        gpsh_dev_barrier_all<SCOPE>(GPSH_NV); \
    }) \
    GPSH_NV_FUNCTION(void, PREFIX##sync_all##SUFFIX, (void), { \
        gpsh_dev_sync_all<SCOPE>(GPSH_NV); \
    }) \
    GPSH_NV_FUNCTION(int, PREFIX##barrier##SUFFIX, (nvshmem_team_t team), { \
        return gpsh_dev_team_meet<SCOPE>(GPSH_NV, team, true); \
    }) \
    GPSH_NV_FUNCTION(int, PREFIX##sync##SUFFIX, (nvshmem_team_t team), { \
        return gpsh_dev_team_meet<SCOPE>(GPSH_NV, team, false); \
    }) \
    GPSH_NV_FUNCTION(int, PREFIX##team_sync##SUFFIX, (nvshmem_team_t team), { \
        return gpsh_dev_team_meet<SCOPE>(GPSH_NV, team, false); \
    })
GPSH_NV_SCOPES(GPSH_NV_MEET, )
#undef GPSH_NV_MEET

// Four warps; one thread of them speaks for all. Its status is what it returns, the others' is 0.
GPSH_NV_FUNCTION(int, nvshmemx_barrier_warpgroup, (nvshmem_team_t team), {
    int status = 0;
    gpsh_scope_warpgroup::sync();
    if (gpsh_scope_warpgroup::rank() == 0)
        status = gpsh_dev_team_meet<gpsh_scope_thread>(GPSH_NV, team, true);
    gpsh_scope_warpgroup::sync();
    return status;
})
GPSH_NV_FUNCTION(void, nvshmemx_barrier_all_warpgroup, (void), {
    gpsh_dev_barrier_all<gpsh_scope_warpgroup>(GPSH_NV);
})

// ---- Collectives ----

#define GPSH_NV_COPY(PREFIX, SUFFIX, SCOPE, NAME, KIND, FORM, TYPE, WIDTH) \
    GPSH_NV_FUNCTION(int, PREFIX##NAME##SUFFIX, (nvshmem_team_t team, GPSH_P_##FORM(TYPE, )), { \
        return GPSH_DO_##FORM(SCOPE, GPSH_NV, KIND, WIDTH); \
    })
#define GPSH_NV_COPY_OF(OP, KIND, FORM, NAME, TYPE) \
    GPSH_NV_SCOPES(GPSH_NV_COPY, NAME##_##OP, KIND, FORM, TYPE, sizeof(TYPE))
#define GPSH_NV_COPY_MEM(OP, KIND, FORM, UNUSED) \
    GPSH_NV_SCOPES(GPSH_NV_COPY, OP##mem, KIND, FORM, void, 1)
#define GPSH_NV_ROWS(NAME, TYPE, AS, CTYPE) GPSH_COLL_MOVES_OF_NVSHMEM(GPSH_NV_COPY_OF, NAME, TYPE)
GPSH_NVS_RMA_TYPES(GPSH_NV_ROWS)
#undef GPSH_NV_ROWS
GPSH_COLL_MOVES_OF_NVSHMEM(GPSH_NV_COPY_MEM, )
#undef GPSH_NV_COPY_MEM
#undef GPSH_NV_COPY_OF
#undef GPSH_NV_COPY

#define GPSH_NV_FOLD(PREFIX, SUFFIX, SCOPE, NAME, KIND, TYPE, NUMBER, FOLD) \
    GPSH_NV_FUNCTION(int, PREFIX##NAME##SUFFIX, (nvshmem_team_t team, GPSH_P_PART(TYPE, )), { \
        return GPSH_DO_FOLD(SCOPE, GPSH_NV, KIND, sizeof(TYPE), NUMBER, FOLD); \
    })
#define GPSH_NV_FOLD_OF(OP, KIND, FOLD, NAME, TYPE, NUMBER) \
    GPSH_NV_SCOPES(GPSH_NV_FOLD, NAME##_##OP, KIND, TYPE, NUMBER, FOLD)
#define GPSH_NV_ALL(NAME, TYPE, NUMBER) \
    GPSH_COLLS_OF_ORDER(GPSH_NV_FOLD_OF, NAME, TYPE, NUMBER) \
    GPSH_FOLDS_OF_SUMS(GPSH_REDUCES, GPSH_NV_FOLD_OF, NAME, TYPE, NUMBER)
#define GPSH_NV_BITS(NAME, TYPE, NUMBER) GPSH_COLLS_OF_BITS(GPSH_NV_FOLD_OF, NAME, TYPE, NUMBER)
GPSH_NV_ALL(bfloat16, gpsh_nvshmem_bfloat16, GPUSHMEM_COLL_BFLOAT16)
GPSH_NV_ALL(half, gpsh_nvshmem_half, GPUSHMEM_COLL_HALF)
GPSH_NV_ALL(float, float, GPUSHMEM_COLL_FLOAT)
GPSH_NV_ALL(double, double, GPUSHMEM_COLL_DOUBLE)
GPUSHMEM_COLL_INTEGERS(GPSH_NV_ALL)
GPUSHMEM_COLL_INTEGERS(GPSH_NV_BITS)
#undef GPSH_NV_BITS
#undef GPSH_NV_ALL
#undef GPSH_NV_FOLD_OF
#undef GPSH_NV_FOLD
GPSH_NV_FUNCTION(int, nvshmemx_double2_maxloc_reduce_block,
                 (nvshmem_team_t team, double2 *dest, const double2 *source, size_t nelems), {
    return GPSH_DO_FOLD(gpsh_scope_block, GPSH_NV, REDUCE, sizeof(double2), GPUSHMEM_COLL_COMPLEXD,
                        MAX);
})

#include "gpushmem/compat/impl/nvshmem_device_qp.cuh"
#include "gpushmem/compat/impl/nvshmem_device_tile.cuh"

#undef GPSH_NV_SCOPES
#undef GPSH_NV_ALL_SCOPES
#undef GPSH_NV_GROUPS
#undef GPSH_NV_HALF
#undef GPSH_NV_FUNCTION
// clang-format on

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
