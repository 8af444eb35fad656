// SPDX-License-Identifier: BSD-3-Clause
// The functions that gpushmem, OpenSHMEM and NVSHMEM have in common, on the host, on streams and in
// kernels: what each is called and which parameters it takes. Their headers say what becomes of a
// row; contracts are in gpushmem.h, coll.h, coll_stream.h and device.cuh.
#ifndef GPUSHMEM_IMPL_SIGNATURES_H
#define GPUSHMEM_IMPL_SIGNATURES_H

// clang-format off
#define GPSH_LIST(...) __VA_ARGS__

// ---- Parameters ----
// GPSH_P_FORM(TYPE, ENUM): the parameters; ENUM: the type of a signal's operation or a comparison.
// GPSH_A_FORM(dest, source, op): what a function passes on, where these three may want a cast.

#define GPSH_P_MOVE(TYPE, ENUM)    TYPE *dest, const TYPE *source, size_t nelems, int pe
#define GPSH_P_STRIDED(TYPE, ENUM) \
    TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe
#define GPSH_P_BLOCKED(TYPE, ENUM) TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, \
                                   size_t bsize, size_t nblocks, int pe
#define GPSH_P_SIGNAL(TYPE, ENUM)  TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig, \
                                   uint64_t signal, ENUM sig_op, int pe
#define GPSH_A_MOVE(D, S, OP)      D, S, nelems, pe
#define GPSH_A_STRIDED(D, S, OP)   D, S, dst, sst, nelems, pe
#define GPSH_A_BLOCKED(D, S, OP)   D, S, dst, sst, bsize, nblocks, pe
#define GPSH_A_SIGNAL(D, S, OP)    D, S, nelems, sig, signal, OP, pe

#define GPSH_P_WORD(TYPE, ENUM)    const TYPE *source, int pe
#define GPSH_P_COUNT(TYPE, ENUM)   TYPE *dest, int pe
#define GPSH_P_VALUE(TYPE, ENUM)   TYPE *dest, TYPE value, int pe
#define GPSH_P_COMPARE(TYPE, ENUM) TYPE *dest, TYPE cond, TYPE value, int pe
#define GPSH_A_WORD(D, S, OP)      S, pe
#define GPSH_A_COUNT(D, S, OP)     D, pe
#define GPSH_A_VALUE(D, S, OP)     D, value, pe
#define GPSH_A_COMPARE(D, S, OP)   D, cond, value, pe

// After the team.
#define GPSH_P_PART(TYPE, ENUM)    TYPE *dest, const TYPE *source, size_t nelems
#define GPSH_P_ROOT(TYPE, ENUM)    TYPE *dest, const TYPE *source, size_t nelems, int root
#define GPSH_P_APART(TYPE, ENUM) \
    TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems
#define GPSH_A_PART(D, S, OP)      D, S, nelems
#define GPSH_A_ROOT(D, S, OP)      D, S, nelems, root
#define GPSH_A_APART(D, S, OP)     D, S, dst, sst, nelems

// Of waits: VARS declares the words, VALUE what they are compared with.
#define GPSH_P_ALL(VARS, ENUM, VALUE) VARS, size_t nelems, const int *status, ENUM cmp, VALUE
#define GPSH_P_SOME(VARS, ENUM, VALUE) \
    VARS, size_t nelems, size_t *indices, const int *status, ENUM cmp, VALUE
#define GPSH_A_ALL(VARS, CMP, VALUE)  VARS, nelems, status, CMP, VALUE
#define GPSH_A_SOME(VARS, CMP, VALUE) VARS, nelems, indices, status, CMP, VALUE

// ---- Put and get: X(VERB, REST, FORM, arguments...) ----
// A type is in front of VERB; bits, and `mem`, are between VERB and REST.

#define GPSH_MOVES(X, ...) \
    GPSH_PLAIN_MOVES(X, __VA_ARGS__) \
    GPSH_SIGNAL_MOVES(X, __VA_ARGS__)
#define GPSH_PLAIN_MOVES(X, ...) \
    X(put, , MOVE, __VA_ARGS__) \
    X(get, , MOVE, __VA_ARGS__) \
    X(put, _nbi, MOVE, __VA_ARGS__) \
    X(get, _nbi, MOVE, __VA_ARGS__)
#define GPSH_SIGNAL_MOVES(X, ...) \
    X(put, _signal, SIGNAL, __VA_ARGS__) \
    X(put, _signal_nbi, SIGNAL, __VA_ARGS__)
#define GPSH_STREAM_MOVES(X, ...) \
    X(put, , MOVE, __VA_ARGS__) \
    X(get, , MOVE, __VA_ARGS__) \
    X(put, _signal, SIGNAL, __VA_ARGS__) \
    GPSH_STRIDED_MOVES(X, __VA_ARGS__)
