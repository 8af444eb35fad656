// SPDX-License-Identifier: BSD-3-Clause
// Overloads for C++, included by gpushmem.h: gpushmem_put(dest, source, nelems, pe) and the like
// for every element type, with an optional context first. The counterpart of generic.h.
#ifndef GPUSHMEM_IMPL_OVERLOADS_HPP
#define GPUSHMEM_IMPL_OVERLOADS_HPP

#include "gpushmem/gpushmem.h"
#include "gpushmem/impl/distinct_types.h"

// Two overloads, gpushmem_OP(...) and gpushmem_OP(ctx, ...), of gpushmem_NAME_OP and
// gpushmem_ctx_NAME_OP. PARAMETERS and ARGUMENTS are parenthesised lists.
#define GPUSHMEM_LIST(...) __VA_ARGS__
#define GPUSHMEM_OVERLOAD(RETURN, NAME, OP, PARAMETERS, ARGUMENTS)                                 \
    inline RETURN gpushmem_##OP(GPUSHMEM_LIST PARAMETERS)                                          \
    {                                                                                              \
        return gpushmem_##NAME##_##OP(GPUSHMEM_LIST ARGUMENTS);                                    \
    }                                                                                              \
    inline RETURN gpushmem_##OP(gpushmem_ctx_t ctx, GPUSHMEM_LIST PARAMETERS)                      \
    {                                                                                              \
        return gpushmem_ctx_##NAME##_##OP(ctx, GPUSHMEM_LIST ARGUMENTS);                           \
    }

#define GPUSHMEM_OVERLOAD_MOVE(NAME, TYPE, OP)                                                     \
    GPUSHMEM_OVERLOAD(int, NAME, OP, (TYPE * dest, const TYPE *source, size_t nelems, int pe),     \
                      (dest, source, nelems, pe))
#define GPUSHMEM_OVERLOAD_STRIDED(NAME, TYPE, OP)                                                  \
    GPUSHMEM_OVERLOAD(                                                                             \
        int, NAME, OP,                                                                             \
        (TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),    \
        (dest, source, dst, sst, nelems, pe))
#define GPUSHMEM_OVERLOAD_BLOCKED(NAME, TYPE, OP)                                                  \
    GPUSHMEM_OVERLOAD(int, NAME, OP,                                                               \
                      (TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst,              \
                       size_t bsize, size_t nblocks, int pe),                                      \
                      (dest, source, dst, sst, bsize, nblocks, pe))
#define GPUSHMEM_OVERLOAD_SIGNAL(NAME, TYPE, OP)                                                   \
    GPUSHMEM_OVERLOAD(int, NAME, OP,                                                               \
                      (TYPE * dest, const TYPE *source, size_t nelems, uint64_t *sig,              \
                       uint64_t signal, enum gpushmem_signal_op sig_op, int pe),                   \
                      (dest, source, nelems, sig, signal, sig_op, pe))
#define GPUSHMEM_OVERLOAD_RMA(NAME, TYPE, A, B)                                                    \
    GPUSHMEM_OVERLOAD_MOVE(NAME, TYPE, put)                                                        \
    GPUSHMEM_OVERLOAD_MOVE(NAME, TYPE, get)                                                        \
    GPUSHMEM_OVERLOAD_MOVE(NAME, TYPE, put_nbi)                                                    \
    GPUSHMEM_OVERLOAD_MOVE(NAME, TYPE, get_nbi)                                                    \
    GPUSHMEM_OVERLOAD(int, NAME, p, (TYPE * dest, TYPE value, int pe), (dest, value, pe))          \
    GPUSHMEM_OVERLOAD(TYPE, NAME, g, (const TYPE *source, int pe), (source, pe))                   \
    GPUSHMEM_OVERLOAD_STRIDED(NAME, TYPE, iput)                                                    \
    GPUSHMEM_OVERLOAD_STRIDED(NAME, TYPE, iget)                                                    \
    GPUSHMEM_OVERLOAD_BLOCKED(NAME, TYPE, ibput)                                                   \
    GPUSHMEM_OVERLOAD_BLOCKED(NAME, TYPE, ibget)                                                   \
    GPUSHMEM_OVERLOAD_SIGNAL(NAME, TYPE, put_signal)                                               \
    GPUSHMEM_OVERLOAD_SIGNAL(NAME, TYPE, put_signal_nbi)
