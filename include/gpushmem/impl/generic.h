// SPDX-License-Identifier: BSD-3-Clause
// Type-generic names for C11, included by gpushmem.h: gpushmem_put(dest, source, nelems, pe) is
// gpushmem_int_put if dest points to int. A context may come first, as in OpenSHMEM:
// gpushmem_put(ctx, dest, source, nelems, pe). The first argument after the context chooses the
// function; a type without one is a compile-time error that names one of the two functions below,
// which exist for their names only.
#ifndef GPUSHMEM_IMPL_GENERIC_H
#define GPUSHMEM_IMPL_GENERIC_H

#include "gpushmem/gpushmem.h"
#include "gpushmem/impl/distinct_types.h"

void gpushmem_no_function_for_this_type(void);
void gpushmem_no_function_for_this_type_use_putmem_or_getmem(void);

#define GPUSHMEM_FIRST_(first, ...)          first
#define GPUSHMEM_FIRST(...)                  GPUSHMEM_FIRST_(__VA_ARGS__, 0)
#define GPUSHMEM_SECOND_(first, second, ...) second
#define GPUSHMEM_SECOND(...)                 GPUSHMEM_SECOND_(__VA_ARGS__, 0, 0)

// clang-format off
#define GPUSHMEM_CASE(NAME, TYPE, PREFIX, SUFFIX) \
    TYPE *: PREFIX##NAME##SUFFIX, const TYPE *: PREFIX##NAME##SUFFIX,

// OTHERWISE is what the compiler names when the type has no function.
#define GPUSHMEM_CHOOSE(TYPES, OTHERWISE, PREFIX, SUFFIX, argument) \
    _Generic((argument), TYPES(GPUSHMEM_CASE, PREFIX, SUFFIX) default: OTHERWISE)

#define GPUSHMEM_CHOOSE_CTX(TYPES, OTHERWISE, SUFFIX, ...) \
    _Generic((GPUSHMEM_FIRST(__VA_ARGS__)), \
        gpushmem_ctx_t: GPUSHMEM_CHOOSE(TYPES, OTHERWISE, gpushmem_ctx_, SUFFIX, \
                                        GPUSHMEM_SECOND(__VA_ARGS__)), \
        default: GPUSHMEM_CHOOSE(TYPES, OTHERWISE, gpushmem_, SUFFIX, \
                                 GPUSHMEM_FIRST(__VA_ARGS__)))(__VA_ARGS__)

#define GPUSHMEM_RMA(SUFFIX, ...) \
    GPUSHMEM_CHOOSE_CTX(GPUSHMEM_DISTINCT_RMA_TYPES, \
                        gpushmem_no_function_for_this_type_use_putmem_or_getmem, SUFFIX, \
                        __VA_ARGS__)
#define GPUSHMEM_AMO(SUFFIX, ...) \
    GPUSHMEM_CHOOSE_CTX(GPUSHMEM_DISTINCT_AMO_TYPES, gpushmem_no_function_for_this_type, SUFFIX, \
                        __VA_ARGS__)
#define GPUSHMEM_EXTENDED(SUFFIX, ...) \
    GPUSHMEM_CHOOSE_CTX(GPUSHMEM_DISTINCT_AMO_EXTENDED_TYPES, \
                        gpushmem_no_function_for_this_type, SUFFIX, __VA_ARGS__)
#define GPUSHMEM_BITWISE(SUFFIX, ...) \
    GPUSHMEM_CHOOSE_CTX(GPUSHMEM_DISTINCT_AMO_BITWISE_TYPES, \
                        gpushmem_no_function_for_this_type, SUFFIX, __VA_ARGS__)

// Words that are waited for may be declared volatile.
#define GPUSHMEM_SYNC_CASE(NAME, TYPE, PREFIX, SUFFIX)                                \
    TYPE *: PREFIX##NAME##SUFFIX, const TYPE *: PREFIX##NAME##SUFFIX,                 \
    volatile TYPE *: PREFIX##NAME##SUFFIX, const volatile TYPE *: PREFIX##NAME##SUFFIX,
