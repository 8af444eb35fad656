// SPDX-License-Identifier: BSD-3-Clause
// Overloads for C++, included by gpushmem.h: gpushmem_put(dest, source, nelems, pe) and the like
// for every element type, with an optional context first. The counterpart of generic.h.
#ifndef GPUSHMEM_IMPL_OVERLOADS_HPP
#define GPUSHMEM_IMPL_OVERLOADS_HPP

#include "gpushmem/gpushmem.h"
#include "gpushmem/impl/distinct_types.h"
#include "gpushmem/impl/signatures.h"

// Two overloads, gpushmem_OP(...) and gpushmem_OP(ctx, ...), of gpushmem_NAME_OP and
// gpushmem_ctx_NAME_OP. PARAMETERS and ARGUMENTS are parenthesised lists.
#define GPUSHMEM_OVERLOAD_PLAIN(RETURN, NAME, OP, PARAMETERS, ARGUMENTS)                           \
    inline RETURN gpushmem_##OP(GPSH_LIST PARAMETERS)                                              \
    {                                                                                              \
        return gpushmem_##NAME##_##OP(GPSH_LIST ARGUMENTS);                                        \
    }
#define GPUSHMEM_OVERLOAD(RETURN, NAME, OP, PARAMETERS, ARGUMENTS)                                 \
    GPUSHMEM_OVERLOAD_PLAIN(RETURN, NAME, OP, PARAMETERS, ARGUMENTS)                               \
    inline RETURN gpushmem_##OP(gpushmem_ctx_t ctx, GPSH_LIST PARAMETERS)                          \
    {                                                                                              \
        return gpushmem_ctx_##NAME##_##OP(ctx, GPSH_LIST ARGUMENTS);                               \
    }