GPUSHMEM_DISTINCT_RMA_TYPES(GPUSHMEM_OVERLOAD_RMA, , )

// RETURN is TYPE for the fetching form and int for the others.
#define GPUSHMEM_OVERLOAD_UPDATE(RETURN, NAME, TYPE, OP)                                           \
    GPUSHMEM_OVERLOAD(RETURN, NAME, OP, (TYPE * dest, TYPE value, int pe), (dest, value, pe))
#define GPUSHMEM_OVERLOAD_UPDATE_NBI(NAME, TYPE, OP)                                               \
    GPUSHMEM_OVERLOAD(int, NAME, OP, (TYPE * fetch, TYPE * dest, TYPE value, int pe),              \
                      (fetch, dest, value, pe))

// The form with a status, of each fetching one.
#define GPUSHMEM_OVERLOAD_STATUS(NAME, TYPE, OP)                                                   \
    GPUSHMEM_OVERLOAD(int, NAME, OP##_status, (TYPE * dest, TYPE value, int pe, TYPE *before),     \
                      (dest, value, pe, before))

#define GPUSHMEM_OVERLOAD_EXTENDED(NAME, TYPE, A, B)                                               \
    GPUSHMEM_OVERLOAD(TYPE, NAME, atomic_fetch, (const TYPE *source, int pe), (source, pe))        \
    GPUSHMEM_OVERLOAD(int, NAME, atomic_fetch_status, (const TYPE *source, int pe, TYPE *before),  \
                      (source, pe, before))                                                        \
    GPUSHMEM_OVERLOAD_STATUS(NAME, TYPE, atomic_swap)                                              \
    GPUSHMEM_OVERLOAD_UPDATE(int, NAME, TYPE, atomic_set)                                          \
    GPUSHMEM_OVERLOAD_UPDATE(TYPE, NAME, TYPE, atomic_swap)                                        \
    GPUSHMEM_OVERLOAD(int, NAME, atomic_fetch_nbi, (TYPE * fetch, const TYPE *source, int pe),     \
                      (fetch, source, pe))                                                         \
    GPUSHMEM_OVERLOAD_UPDATE_NBI(NAME, TYPE, atomic_swap_nbi)
GPUSHMEM_DISTINCT_AMO_EXTENDED_TYPES(GPUSHMEM_OVERLOAD_EXTENDED, , )

#define GPUSHMEM_OVERLOAD_AMO(NAME, TYPE, A, B)                                                    \
    GPUSHMEM_OVERLOAD(TYPE, NAME, atomic_compare_swap,                                             \
                      (TYPE * dest, TYPE cond, TYPE value, int pe), (dest, cond, value, pe))       \
    GPUSHMEM_OVERLOAD(int, NAME, atomic_compare_swap_status,                                       \
                      (TYPE * dest, TYPE cond, TYPE value, int pe, TYPE *before),                  \
                      (dest, cond, value, pe, before))                                             \
    GPUSHMEM_OVERLOAD(int, NAME, atomic_fetch_inc_status, (TYPE * dest, int pe, TYPE *before),     \
                      (dest, pe, before))                                                          \
    GPUSHMEM_OVERLOAD_STATUS(NAME, TYPE, atomic_fetch_add)                                         \
    GPUSHMEM_OVERLOAD(TYPE, NAME, atomic_fetch_inc, (TYPE * dest, int pe), (dest, pe))             \
    GPUSHMEM_OVERLOAD(int, NAME, atomic_inc, (TYPE * dest, int pe), (dest, pe))                    \
    GPUSHMEM_OVERLOAD_UPDATE(TYPE, NAME, TYPE, atomic_fetch_add)                                   \
    GPUSHMEM_OVERLOAD_UPDATE(int, NAME, TYPE, atomic_add)                                          \
    GPUSHMEM_OVERLOAD(int, NAME, atomic_compare_swap_nbi,                                          \
                      (TYPE * fetch, TYPE * dest, TYPE cond, TYPE value, int pe),                  \
                      (fetch, dest, cond, value, pe))                                              \
    GPUSHMEM_OVERLOAD(int, NAME, atomic_fetch_inc_nbi, (TYPE * fetch, TYPE * dest, int pe),        \
                      (fetch, dest, pe))                                                           \
    GPUSHMEM_OVERLOAD_UPDATE_NBI(NAME, TYPE, atomic_fetch_add_nbi)
GPUSHMEM_DISTINCT_AMO_TYPES(GPUSHMEM_OVERLOAD_AMO, , )

