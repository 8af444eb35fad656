// SPDX-License-Identifier: BSD-3-Clause
// The same calls by the type of their pointers (C++): gpushmem_dev_put(dest, source, nelems, pe) is
// gpushmem_dev_int_put if both point to int. Contracts: gpushmem/device.cuh.
#ifndef GPUSHMEM_DEVICE_API_GENERIC_CUH
#define GPUSHMEM_DEVICE_API_GENERIC_CUH

#include "gpushmem/device/api.cuh"
#include "gpushmem/device/path_warp.cuh"
#include "gpushmem/impl/distinct_types.h"

// Which types a family of calls has, so that a wrong one ends in one sentence.
template <typename T> constexpr bool gpsh_dev_in_rma = false;
template <typename T> constexpr bool gpsh_dev_in_extended = false;
template <typename T> constexpr bool gpsh_dev_in_amo = false;
template <typename T> constexpr bool gpsh_dev_in_bitwise = false;
template <typename T> constexpr bool gpsh_dev_in_sync = false;
#define GPSH_IS(NAME, TYPE, FAMILY, B) template <> constexpr bool gpsh_dev_in_##FAMILY<TYPE> = true;
GPUSHMEM_DISTINCT_RMA_TYPES(GPSH_IS, rma, )
GPUSHMEM_DISTINCT_AMO_EXTENDED_TYPES(GPSH_IS, extended, )
GPUSHMEM_DISTINCT_AMO_TYPES(GPSH_IS, amo, )
GPUSHMEM_DISTINCT_AMO_BITWISE_TYPES(GPSH_IS, bitwise, )
GPUSHMEM_DISTINCT_SYNC_TYPES(GPSH_IS, sync, )
#undef GPSH_IS

// A parameter that does not take part in finding T: a value may be of another arithmetic type.
template <typename T> struct gpsh_dev_same {
    typedef T type;
};

#define GPSH_WANTS_RMA                                                                             \
    static_assert(gpsh_dev_in_rma<T>, "gpushmem: elements of this type have no put and get; "      \
                                      "gpushmem_dev_putmem and gpushmem_dev_getmem take any "      \
                                      "type and count bytes")
#define GPSH_WANTS(FAMILY)                                                                         \
    static_assert(gpsh_dev_in_##FAMILY<T>,                                                         \
                  "gpushmem: this call has no form for words of this type; see gpushmem/types.h")