#define GPUSHMEM_STREAM(SUFFIX, ...) \
    GPUSHMEM_CHOOSE(GPUSHMEM_DISTINCT_RMA_TYPES, \
                    gpushmem_no_function_for_this_type_use_putmem_or_getmem, gpushmem_, \
                    SUFFIX, GPUSHMEM_FIRST(__VA_ARGS__))(__VA_ARGS__)
#define GPUSHMEM_SYNC(SUFFIX, ...)                                                    \
    _Generic((GPUSHMEM_FIRST(__VA_ARGS__)),                                           \
        GPUSHMEM_DISTINCT_SYNC_TYPES(GPUSHMEM_SYNC_CASE, gpushmem_, SUFFIX)           \
        default: gpushmem_no_function_for_this_type)(__VA_ARGS__)

// Collective operations: a team, then dest, which chooses.
#define GPUSHMEM_COLL(TYPES, SUFFIX, ...) \
    GPUSHMEM_CHOOSE(TYPES, gpushmem_no_function_for_this_type, gpushmem_, SUFFIX, \
                    GPUSHMEM_SECOND(__VA_ARGS__))(__VA_ARGS__)
#define GPUSHMEM_COLL_MOVE(SUFFIX, ...) \
    GPUSHMEM_COLL(GPUSHMEM_DISTINCT_RMA_TYPES, SUFFIX, __VA_ARGS__)
#define GPUSHMEM_COLL_BITWISE(SUFFIX, ...) \
    GPUSHMEM_COLL(GPUSHMEM_DISTINCT_COLL_BITWISE_TYPES, SUFFIX, __VA_ARGS__)
#define GPUSHMEM_COLL_ORDERED(SUFFIX, ...) \
    GPUSHMEM_COLL(GPUSHMEM_DISTINCT_COLL_ORDERED_TYPES, SUFFIX, __VA_ARGS__)
#define GPUSHMEM_COLL_ANY(SUFFIX, ...) \
    GPUSHMEM_COLL(GPUSHMEM_DISTINCT_COLL_TYPES, SUFFIX, __VA_ARGS__)