#define GPUSHMEM_OVERLOAD_BITWISE(NAME, TYPE, A, B)                                                \
    GPUSHMEM_OVERLOAD_UPDATE(TYPE, NAME, TYPE, atomic_fetch_and)                                   \
    GPUSHMEM_OVERLOAD_STATUS(NAME, TYPE, atomic_fetch_and)                                         \
    GPUSHMEM_OVERLOAD_STATUS(NAME, TYPE, atomic_fetch_or)                                          \
    GPUSHMEM_OVERLOAD_STATUS(NAME, TYPE, atomic_fetch_xor)                                         \
    GPUSHMEM_OVERLOAD_UPDATE(int, NAME, TYPE, atomic_and)                                          \
    GPUSHMEM_OVERLOAD_UPDATE(TYPE, NAME, TYPE, atomic_fetch_or)                                    \
    GPUSHMEM_OVERLOAD_UPDATE(int, NAME, TYPE, atomic_or)                                           \
    GPUSHMEM_OVERLOAD_UPDATE(TYPE, NAME, TYPE, atomic_fetch_xor)                                   \
    GPUSHMEM_OVERLOAD_UPDATE(int, NAME, TYPE, atomic_xor)                                          \
    GPUSHMEM_OVERLOAD_UPDATE_NBI(NAME, TYPE, atomic_fetch_and_nbi)                                 \
    GPUSHMEM_OVERLOAD_UPDATE_NBI(NAME, TYPE, atomic_fetch_or_nbi)                                  \
    GPUSHMEM_OVERLOAD_UPDATE_NBI(NAME, TYPE, atomic_fetch_xor_nbi)
GPUSHMEM_DISTINCT_AMO_BITWISE_TYPES(GPUSHMEM_OVERLOAD_BITWISE, , )

// Waiting and testing has no context. VERB is wait_until or test.
#define GPUSHMEM_OVERLOAD_PLAIN(RETURN, NAME, OP, PARAMETERS, ARGUMENTS)                           \
    inline RETURN gpushmem_##OP(GPUSHMEM_LIST PARAMETERS)                                          \
    {                                                                                              \
        return gpushmem_##NAME##_##OP(GPUSHMEM_LIST ARGUMENTS);                                    \
    }
#define GPUSHMEM_OVERLOAD_VERB(NAME, TYPE, VERB)                                                   \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, VERB,                                                       \
                            (const volatile TYPE *var, enum gpushmem_cmp cmp, TYPE value),         \
                            (var, cmp, value))                                                     \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, VERB##_all,                                                 \
                            (const volatile TYPE *vars, size_t nelems, const int *status,          \
                             enum gpushmem_cmp cmp, TYPE value),                                   \
                            (vars, nelems, status, cmp, value))                                    \
    GPUSHMEM_OVERLOAD_PLAIN(size_t, NAME, VERB##_any,                                              \
                            (const volatile TYPE *vars, size_t nelems, const int *status,          \
                             enum gpushmem_cmp cmp, TYPE value),                                   \
                            (vars, nelems, status, cmp, value))                                    \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, VERB##_any_status,                                          \
                            (const volatile TYPE *vars, size_t nelems, const int *status,          \
                             enum gpushmem_cmp cmp, TYPE value, size_t *index),                    \
                            (vars, nelems, status, cmp, value, index))                             \
    GPUSHMEM_OVERLOAD_PLAIN(size_t, NAME, VERB##_some,                                             \
                            (const volatile TYPE *vars, size_t nelems, size_t *indices,            \
                             const int *status, enum gpushmem_cmp cmp, TYPE value),                \
                            (vars, nelems, indices, status, cmp, value))                           \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, VERB##_some_status,                                         \
                            (const volatile TYPE *vars, size_t nelems, size_t *indices,            \
                             const int *status, enum gpushmem_cmp cmp, TYPE value, size_t *count), \
                            (vars, nelems, indices, status, cmp, value, count))                    \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, VERB##_all_vector,                                          \
                            (const volatile TYPE *vars, size_t nelems, const int *status,          \
                             enum gpushmem_cmp cmp, const TYPE *values),                           \
                            (vars, nelems, status, cmp, values))                                   \
    GPUSHMEM_OVERLOAD_PLAIN(size_t, NAME, VERB##_any_vector,                                       \
                            (const volatile TYPE *vars, size_t nelems, const int *status,          \
                             enum gpushmem_cmp cmp, const TYPE *values),                           \
                            (vars, nelems, status, cmp, values))                                   \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, VERB##_any_vector_status,                                   \
                            (const volatile TYPE *vars, size_t nelems, const int *status,          \
                             enum gpushmem_cmp cmp, const TYPE *values, size_t *index),            \
                            (vars, nelems, status, cmp, values, index))                            \
    GPUSHMEM_OVERLOAD_PLAIN(size_t, NAME, VERB##_some_vector,                                      \
                            (const volatile TYPE *vars, size_t nelems, size_t *indices,            \
                             const int *status, enum gpushmem_cmp cmp, const TYPE *values),        \
                            (vars, nelems, indices, status, cmp, values))                          \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, VERB##_some_vector_status,                                  \
                            (const volatile TYPE *vars, size_t nelems, size_t *indices,            \
                             const int *status, enum gpushmem_cmp cmp, const TYPE *values,         \
                             size_t *count),                                                       \
                            (vars, nelems, indices, status, cmp, values, count))