// GPSH_API for a template over the element type T.
#define GPSH_GENERIC(RESULT, NAME, PARAMETERS, ARGUMENTS, CHECK, ...)                              \
    template <typename T>                                                                          \
    GPSH_DEV RESULT NAME(const struct gpushmem_dev &dev, GPSH_LIST PARAMETERS)                     \
    {                                                                                              \
        CHECK;                                                                                     \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    template <typename T> GPSH_DEV RESULT NAME(GPSH_LIST PARAMETERS)                               \
    {                                                                                              \
        return NAME<T>(GPSH_DEV_IMPLICIT, GPSH_LIST ARGUMENTS);                                    \
    }

// GPSH_API_CTX for a template, where a context may come first.
#define GPSH_GENERIC_CTX(RESULT, NAME, PARAMETERS, ARGUMENTS, CHECK, ...)                          \
    GPSH_GENERIC(RESULT, NAME, PARAMETERS, ARGUMENTS, CHECK, GPSH_VIA_DEFAULT; __VA_ARGS__)        \
    GPSH_GENERIC(RESULT, NAME, (struct gpushmem_dev_ctx ctx, GPSH_LIST PARAMETERS),                \
                 (ctx, GPSH_LIST ARGUMENTS), CHECK, GPSH_VIA(RESULT, ctx);                         \
                 __VA_ARGS__)

// ---- Put and get ----

#define GPSH_GENERIC_ONE(SUFFIX, SCOPE, NAME, FORM)                                                \
    GPSH_GENERIC_CTX(void, gpushmem_dev_##NAME##SUFFIX,                                            \
                     (GPSH_P_##FORM(T, enum gpushmem_signal_op)),                                  \
                     (GPSH_A_##FORM(dest, source, sig_op)), GPSH_WANTS_RMA,                        \
                     GPSH_DO_##NAME(SCOPE, dev, via, sizeof(T)))
#define GPSH_GENERIC_MOVE(VERB, REST, FORM, UNUSED) GPSH_SCOPES(GPSH_GENERIC_ONE, VERB##REST, FORM)
GPSH_MOVES(GPSH_GENERIC_MOVE, )
GPSH_STRIDED_MOVES(GPSH_GENERIC_MOVE, )
#undef GPSH_GENERIC_MOVE
#undef GPSH_GENERIC_ONE

GPSH_GENERIC_CTX(void, gpushmem_dev_p, (T * dest, typename gpsh_dev_same<T>::type value, int pe),
                 (dest, value, pe), GPSH_WANTS_RMA,
                 gpsh_dev_put_value(dev, via, dest, gpsh_dev_to_bits<T>(value), sizeof(T), pe))
GPSH_GENERIC_CTX(void, gpushmem_dev_p_warp,
                 (T * dest, typename gpsh_dev_same<T>::type value, int pe), (dest, value, pe),
                 GPSH_WANTS_RMA,
                 gpsh_dev_put_value_warp(dev, via, dest, gpsh_dev_to_bits<T>(value), sizeof(T), pe))
GPSH_GENERIC_CTX(T, gpushmem_dev_g, (const T *source, int pe), (source, pe), GPSH_WANTS_RMA,
                 return gpsh_dev_from_bits<T>(gpsh_dev_get_value(dev, via, source, sizeof(T), pe)))

// ---- Atomics ----

// The parameters of each form.
#define GPSH_G_WORD  const T *source, int pe
#define GPSH_G_COUNT T *dest, int pe
#define GPSH_G_VALUE T *dest, typename gpsh_dev_same<T>::type value, int pe
#define GPSH_G_COMPARE                                                                             \
    T *dest, typename gpsh_dev_same<T>::type cond, typename gpsh_dev_same<T>::type value, int pe
#define GPSH_GENERIC_FETCH(NAME, FORM, OP, FAMILY)                                                 \
    GPSH_GENERIC_CTX(T, gpushmem_dev_atomic_##NAME, (GPSH_G_##FORM),                               \
                     (GPSH_A_##FORM(dest, source, )), GPSH_WANTS(FAMILY),                          \
                     return GPSH_DO_##FORM(dev, via, GPUSHMEM_AMO_##OP, T, true))
#define GPSH_GENERIC_UPDATE(NAME, FORM, OP, FAMILY)                                                \
    GPSH_GENERIC_CTX(void, gpushmem_dev_atomic_##NAME, (GPSH_G_##FORM),                            \
                     (GPSH_A_##FORM(dest, source, )), GPSH_WANTS(FAMILY),                          \
                     GPSH_DO_##FORM(dev, via, GPUSHMEM_AMO_##OP, T, false))
GPSH_EXTENDED_ATOMICS(GPSH_GENERIC_FETCH, GPSH_GENERIC_UPDATE, extended)
GPSH_ATOMICS(GPSH_GENERIC_FETCH, GPSH_GENERIC_UPDATE, amo)
GPSH_BITWISE_ATOMICS(GPSH_GENERIC_FETCH, GPSH_GENERIC_UPDATE, bitwise)
#undef GPSH_GENERIC_UPDATE
#undef GPSH_GENERIC_FETCH
#undef GPSH_G_COMPARE
#undef GPSH_G_VALUE
#undef GPSH_G_COUNT
#undef GPSH_G_WORD

// ---- Waiting; the words may be volatile ----

#define GPSH_WORD (const T *)var
GPSH_GENERIC(int, gpushmem_dev_wait_until,
             (const volatile T *var, enum gpushmem_cmp cmp, typename gpsh_dev_same<T>::type value),
             (var, cmp, value), GPSH_WANTS(sync),
             return gpsh_dev_wait_status<T>(dev, GPSH_WORD, cmp, value))
GPSH_GENERIC(int, gpushmem_dev_test,
             (const volatile T *var, enum gpushmem_cmp cmp, typename gpsh_dev_same<T>::type value),
             (var, cmp, value), GPSH_WANTS(sync),
             return gpsh_dev_test<T>(dev, GPSH_WORD, cmp, value))
#undef GPSH_WORD

#define GPSH_GENERIC_SET(RESULT, NAME, CALL)                                                       \
    GPSH_GENERIC(RESULT, NAME,                                                                     \
                 (const volatile T *vars, size_t nelems, const int *status, enum gpushmem_cmp cmp, \
                  typename gpsh_dev_same<T>::type value),                                          \
                 (vars, nelems, status, cmp, value), GPSH_WANTS(sync), return CALL)
#define GPSH_SET                                                                                   \
    gpsh_dev_words<T>                                                                              \
    {                                                                                              \
        (const T *)vars, nelems, status, cmp, value, nullptr                                       \
    }
GPSH_GENERIC_SET(int, gpushmem_dev_wait_until_all, gpsh_dev_wait_all<T>(dev, GPSH_SET))
GPSH_GENERIC_SET(size_t, gpushmem_dev_wait_until_any, gpsh_dev_wait_any<T>(dev, GPSH_SET))
GPSH_GENERIC_SET(int, gpushmem_dev_test_all, gpsh_dev_words_test_all<T>(dev, GPSH_SET))
GPSH_GENERIC_SET(size_t, gpushmem_dev_test_any, gpsh_dev_test_any<T>(dev, GPSH_SET))
#undef GPSH_SET
#undef GPSH_GENERIC_SET
#undef GPSH_WANTS
#undef GPSH_WANTS_RMA
#undef GPSH_GENERIC_CTX
#undef GPSH_GENERIC

#endif