#define GPSH_STRIDED_MOVES(X, ...) \
    X(iput, , STRIDED, __VA_ARGS__) \
    X(iget, , STRIDED, __VA_ARGS__)
#define GPSH_BLOCKED_MOVES(X, ...) \
    X(ibput, , BLOCKED, __VA_ARGS__) \
    X(ibget, , BLOCKED, __VA_ARGS__)

// ---- Atomics: ROW_FETCH(NAME, FORM, OP, arguments...) returns what was there ----

#define GPSH_EXTENDED_ATOMICS(ROW_FETCH, ROW_UPDATE, ...) \
    ROW_FETCH(fetch, WORD, FETCH, __VA_ARGS__) \
    ROW_FETCH(swap, VALUE, SWAP, __VA_ARGS__) \
    ROW_UPDATE(set, VALUE, SET, __VA_ARGS__)
#define GPSH_ATOMICS(ROW_FETCH, ROW_UPDATE, ...) \
    ROW_FETCH(compare_swap, COMPARE, CSWAP, __VA_ARGS__) \
    ROW_FETCH(fetch_inc, COUNT, ADD, __VA_ARGS__) \
    ROW_FETCH(fetch_add, VALUE, ADD, __VA_ARGS__) \
    ROW_UPDATE(inc, COUNT, ADD, __VA_ARGS__) \
    ROW_UPDATE(add, VALUE, ADD, __VA_ARGS__)
#define GPSH_BITWISE_ATOMICS(ROW_FETCH, ROW_UPDATE, ...) \
    ROW_FETCH(fetch_and, VALUE, AND, __VA_ARGS__) \
    ROW_FETCH(fetch_or, VALUE, OR, __VA_ARGS__) \
    ROW_FETCH(fetch_xor, VALUE, XOR, __VA_ARGS__) \
    ROW_UPDATE(and, VALUE, AND, __VA_ARGS__) \
    ROW_UPDATE(or, VALUE, OR, __VA_ARGS__) \
    ROW_UPDATE(xor, VALUE, XOR, __VA_ARGS__)

// ---- Waits for several words: X(VERB, WHICH, FORM, arguments...) ----

#define GPSH_WAITS(X, ...) \
    X(wait_until, all, ALL, __VA_ARGS__) \
    X(wait_until, any, ALL, __VA_ARGS__) \
    X(wait_until, some, SOME, __VA_ARGS__) \
    X(test, all, ALL, __VA_ARGS__) \
    X(test, any, ALL, __VA_ARGS__) \
    X(test, some, SOME, __VA_ARGS__)

// ---- Collectives that move data: X(NAME, KIND, FORM, arguments...) ----

#define GPSH_COLL_MOVES(X, ...) \
    GPSH_COLL_MOVES_OF_NVSHMEM(X, __VA_ARGS__) \
    X(collect, COLLECT, PART, __VA_ARGS__) \
    X(alltoalls, ALLTOALLS, APART, __VA_ARGS__)
#define GPSH_COLL_MOVES_OF_NVSHMEM(X, ...) \
    X(broadcast, BROADCAST, ROOT, __VA_ARGS__) \
    X(fcollect, FCOLLECT, PART, __VA_ARGS__) \
    X(alltoall, ALLTOALL, PART, __VA_ARGS__)

// ---- Reductions and scans, all of the form PART ----

// X(FOLD, NUMBER, arguments...)
#define GPSH_FOLDS_OF_BITS(X, ...) \
    X(and, AND, __VA_ARGS__) \
    X(or, OR, __VA_ARGS__) \
    X(xor, XOR, __VA_ARGS__)
#define GPSH_FOLDS_OF_ORDER(X, ...) \
    X(min, MIN, __VA_ARGS__) \
    X(max, MAX, __VA_ARGS__)
#define GPSH_FOLDS_OF_SUMS(X, ...) \
    X(sum, SUM, __VA_ARGS__) \
    X(prod, PROD, __VA_ARGS__)

// X(NAME, KIND, NUMBER, arguments...)
#define GPSH_REDUCES(FOLD, NUMBER, X, ...) \
    X(FOLD##_reduce, REDUCE, NUMBER, __VA_ARGS__) \
    X(FOLD##_reducescatter, REDUCESCATTER, NUMBER, __VA_ARGS__)
#define GPSH_COLLS_OF_BITS(X, ...)  GPSH_FOLDS_OF_BITS(GPSH_REDUCES, X, __VA_ARGS__)
#define GPSH_COLLS_OF_ORDER(X, ...) GPSH_FOLDS_OF_ORDER(GPSH_REDUCES, X, __VA_ARGS__)
#define GPSH_COLLS_OF_SUMS(X, ...) \
    GPSH_FOLDS_OF_SUMS(GPSH_REDUCES, X, __VA_ARGS__) \
    X(sum_inscan, INSCAN, SUM, __VA_ARGS__) \
    X(sum_exscan, EXSCAN, SUM, __VA_ARGS__)
// clang-format on

#endif