#define GPUSHMEM_OVERLOAD_SYNC(NAME, TYPE, A, B)                                                   \
    GPUSHMEM_OVERLOAD_VERB(NAME, TYPE, wait_until)                                                 \
    GPUSHMEM_OVERLOAD_VERB(NAME, TYPE, test)
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
#define GPUSHMEM_OVERLOAD_STREAM(NAME, TYPE, A, B)                                                 \
    GPUSHMEM_OVERLOAD_PLAIN(                                                                       \
        int, NAME, put_on_stream,                                                                  \
        (TYPE * dest, const TYPE *source, size_t nelems, int pe, gpushmem_stream_t stream),        \
        (dest, source, nelems, pe, stream))                                                        \
    GPUSHMEM_OVERLOAD_PLAIN(                                                                       \
        int, NAME, get_on_stream,                                                                  \
        (TYPE * dest, const TYPE *source, size_t nelems, int pe, gpushmem_stream_t stream),        \
        (dest, source, nelems, pe, stream))                                                        \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, put_signal_on_stream,                                       \
                            (TYPE * dest, const TYPE *source, size_t nelems, uint64_t *sig,        \
                             uint64_t signal, enum gpushmem_signal_op sig_op, int pe,              \
                             gpushmem_stream_t stream),                                            \
                            (dest, source, nelems, sig, signal, sig_op, pe, stream))               \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, p_on_stream,                                                \
                            (TYPE * dest, TYPE value, int pe, gpushmem_stream_t stream),           \
                            (dest, value, pe, stream))                                             \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, g_on_stream,                                                \
                            (TYPE * dest, const TYPE *source, int pe, gpushmem_stream_t stream),   \
                            (dest, source, pe, stream))                                            \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, iput_on_stream,                                             \
                            (TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst,        \
                             size_t nelems, int pe, gpushmem_stream_t stream),                     \
                            (dest, source, dst, sst, nelems, pe, stream))                          \
    GPUSHMEM_OVERLOAD_PLAIN(int, NAME, iget_on_stream,                                             \
                            (TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst,        \
                             size_t nelems, int pe, gpushmem_stream_t stream),                     \
                            (dest, source, dst, sst, nelems, pe, stream))
GPUSHMEM_DISTINCT_RMA_TYPES(GPUSHMEM_OVERLOAD_STREAM, , )

// Collective operations have no context: one overload each.
#define GPUSHMEM_OVERLOAD_COLL(NAME, TYPE, OP)                                                     \
    inline int gpushmem_##OP(gpushmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems)  \
    {                                                                                              \
        return gpushmem_##NAME##_##OP(team, dest, source, nelems);                                 \
    }
