// SPDX-License-Identifier: BSD-3-Clause
// OpenSHMEM's type-generic names for C11, included by shmem.h: made as those of gpushmem
// (gpushmem/impl/generic.h), whose macros choose by the first argument that points to a type.
#ifndef GPUSHMEM_COMPAT_IMPL_SHMEM_GENERIC_H
#define GPUSHMEM_COMPAT_IMPL_SHMEM_GENERIC_H

#include "gpushmem/compat/shmem.h"
#include "gpushmem/impl/generic.h"

// clang-format off
#define GPSHM_DISTINCT_INTEGER_TYPES(X, A, B) GPUSHMEM_DISTINCT_COLL_BITWISE_TYPES(X, A, B)
#define GPSHM_DISTINCT_ORDERED_TYPES(X, A, B) \
    X(float, float, A, B) \
    X(double, double, A, B) \
    X(longdouble, long double, A, B) \
    GPSHM_DISTINCT_INTEGER_TYPES(X, A, B)
#define GPSHM_DISTINCT_ARITHMETIC_TYPES(X, A, B) \
    X(complexf, gpushmem_complexf, A, B) \
    X(complexd, gpushmem_complexd, A, B) \
    GPSHM_DISTINCT_ORDERED_TYPES(X, A, B)

#define GPSHM_CHOOSE_CTX(TYPES, SUFFIX, ...) \
    _Generic((GPUSHMEM_FIRST(__VA_ARGS__)), \
        shmem_ctx_t: GPUSHMEM_CHOOSE(TYPES, gpushmem_no_function_for_this_type, shmem_ctx_, \
                                     SUFFIX, GPUSHMEM_SECOND(__VA_ARGS__)), \
        default: GPUSHMEM_CHOOSE(TYPES, gpushmem_no_function_for_this_type, shmem_, SUFFIX, \
                                 GPUSHMEM_FIRST(__VA_ARGS__)))(__VA_ARGS__)
#define GPSHM_RMA(SUFFIX, ...)  GPSHM_CHOOSE_CTX(GPSHM_DISTINCT_ORDERED_TYPES, SUFFIX, __VA_ARGS__)
#define GPSHM_AMO(SUFFIX, ...)  GPSHM_CHOOSE_CTX(GPUSHMEM_DISTINCT_AMO_TYPES, SUFFIX, __VA_ARGS__)
#define GPSHM_EXTENDED(SUFFIX, ...) \
    GPSHM_CHOOSE_CTX(GPUSHMEM_DISTINCT_AMO_EXTENDED_TYPES, SUFFIX, __VA_ARGS__)
#define GPSHM_BITS(SUFFIX, ...) \
    GPSHM_CHOOSE_CTX(GPUSHMEM_DISTINCT_AMO_BITWISE_TYPES, SUFFIX, __VA_ARGS__)
#define GPSHM_OLD_CHOICE(TYPES, SUFFIX, ...) \
    GPUSHMEM_CHOOSE(TYPES, gpushmem_no_function_for_this_type, shmem_, SUFFIX, \
                    GPUSHMEM_FIRST(__VA_ARGS__))(__VA_ARGS__)
#define GPSHM_WORDS(SUFFIX, ...) \
    _Generic((GPUSHMEM_FIRST(__VA_ARGS__)), \
        GPUSHMEM_DISTINCT_SYNC_TYPES(GPUSHMEM_SYNC_CASE, shmem_, SUFFIX) \
        default: gpushmem_no_function_for_this_type)(__VA_ARGS__)