// The same of one form of gpushmem/impl/signatures.h.
#define GPUSHMEM_OVERLOAD_FORM(RETURN, NAME, OP, FORM, TYPE)                                       \
    GPUSHMEM_OVERLOAD(RETURN, NAME, OP, (GPSH_P_##FORM(TYPE, enum gpushmem_signal_op)),            \
                      (GPSH_A_##FORM(dest, source, sig_op)))

#define GPUSHMEM_OVERLOAD_MOVE(VERB, REST, FORM, NAME, TYPE)                                       \
    GPUSHMEM_OVERLOAD_FORM(int, NAME, VERB##REST, FORM, TYPE)
#define GPUSHMEM_OVERLOAD_RMA(NAME, TYPE, A, B)                                                    \
    GPSH_MOVES(GPUSHMEM_OVERLOAD_MOVE, NAME, TYPE)                                                 \
    GPSH_STRIDED_MOVES(GPUSHMEM_OVERLOAD_MOVE, NAME, TYPE)                                         \
    GPSH_BLOCKED_MOVES(GPUSHMEM_OVERLOAD_MOVE, NAME, TYPE)                                         \
    GPUSHMEM_OVERLOAD_FORM(int, NAME, p, VALUE, TYPE)                                              \
    GPUSHMEM_OVERLOAD_FORM(TYPE, NAME, g, WORD, TYPE)
GPUSHMEM_DISTINCT_RMA_TYPES(GPUSHMEM_OVERLOAD_RMA, , )

// What returns the value before has forms that return a status, and that return at once, besides.
#define GPUSHMEM_OVERLOAD_FETCH(OP, FORM, NUMBER, NAME, TYPE)                                      \
    GPUSHMEM_OVERLOAD_FORM(TYPE, NAME, atomic_##OP, FORM, TYPE)                                    \
    GPUSHMEM_OVERLOAD(int, NAME, atomic_##OP##_status, (GPSH_P_##FORM(TYPE, ), TYPE * before),     \
                      (GPSH_A_##FORM(dest, source, ), before))                                     \
    GPUSHMEM_OVERLOAD(int, NAME, atomic_##OP##_nbi, (TYPE * fetch, GPSH_P_##FORM(TYPE, )),         \
                      (fetch, GPSH_A_##FORM(dest, source, )))
#define GPUSHMEM_OVERLOAD_UPDATE(OP, FORM, NUMBER, NAME, TYPE)                                     \
    GPUSHMEM_OVERLOAD_FORM(int, NAME, atomic_##OP, FORM, TYPE)
#define GPUSHMEM_OVERLOAD_EXTENDED(NAME, TYPE, A, B)                                               \
    GPSH_EXTENDED_ATOMICS(GPUSHMEM_OVERLOAD_FETCH, GPUSHMEM_OVERLOAD_UPDATE, NAME, TYPE)
#define GPUSHMEM_OVERLOAD_AMO(NAME, TYPE, A, B)                                                    \
    GPSH_ATOMICS(GPUSHMEM_OVERLOAD_FETCH, GPUSHMEM_OVERLOAD_UPDATE, NAME, TYPE)
#define GPUSHMEM_OVERLOAD_BITWISE(NAME, TYPE, A, B)                                                \
    GPSH_BITWISE_ATOMICS(GPUSHMEM_OVERLOAD_FETCH, GPUSHMEM_OVERLOAD_UPDATE, NAME, TYPE)
GPUSHMEM_DISTINCT_AMO_EXTENDED_TYPES(GPUSHMEM_OVERLOAD_EXTENDED, , )
GPUSHMEM_DISTINCT_AMO_TYPES(GPUSHMEM_OVERLOAD_AMO, , )
GPUSHMEM_DISTINCT_AMO_BITWISE_TYPES(GPUSHMEM_OVERLOAD_BITWISE, , )

// Waiting and testing has no context. The result of _all is a status; those of _any and _some have
// forms that return one.
#define GPUSHMEM_OVERLOAD_WORDS(RETURN, NAME, OP, FORM, TYPE, VALUE, value)                        \
    GPUSHMEM_OVERLOAD_PLAIN(RETURN, NAME, OP,                                                      \
                            (GPSH_P_##FORM(const volatile TYPE *vars, enum gpushmem_cmp, VALUE)),  \
                            (GPSH_A_##FORM(vars, cmp, value)))
#define GPUSHMEM_OVERLOAD_WORDS_STATUS(NAME, OP, FORM, TYPE, VALUE, value)                         \
    GPUSHMEM_OVERLOAD_PLAIN(                                                                       \
        int, NAME, OP##_status,                                                                    \
        (GPSH_P_##FORM(const volatile TYPE *vars, enum gpushmem_cmp, VALUE), size_t * result),     \
        (GPSH_A_##FORM(vars, cmp, value), result))
#define GPUSHMEM_OVERLOAD_all(OP, FORM, NAME, ...)                                                 \
    GPUSHMEM_OVERLOAD_WORDS(int, NAME, OP, FORM, __VA_ARGS__)
#define GPUSHMEM_OVERLOAD_any(OP, FORM, NAME, ...)                                                 \
    GPUSHMEM_OVERLOAD_WORDS(size_t, NAME, OP, FORM, __VA_ARGS__)                                   \
    GPUSHMEM_OVERLOAD_WORDS_STATUS(NAME, OP, FORM, __VA_ARGS__)
#define GPUSHMEM_OVERLOAD_some GPUSHMEM_OVERLOAD_any
#define GPUSHMEM_OVERLOAD_WAIT(VERB, WHICH, FORM, NAME, TYPE)                                      \
    GPUSHMEM_OVERLOAD_##WHICH(VERB##_##WHICH, FORM, NAME, TYPE, TYPE value, value)                 \
        GPUSHMEM_OVERLOAD_##WHICH(VERB##_##WHICH##_vector, FORM, NAME, TYPE, const TYPE *values,   \
                                  values)
#define GPUSHMEM_OVERLOAD_SYNC(NAME, TYPE, A, B)                                                   \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, wait_until,                                                 \
                            (const volatile TYPE *var, enum gpushmem_cmp cmp, TYPE value),         \
                            (var, cmp, value))                                                     \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, test,                                                       \
                            (const volatile TYPE *var, enum gpushmem_cmp cmp, TYPE value),         \
                            (var, cmp, value))                                                     \
    GPSH_WAITS(GPUSHMEM_OVERLOAD_WAIT, NAME, TYPE)
GPUSHMEM_DISTINCT_SYNC_TYPES(GPUSHMEM_OVERLOAD_SYNC, , )

inline int gpushmem_signal_op(gpushmem_ctx_t ctx, uint64_t *sig, uint64_t signal,
                              enum gpushmem_signal_op sig_op, int pe)
{
    return gpushmem_ctx_signal_op(ctx, sig, signal, sig_op, pe);
}
inline int gpushmem_signal_set(gpushmem_ctx_t ctx, uint64_t *sig, uint64_t signal, int pe)
{
    return gpushmem_ctx_signal_set(ctx, sig, signal, pe);
}
inline int gpushmem_signal_add(gpushmem_ctx_t ctx, uint64_t *sig, uint64_t signal, int pe)
{
    return gpushmem_ctx_signal_add(ctx, sig, signal, pe);
}

// Operations of streams.
#define GPUSHMEM_OVERLOAD_STREAM(VERB, REST, FORM, NAME, TYPE)                                     \
    GPUSHMEM_OVERLOAD_PLAIN(                                                                       \
        int, NAME, VERB##REST##_on_stream,                                                         \
        (GPSH_P_##FORM(TYPE, enum gpushmem_signal_op), gpushmem_stream_t stream),                  \
        (GPSH_A_##FORM(dest, source, sig_op), stream))
#define GPUSHMEM_OVERLOAD_STREAMS(NAME, TYPE, A, B)                                                \
    GPSH_STREAM_MOVES(GPUSHMEM_OVERLOAD_STREAM, NAME, TYPE)                                        \
    GPUSHMEM_OVERLOAD_STREAM(p, , VALUE, NAME, TYPE)                                               \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, g_on_stream,                                                \
                            (TYPE * dest, const TYPE *source, int pe, gpushmem_stream_t stream),   \
                            (dest, source, pe, stream))
GPUSHMEM_DISTINCT_RMA_TYPES(GPUSHMEM_OVERLOAD_STREAMS, , )

// Collective operations have no context: one overload each.
#define GPUSHMEM_OVERLOAD_COLL(OP, KIND, FORM, NAME, TYPE)                                         \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, OP, (gpushmem_team_t team, GPSH_P_##FORM(TYPE, )),          \
                            (team, GPSH_A_##FORM(dest, source, )))
#define GPUSHMEM_OVERLOAD_FOLD(OP, KIND, NUMBER, NAME, TYPE)                                       \
    GPUSHMEM_OVERLOAD_COLL(OP, KIND, PART, NAME, TYPE)
#define GPUSHMEM_OVERLOAD_COLL_MOVES(NAME, TYPE, A, B)                                             \
    GPSH_COLL_MOVES(GPUSHMEM_OVERLOAD_COLL, NAME, TYPE)
#define GPUSHMEM_OVERLOAD_FOLD_BITWISE(NAME, TYPE, A, B)                                           \
    GPSH_COLLS_OF_BITS(GPUSHMEM_OVERLOAD_FOLD, NAME, TYPE)
#define GPUSHMEM_OVERLOAD_FOLD_ORDERED(NAME, TYPE, A, B)                                           \
    GPSH_COLLS_OF_ORDER(GPUSHMEM_OVERLOAD_FOLD, NAME, TYPE)
#define GPUSHMEM_OVERLOAD_FOLD_SUMS(NAME, TYPE, A, B)                                              \
    GPSH_COLLS_OF_SUMS(GPUSHMEM_OVERLOAD_FOLD, NAME, TYPE)
GPUSHMEM_DISTINCT_RMA_TYPES(GPUSHMEM_OVERLOAD_COLL_MOVES, , )
GPUSHMEM_DISTINCT_COLL_BITWISE_TYPES(GPUSHMEM_OVERLOAD_FOLD_BITWISE, , )
GPUSHMEM_DISTINCT_COLL_ORDERED_TYPES(GPUSHMEM_OVERLOAD_FOLD_ORDERED, , )
GPUSHMEM_DISTINCT_COLL_TYPES(GPUSHMEM_OVERLOAD_FOLD_SUMS, , )

// Element types without a function end in one sentence, and not in a list of all overloads.
template <typename T> struct gpushmem_has_functions {
    static constexpr bool value = false;
};
#define GPUSHMEM_OVERLOAD_REFUSE(OP, BYTES)                                                        \
    template <typename T> inline int gpushmem_##OP(T *, const T *, size_t, int)                    \
    {                                                                                              \
        static_assert(gpushmem_has_functions<T>::value,                                            \
                      "gpushmem_" #OP                                                              \
                      " has no form for this type of elements: use gpushmem_" BYTES                \
                      ", which counts bytes");                                                     \
        return 0;                                                                                  \
    }                                                                                              \
    template <typename T> inline int gpushmem_##OP(gpushmem_ctx_t, T *, const T *, size_t, int)    \
    {                                                                                              \
        static_assert(gpushmem_has_functions<T>::value,                                            \
                      "gpushmem_" #OP                                                              \
                      " has no form for this type of elements: use gpushmem_ctx_" BYTES            \
                      ", which counts bytes");                                                     \
        return 0;                                                                                  \
    }
GPUSHMEM_OVERLOAD_REFUSE(put, "putmem")
GPUSHMEM_OVERLOAD_REFUSE(get, "getmem")
GPUSHMEM_OVERLOAD_REFUSE(put_nbi, "putmem_nbi")
GPUSHMEM_OVERLOAD_REFUSE(get_nbi, "getmem_nbi")

#define GPUSHMEM_OVERLOAD_REFUSE_STREAM(OP)                                                        \
    template <typename T>                                                                          \
    inline int gpushmem_##OP##_on_stream(T *, const T *, size_t, int, gpushmem_stream_t)           \
    {                                                                                              \
        static_assert(gpushmem_has_functions<T>::value,                                            \
                      "gpushmem_" #OP "_on_stream has no form for this type of elements: use "     \
                      "gpushmem_" #OP "mem_on_stream, which counts bytes");                        \
        return 0;                                                                                  \
    }
GPUSHMEM_OVERLOAD_REFUSE_STREAM(put)
GPUSHMEM_OVERLOAD_REFUSE_STREAM(get)
#undef GPUSHMEM_OVERLOAD_REFUSE_STREAM

#undef GPUSHMEM_OVERLOAD_PLAIN
#undef GPUSHMEM_OVERLOAD
#undef GPUSHMEM_OVERLOAD_FORM
#undef GPUSHMEM_OVERLOAD_MOVE
#undef GPUSHMEM_OVERLOAD_RMA
#undef GPUSHMEM_OVERLOAD_FETCH
#undef GPUSHMEM_OVERLOAD_UPDATE
#undef GPUSHMEM_OVERLOAD_EXTENDED
#undef GPUSHMEM_OVERLOAD_AMO
#undef GPUSHMEM_OVERLOAD_BITWISE
#undef GPUSHMEM_OVERLOAD_WORDS
#undef GPUSHMEM_OVERLOAD_WORDS_STATUS
#undef GPUSHMEM_OVERLOAD_all
#undef GPUSHMEM_OVERLOAD_any
#undef GPUSHMEM_OVERLOAD_some
#undef GPUSHMEM_OVERLOAD_WAIT
#undef GPUSHMEM_OVERLOAD_SYNC
#undef GPUSHMEM_OVERLOAD_STREAM
#undef GPUSHMEM_OVERLOAD_STREAMS
#undef GPUSHMEM_OVERLOAD_COLL
#undef GPUSHMEM_OVERLOAD_FOLD
#undef GPUSHMEM_OVERLOAD_COLL_MOVES
#undef GPUSHMEM_OVERLOAD_FOLD_BITWISE
#undef GPUSHMEM_OVERLOAD_FOLD_ORDERED
#undef GPUSHMEM_OVERLOAD_FOLD_SUMS
#undef GPUSHMEM_OVERLOAD_REFUSE

#endif