// Functions without a type, with an optional context.
#define GPUSHMEM_PLAIN(NAME, ...)                                                     \
    _Generic((GPUSHMEM_FIRST(__VA_ARGS__)), \
        gpushmem_ctx_t: gpushmem_ctx_##NAME, default: gpushmem_##NAME)(__VA_ARGS__)
// clang-format on

#define gpushmem_put(...)            GPUSHMEM_RMA(_put, __VA_ARGS__)
#define gpushmem_get(...)            GPUSHMEM_RMA(_get, __VA_ARGS__)
#define gpushmem_p(...)              GPUSHMEM_RMA(_p, __VA_ARGS__)
#define gpushmem_g(...)              GPUSHMEM_RMA(_g, __VA_ARGS__)
#define gpushmem_iput(...)           GPUSHMEM_RMA(_iput, __VA_ARGS__)
#define gpushmem_ibput(...)          GPUSHMEM_RMA(_ibput, __VA_ARGS__)
#define gpushmem_iget(...)           GPUSHMEM_RMA(_iget, __VA_ARGS__)
#define gpushmem_ibget(...)          GPUSHMEM_RMA(_ibget, __VA_ARGS__)
#define gpushmem_put_nbi(...)        GPUSHMEM_RMA(_put_nbi, __VA_ARGS__)
#define gpushmem_get_nbi(...)        GPUSHMEM_RMA(_get_nbi, __VA_ARGS__)
#define gpushmem_put_signal(...)     GPUSHMEM_RMA(_put_signal, __VA_ARGS__)
#define gpushmem_put_signal_nbi(...) GPUSHMEM_RMA(_put_signal_nbi, __VA_ARGS__)
#define gpushmem_signal_op(...)      GPUSHMEM_PLAIN(signal_op, __VA_ARGS__)
#define gpushmem_signal_set(...)     GPUSHMEM_PLAIN(signal_set, __VA_ARGS__)
#define gpushmem_signal_add(...)     GPUSHMEM_PLAIN(signal_add, __VA_ARGS__)

#define gpushmem_put_on_stream(...)        GPUSHMEM_STREAM(_put_on_stream, __VA_ARGS__)
#define gpushmem_get_on_stream(...)        GPUSHMEM_STREAM(_get_on_stream, __VA_ARGS__)
#define gpushmem_put_signal_on_stream(...) GPUSHMEM_STREAM(_put_signal_on_stream, __VA_ARGS__)
#define gpushmem_p_on_stream(...)          GPUSHMEM_STREAM(_p_on_stream, __VA_ARGS__)
#define gpushmem_g_on_stream(...)          GPUSHMEM_STREAM(_g_on_stream, __VA_ARGS__)
#define gpushmem_iput_on_stream(...)       GPUSHMEM_STREAM(_iput_on_stream, __VA_ARGS__)
#define gpushmem_iget_on_stream(...)       GPUSHMEM_STREAM(_iget_on_stream, __VA_ARGS__)

#define gpushmem_atomic_fetch(...)            GPUSHMEM_EXTENDED(_atomic_fetch, __VA_ARGS__)
#define gpushmem_atomic_set(...)              GPUSHMEM_EXTENDED(_atomic_set, __VA_ARGS__)
#define gpushmem_atomic_swap(...)             GPUSHMEM_EXTENDED(_atomic_swap, __VA_ARGS__)
#define gpushmem_atomic_fetch_nbi(...)        GPUSHMEM_EXTENDED(_atomic_fetch_nbi, __VA_ARGS__)
#define gpushmem_atomic_swap_nbi(...)         GPUSHMEM_EXTENDED(_atomic_swap_nbi, __VA_ARGS__)
#define gpushmem_atomic_compare_swap(...)     GPUSHMEM_AMO(_atomic_compare_swap, __VA_ARGS__)
#define gpushmem_atomic_fetch_inc(...)        GPUSHMEM_AMO(_atomic_fetch_inc, __VA_ARGS__)
#define gpushmem_atomic_inc(...)              GPUSHMEM_AMO(_atomic_inc, __VA_ARGS__)
#define gpushmem_atomic_fetch_add(...)        GPUSHMEM_AMO(_atomic_fetch_add, __VA_ARGS__)
#define gpushmem_atomic_add(...)              GPUSHMEM_AMO(_atomic_add, __VA_ARGS__)
#define gpushmem_atomic_compare_swap_nbi(...) GPUSHMEM_AMO(_atomic_compare_swap_nbi, __VA_ARGS__)
#define gpushmem_atomic_fetch_inc_nbi(...)    GPUSHMEM_AMO(_atomic_fetch_inc_nbi, __VA_ARGS__)
#define gpushmem_atomic_fetch_add_nbi(...)    GPUSHMEM_AMO(_atomic_fetch_add_nbi, __VA_ARGS__)
#define gpushmem_atomic_fetch_and(...)        GPUSHMEM_BITWISE(_atomic_fetch_and, __VA_ARGS__)
#define gpushmem_atomic_and(...)              GPUSHMEM_BITWISE(_atomic_and, __VA_ARGS__)
#define gpushmem_atomic_fetch_or(...)         GPUSHMEM_BITWISE(_atomic_fetch_or, __VA_ARGS__)
#define gpushmem_atomic_or(...)               GPUSHMEM_BITWISE(_atomic_or, __VA_ARGS__)
#define gpushmem_atomic_fetch_xor(...)        GPUSHMEM_BITWISE(_atomic_fetch_xor, __VA_ARGS__)
#define gpushmem_atomic_xor(...)              GPUSHMEM_BITWISE(_atomic_xor, __VA_ARGS__)
#define gpushmem_atomic_fetch_and_nbi(...)    GPUSHMEM_BITWISE(_atomic_fetch_and_nbi, __VA_ARGS__)
#define gpushmem_atomic_fetch_or_nbi(...)     GPUSHMEM_BITWISE(_atomic_fetch_or_nbi, __VA_ARGS__)
#define gpushmem_atomic_fetch_xor_nbi(...)    GPUSHMEM_BITWISE(_atomic_fetch_xor_nbi, __VA_ARGS__)

#define gpushmem_atomic_fetch_status(...) GPUSHMEM_EXTENDED(_atomic_fetch_status, __VA_ARGS__)
#define gpushmem_atomic_swap_status(...)  GPUSHMEM_EXTENDED(_atomic_swap_status, __VA_ARGS__)
#define gpushmem_atomic_compare_swap_status(...)                                                   \
    GPUSHMEM_AMO(_atomic_compare_swap_status, __VA_ARGS__)
#define gpushmem_atomic_fetch_inc_status(...) GPUSHMEM_AMO(_atomic_fetch_inc_status, __VA_ARGS__)
#define gpushmem_atomic_fetch_add_status(...) GPUSHMEM_AMO(_atomic_fetch_add_status, __VA_ARGS__)
#define gpushmem_atomic_fetch_and_status(...)                                                      \
    GPUSHMEM_BITWISE(_atomic_fetch_and_status, __VA_ARGS__)
#define gpushmem_atomic_fetch_or_status(...) GPUSHMEM_BITWISE(_atomic_fetch_or_status, __VA_ARGS__)
#define gpushmem_atomic_fetch_xor_status(...)                                                      \
    GPUSHMEM_BITWISE(_atomic_fetch_xor_status, __VA_ARGS__)

#define gpushmem_wait_until(...)             GPUSHMEM_SYNC(_wait_until, __VA_ARGS__)
#define gpushmem_wait_until_all(...)         GPUSHMEM_SYNC(_wait_until_all, __VA_ARGS__)
#define gpushmem_wait_until_any(...)         GPUSHMEM_SYNC(_wait_until_any, __VA_ARGS__)
#define gpushmem_wait_until_any_status(...)  GPUSHMEM_SYNC(_wait_until_any_status, __VA_ARGS__)
#define gpushmem_wait_until_some(...)        GPUSHMEM_SYNC(_wait_until_some, __VA_ARGS__)
#define gpushmem_wait_until_some_status(...) GPUSHMEM_SYNC(_wait_until_some_status, __VA_ARGS__)
#define gpushmem_wait_until_all_vector(...)  GPUSHMEM_SYNC(_wait_until_all_vector, __VA_ARGS__)
#define gpushmem_wait_until_any_vector(...)  GPUSHMEM_SYNC(_wait_until_any_vector, __VA_ARGS__)
#define gpushmem_wait_until_any_vector_status(...)                                                 \
    GPUSHMEM_SYNC(_wait_until_any_vector_status, __VA_ARGS__)
#define gpushmem_wait_until_some_vector(...) GPUSHMEM_SYNC(_wait_until_some_vector, __VA_ARGS__)
#define gpushmem_wait_until_some_vector_status(...)                                                \
    GPUSHMEM_SYNC(_wait_until_some_vector_status, __VA_ARGS__)
#define gpushmem_test(...)                    GPUSHMEM_SYNC(_test, __VA_ARGS__)
#define gpushmem_test_all(...)                GPUSHMEM_SYNC(_test_all, __VA_ARGS__)
#define gpushmem_test_any(...)                GPUSHMEM_SYNC(_test_any, __VA_ARGS__)
#define gpushmem_test_any_status(...)         GPUSHMEM_SYNC(_test_any_status, __VA_ARGS__)
#define gpushmem_test_some(...)               GPUSHMEM_SYNC(_test_some, __VA_ARGS__)
#define gpushmem_test_some_status(...)        GPUSHMEM_SYNC(_test_some_status, __VA_ARGS__)
#define gpushmem_test_all_vector(...)         GPUSHMEM_SYNC(_test_all_vector, __VA_ARGS__)
#define gpushmem_test_any_vector(...)         GPUSHMEM_SYNC(_test_any_vector, __VA_ARGS__)
#define gpushmem_test_any_vector_status(...)  GPUSHMEM_SYNC(_test_any_vector_status, __VA_ARGS__)
#define gpushmem_test_some_vector(...)        GPUSHMEM_SYNC(_test_some_vector, __VA_ARGS__)
#define gpushmem_test_some_vector_status(...) GPUSHMEM_SYNC(_test_some_vector_status, __VA_ARGS__)

#define gpushmem_broadcast(...)          GPUSHMEM_COLL_MOVE(_broadcast, __VA_ARGS__)
#define gpushmem_collect(...)            GPUSHMEM_COLL_MOVE(_collect, __VA_ARGS__)
#define gpushmem_fcollect(...)           GPUSHMEM_COLL_MOVE(_fcollect, __VA_ARGS__)
#define gpushmem_alltoall(...)           GPUSHMEM_COLL_MOVE(_alltoall, __VA_ARGS__)
#define gpushmem_alltoalls(...)          GPUSHMEM_COLL_MOVE(_alltoalls, __VA_ARGS__)
#define gpushmem_and_reduce(...)         GPUSHMEM_COLL_BITWISE(_and_reduce, __VA_ARGS__)
#define gpushmem_and_reducescatter(...)  GPUSHMEM_COLL_BITWISE(_and_reducescatter, __VA_ARGS__)
#define gpushmem_or_reduce(...)          GPUSHMEM_COLL_BITWISE(_or_reduce, __VA_ARGS__)
#define gpushmem_or_reducescatter(...)   GPUSHMEM_COLL_BITWISE(_or_reducescatter, __VA_ARGS__)
#define gpushmem_xor_reduce(...)         GPUSHMEM_COLL_BITWISE(_xor_reduce, __VA_ARGS__)
#define gpushmem_xor_reducescatter(...)  GPUSHMEM_COLL_BITWISE(_xor_reducescatter, __VA_ARGS__)
#define gpushmem_min_reduce(...)         GPUSHMEM_COLL_ORDERED(_min_reduce, __VA_ARGS__)
#define gpushmem_min_reducescatter(...)  GPUSHMEM_COLL_ORDERED(_min_reducescatter, __VA_ARGS__)
#define gpushmem_max_reduce(...)         GPUSHMEM_COLL_ORDERED(_max_reduce, __VA_ARGS__)
#define gpushmem_max_reducescatter(...)  GPUSHMEM_COLL_ORDERED(_max_reducescatter, __VA_ARGS__)
#define gpushmem_sum_reduce(...)         GPUSHMEM_COLL_ANY(_sum_reduce, __VA_ARGS__)
#define gpushmem_sum_reducescatter(...)  GPUSHMEM_COLL_ANY(_sum_reducescatter, __VA_ARGS__)
#define gpushmem_prod_reduce(...)        GPUSHMEM_COLL_ANY(_prod_reduce, __VA_ARGS__)
#define gpushmem_prod_reducescatter(...) GPUSHMEM_COLL_ANY(_prod_reducescatter, __VA_ARGS__)
#define gpushmem_sum_inscan(...)         GPUSHMEM_COLL_ANY(_sum_inscan, __VA_ARGS__)
#define gpushmem_sum_exscan(...)         GPUSHMEM_COLL_ANY(_sum_exscan, __VA_ARGS__)

#endif