#define GPSHM_COLL(TYPES, SUFFIX, ...) \
    GPUSHMEM_CHOOSE(TYPES, gpushmem_no_function_for_this_type, shmem_, SUFFIX, \
                    GPUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
// clang-format on

#define shmem_put(...)            GPSHM_RMA(_put, __VA_ARGS__)
#define shmem_get(...)            GPSHM_RMA(_get, __VA_ARGS__)
#define shmem_p(...)              GPSHM_RMA(_p, __VA_ARGS__)
#define shmem_g(...)              GPSHM_RMA(_g, __VA_ARGS__)
#define shmem_iput(...)           GPSHM_RMA(_iput, __VA_ARGS__)
#define shmem_iget(...)           GPSHM_RMA(_iget, __VA_ARGS__)
#define shmem_ibput(...)          GPSHM_RMA(_ibput, __VA_ARGS__)
#define shmem_ibget(...)          GPSHM_RMA(_ibget, __VA_ARGS__)
#define shmem_put_nbi(...)        GPSHM_RMA(_put_nbi, __VA_ARGS__)
#define shmem_get_nbi(...)        GPSHM_RMA(_get_nbi, __VA_ARGS__)
#define shmem_put_signal(...)     GPSHM_RMA(_put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) GPSHM_RMA(_put_signal_nbi, __VA_ARGS__)

// With a context or without.
#define GPSHM_PLAIN(NAME, ...)                                                                     \
    _Generic((GPUSHMEM_FIRST(__VA_ARGS__)), shmem_ctx_t                                            \
             : shmem_ctx_##NAME, default                                                           \
             : shmem_##NAME)(__VA_ARGS__)
#define shmem_signal_set(...) GPSHM_PLAIN(signal_set, __VA_ARGS__)
#define shmem_signal_add(...) GPSHM_PLAIN(signal_add, __VA_ARGS__)

#define shmem_atomic_fetch(...)            GPSHM_EXTENDED(_atomic_fetch, __VA_ARGS__)
#define shmem_atomic_set(...)              GPSHM_EXTENDED(_atomic_set, __VA_ARGS__)
#define shmem_atomic_swap(...)             GPSHM_EXTENDED(_atomic_swap, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...)        GPSHM_EXTENDED(_atomic_fetch_nbi, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...)         GPSHM_EXTENDED(_atomic_swap_nbi, __VA_ARGS__)
#define shmem_atomic_compare_swap(...)     GPSHM_AMO(_atomic_compare_swap, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...)        GPSHM_AMO(_atomic_fetch_inc, __VA_ARGS__)
#define shmem_atomic_inc(...)              GPSHM_AMO(_atomic_inc, __VA_ARGS__)
#define shmem_atomic_fetch_add(...)        GPSHM_AMO(_atomic_fetch_add, __VA_ARGS__)
#define shmem_atomic_add(...)              GPSHM_AMO(_atomic_add, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...) GPSHM_AMO(_atomic_compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...)    GPSHM_AMO(_atomic_fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...)    GPSHM_AMO(_atomic_fetch_add_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_and(...)        GPSHM_BITS(_atomic_fetch_and, __VA_ARGS__)
#define shmem_atomic_and(...)              GPSHM_BITS(_atomic_and, __VA_ARGS__)
#define shmem_atomic_fetch_or(...)         GPSHM_BITS(_atomic_fetch_or, __VA_ARGS__)
#define shmem_atomic_or(...)               GPSHM_BITS(_atomic_or, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...)        GPSHM_BITS(_atomic_fetch_xor, __VA_ARGS__)
#define shmem_atomic_xor(...)              GPSHM_BITS(_atomic_xor, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...)    GPSHM_BITS(_atomic_fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...)     GPSHM_BITS(_atomic_fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...)    GPSHM_BITS(_atomic_fetch_xor_nbi, __VA_ARGS__)

#define shmem_wait_until(...)             GPSHM_WORDS(_wait_until, __VA_ARGS__)
#define shmem_wait_until_all(...)         GPSHM_WORDS(_wait_until_all, __VA_ARGS__)
#define shmem_wait_until_any(...)         GPSHM_WORDS(_wait_until_any, __VA_ARGS__)
#define shmem_wait_until_some(...)        GPSHM_WORDS(_wait_until_some, __VA_ARGS__)
#define shmem_wait_until_all_vector(...)  GPSHM_WORDS(_wait_until_all_vector, __VA_ARGS__)
#define shmem_wait_until_any_vector(...)  GPSHM_WORDS(_wait_until_any_vector, __VA_ARGS__)
#define shmem_wait_until_some_vector(...) GPSHM_WORDS(_wait_until_some_vector, __VA_ARGS__)
#define shmem_test(...)                   GPSHM_WORDS(_test, __VA_ARGS__)
#define shmem_test_all(...)               GPSHM_WORDS(_test_all, __VA_ARGS__)
#define shmem_test_any(...)               GPSHM_WORDS(_test_any, __VA_ARGS__)
#define shmem_test_some(...)              GPSHM_WORDS(_test_some, __VA_ARGS__)
#define shmem_test_all_vector(...)        GPSHM_WORDS(_test_all_vector, __VA_ARGS__)
#define shmem_test_any_vector(...)        GPSHM_WORDS(_test_any_vector, __VA_ARGS__)
#define shmem_test_some_vector(...)       GPSHM_WORDS(_test_some_vector, __VA_ARGS__)

#define shmem_broadcast(...)  GPSHM_COLL(GPSHM_DISTINCT_ORDERED_TYPES, _broadcast, __VA_ARGS__)
#define shmem_collect(...)    GPSHM_COLL(GPSHM_DISTINCT_ORDERED_TYPES, _collect, __VA_ARGS__)
#define shmem_fcollect(...)   GPSHM_COLL(GPSHM_DISTINCT_ORDERED_TYPES, _fcollect, __VA_ARGS__)
#define shmem_alltoall(...)   GPSHM_COLL(GPSHM_DISTINCT_ORDERED_TYPES, _alltoall, __VA_ARGS__)
#define shmem_alltoalls(...)  GPSHM_COLL(GPSHM_DISTINCT_ORDERED_TYPES, _alltoalls, __VA_ARGS__)
#define shmem_and_reduce(...) GPSHM_COLL(GPSHM_DISTINCT_INTEGER_TYPES, _and_reduce, __VA_ARGS__)
#define shmem_or_reduce(...)  GPSHM_COLL(GPSHM_DISTINCT_INTEGER_TYPES, _or_reduce, __VA_ARGS__)
#define shmem_xor_reduce(...) GPSHM_COLL(GPSHM_DISTINCT_INTEGER_TYPES, _xor_reduce, __VA_ARGS__)
#define shmem_min_reduce(...) GPSHM_COLL(GPSHM_DISTINCT_ORDERED_TYPES, _min_reduce, __VA_ARGS__)
#define shmem_max_reduce(...) GPSHM_COLL(GPSHM_DISTINCT_ORDERED_TYPES, _max_reduce, __VA_ARGS__)
#define shmem_sum_reduce(...) GPSHM_COLL(GPSHM_DISTINCT_ARITHMETIC_TYPES, _sum_reduce, __VA_ARGS__)
#define shmem_prod_reduce(...)                                                                     \
    GPSHM_COLL(GPSHM_DISTINCT_ARITHMETIC_TYPES, _prod_reduce, __VA_ARGS__)
#define shmem_sum_inscan(...) GPSHM_COLL(GPSHM_DISTINCT_ARITHMETIC_TYPES, _sum_inscan, __VA_ARGS__)
#define shmem_sum_exscan(...) GPSHM_COLL(GPSHM_DISTINCT_ARITHMETIC_TYPES, _sum_exscan, __VA_ARGS__)

// One argument: a team. Four: an active set and its pSync.
#define GPSHM_SYNC_CHOICE(a, b, c, d, FUNCTION, ...) FUNCTION
#define shmem_sync(...)                                                                            \
    GPSHM_SYNC_CHOICE(__VA_ARGS__, shmem_sync, 0, 0, shmem_team_sync, 0)(__VA_ARGS__)

// Deprecated.
#define shmem_fetch(...) GPSHM_OLD_CHOICE(GPUSHMEM_DISTINCT_AMO_EXTENDED_TYPES, _fetch, __VA_ARGS__)
#define shmem_set(...)   GPSHM_OLD_CHOICE(GPUSHMEM_DISTINCT_AMO_EXTENDED_TYPES, _set, __VA_ARGS__)
#define shmem_swap(...)  GPSHM_OLD_CHOICE(GPUSHMEM_DISTINCT_AMO_EXTENDED_TYPES, _swap, __VA_ARGS__)
#define shmem_cswap(...) GPSHM_OLD_CHOICE(GPUSHMEM_DISTINCT_AMO_TYPES, _cswap, __VA_ARGS__)
#define shmem_finc(...)  GPSHM_OLD_CHOICE(GPUSHMEM_DISTINCT_AMO_TYPES, _finc, __VA_ARGS__)
#define shmem_fadd(...)  GPSHM_OLD_CHOICE(GPUSHMEM_DISTINCT_AMO_TYPES, _fadd, __VA_ARGS__)
#define shmem_inc(...)   GPSHM_OLD_CHOICE(GPUSHMEM_DISTINCT_AMO_TYPES, _inc, __VA_ARGS__)
#define shmem_add(...)   GPSHM_OLD_CHOICE(GPUSHMEM_DISTINCT_AMO_TYPES, _add, __VA_ARGS__)

#endif