#define GPUSHMEM_OVERLOAD_FOLD(NAME, TYPE, OP)                                                     \
    GPUSHMEM_OVERLOAD_COLL(NAME, TYPE, OP##_reduce)                                                \
    GPUSHMEM_OVERLOAD_COLL(NAME, TYPE, OP##_reducescatter)
#define GPUSHMEM_OVERLOAD_COLLECTIVE(NAME, TYPE, A, B)                                             \
    GPUSHMEM_OVERLOAD_COLL(NAME, TYPE, collect)                                                    \
    GPUSHMEM_OVERLOAD_COLL(NAME, TYPE, fcollect)                                                   \
    GPUSHMEM_OVERLOAD_COLL(NAME, TYPE, alltoall)                                                   \
    inline int gpushmem_broadcast(gpushmem_team_t team, TYPE *dest, const TYPE *source,            \
                                  size_t nelems, int root)                                         \
    {                                                                                              \
        return gpushmem_##NAME##_broadcast(team, dest, source, nelems, root);                      \
    }                                                                                              \
    inline int gpushmem_alltoalls(gpushmem_team_t team, TYPE *dest, const TYPE *source,            \
                                  ptrdiff_t dst, ptrdiff_t sst, size_t nelems)                     \
    {                                                                                              \
        return gpushmem_##NAME##_alltoalls(team, dest, source, dst, sst, nelems);                  \
    }
GPUSHMEM_DISTINCT_RMA_TYPES(GPUSHMEM_OVERLOAD_COLLECTIVE, , )
#define GPUSHMEM_OVERLOAD_FOLD_BITWISE(NAME, TYPE, A, B)                                           \
    GPUSHMEM_OVERLOAD_COLL(NAME, TYPE, and_reduce)                                                 \
    GPUSHMEM_OVERLOAD_COLL(NAME, TYPE, and_reducescatter)                                          \
    GPUSHMEM_OVERLOAD_COLL(NAME, TYPE, or_reduce)                                                  \
    GPUSHMEM_OVERLOAD_COLL(NAME, TYPE, or_reducescatter)                                           \
    GPUSHMEM_OVERLOAD_COLL(NAME, TYPE, xor_reduce)                                                 \
    GPUSHMEM_OVERLOAD_COLL(NAME, TYPE, xor_reducescatter)
GPUSHMEM_DISTINCT_COLL_BITWISE_TYPES(GPUSHMEM_OVERLOAD_FOLD_BITWISE, , )
#define GPUSHMEM_OVERLOAD_FOLD_ORDERED(NAME, TYPE, A, B)                                           \
    GPUSHMEM_OVERLOAD_FOLD(NAME, TYPE, min)                                                        \
    GPUSHMEM_OVERLOAD_FOLD(NAME, TYPE, max)
GPUSHMEM_DISTINCT_COLL_ORDERED_TYPES(GPUSHMEM_OVERLOAD_FOLD_ORDERED, , )
#define GPUSHMEM_OVERLOAD_FOLD_ANY(NAME, TYPE, A, B)                                               \
    GPUSHMEM_OVERLOAD_FOLD(NAME, TYPE, sum)                                                        \
    GPUSHMEM_OVERLOAD_FOLD(NAME, TYPE, prod)                                                       \
    GPUSHMEM_OVERLOAD_COLL(NAME, TYPE, sum_inscan)                                                 \
    GPUSHMEM_OVERLOAD_COLL(NAME, TYPE, sum_exscan)
GPUSHMEM_DISTINCT_COLL_TYPES(GPUSHMEM_OVERLOAD_FOLD_ANY, , )
#undef GPUSHMEM_OVERLOAD_COLL
#undef GPUSHMEM_OVERLOAD_FOLD
#undef GPUSHMEM_OVERLOAD_COLLECTIVE
#undef GPUSHMEM_OVERLOAD_FOLD_BITWISE
#undef GPUSHMEM_OVERLOAD_FOLD_ORDERED
#undef GPUSHMEM_OVERLOAD_FOLD_ANY

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

#undef GPUSHMEM_OVERLOAD
#undef GPUSHMEM_OVERLOAD_MOVE
#undef GPUSHMEM_OVERLOAD_STRIDED
#undef GPUSHMEM_OVERLOAD_BLOCKED
#undef GPUSHMEM_OVERLOAD_SIGNAL
#undef GPUSHMEM_OVERLOAD_RMA
#undef GPUSHMEM_OVERLOAD_UPDATE
#undef GPUSHMEM_OVERLOAD_STATUS
#undef GPUSHMEM_OVERLOAD_REFUSE
#undef GPUSHMEM_OVERLOAD_STREAM
#undef GPUSHMEM_OVERLOAD_UPDATE_NBI
#undef GPUSHMEM_OVERLOAD_AMO
#undef GPUSHMEM_OVERLOAD_BITWISE
#undef GPUSHMEM_OVERLOAD_PLAIN
#undef GPUSHMEM_OVERLOAD_VERB
#undef GPUSHMEM_OVERLOAD_SYNC
#undef GPUSHMEM_LIST

#endif
