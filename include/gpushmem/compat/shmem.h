// SPDX-License-Identifier: BSD-3-Clause
// OpenSHMEM 1.6 for host programs, over gpushmem: names, types and constants are the standard's,
// contracts are those of gpushmem.h, and docs/compat.md says what differs.
//
// Every function is defined in line and calls gpushmem's, so that programs need -lgpushmem alone.
// With SHMEM_NO_INLINE they are only declared, and -lshmem has them: for programs and tools that
// define some shmem_X themselves and call pshmem_X (pshmem.h).
//
// A call that fails logs the library's sentence at level ERROR, each sentence once, and returns:
// nothing, the function's error value, or 0. The process goes on (docs/design/compatibility.md).
#ifndef SHMEM_H
#define SHMEM_H

#ifdef __cplusplus
#include <complex> // programs expect it
#endif
#include <stddef.h>
#include <stdint.h>

#include "gpushmem/compat/impl/shmem_types.h"
#include "gpushmem/gpushmem.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- What the functions below call. Programs need not. ----

// gpushmem_init_thread as OpenSHMEM programs expect it: the heap is host memory, and
// SHMEM_SYMMETRIC_SIZE, SHMEM_DEBUG, SHMEM_INFO and SHMEM_VERSION are obeyed. Settings of gpushmem
// that are in the environment take precedence. provided: NULL in functions that return nothing.
GPUSHMEM_API int gpushmem_shmem_init(int requested, int *provided);
// The same for start_pes: the PE leaves the job when the program exits.
GPUSHMEM_API void gpushmem_shmem_start(void);
// Logs this thread's last failure, unless one of its kind was logged before, and forgets it. void:
// of a call that cannot return that it failed, for which GPUSHMEM_ON_ERROR holds.
GPUSHMEM_API void gpushmem_shmem_failed(void) __attribute__((cold));
GPUSHMEM_API void gpushmem_shmem_void_failed(void) __attribute__((cold));
// gpushmem_shmem_failed if there is one: for results that may be NULL without a failure.
GPUSHMEM_API void gpushmem_shmem_zero(void);
// The team of an active set, made at its first use by all PEs of the set, with the help of pSync.
// GPUSHMEM_TEAM_INVALID after a failure, which has been logged.
GPUSHMEM_API gpushmem_team_t gpushmem_shmem_active_set(int start, int log_stride, int size,
                                                       long *psync);
// As gpushmem_broadcastmem, but dest of the root stays as it is.
GPUSHMEM_API int gpushmem_shmem_broadcast(gpushmem_team_t team, void *dest, const void *source,
                                          size_t bytes, int root);

#ifdef __cplusplus
}
#endif

// Passes a status on, and reports it if it is negative.
static inline int gpushmem_shmem_check(int status)
{
    if (__builtin_expect(status < 0, 0))
        gpushmem_shmem_failed();
    return status;
}

// The same of a call that does not return the status.
static inline int gpushmem_shmem_lost(int status)
{
    if (__builtin_expect(status < 0, 0))
        gpushmem_shmem_void_failed();
    return status;
}

// Of so many elements; SIZE_MAX, which no heap has, if the number is out of reach.
static inline size_t gpushmem_shmem_bytes(size_t nelems, size_t size)
{
    return nelems > SIZE_MAX / size ? SIZE_MAX : nelems * size;
}

// Reports what is NULL on failure.
static inline void *gpushmem_shmem_block(void *block)
{
    if (__builtin_expect(block == NULL, 0))
        gpushmem_shmem_zero();
    return block;
}

// ---- The functions, by the rows of one table ----

#if defined(GPUSHMEM_SHMEM_LIBRARY)
#define GPSHM_ROW(RETURN, NAME, PARAMETERS, ...)                                                   \
    GPUSHMEM_API RETURN NAME PARAMETERS;                                                           \
    RETURN NAME PARAMETERS __VA_ARGS__
#elif defined(SHMEM_NO_INLINE)
#define GPSHM_ROW(RETURN, NAME, PARAMETERS, ...) GPUSHMEM_API RETURN NAME PARAMETERS;
#else
#define GPSHM_ROW(RETURN, NAME, PARAMETERS, ...) static inline RETURN NAME PARAMETERS __VA_ARGS__
#endif

// Of a source that the program has not written to, gcc would complain about these lines, in which
// the program's call has gone in line, and not about that.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#ifdef __cplusplus
extern "C" {
#endif
#include "gpushmem/compat/impl/shmem_rows.h"
#ifdef __cplusplus
}
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#undef GPSHM_ROW

#if defined(__cplusplus)
// The form for teams has the name of the deprecated one for active sets.
static inline int shmem_sync(shmem_team_t team)
{
    return shmem_team_sync(team);
}

// Compilers that have C's complex types in C++, too, can use them here.
#define GPSHM_COMPLEX_SCAN(NAME, TYPE, KIND)                                                       \
    static inline int shmem_##NAME##_sum_##KIND(shmem_team_t team, TYPE *dest, const TYPE *source, \
                                                size_t nelems)                                     \
    {                                                                                              \
        return gpushmem_shmem_check(                                                               \
            gpushmem_##NAME##_sum_##KIND(gpushmem_team_of_shmem(team), (gpushmem_##NAME *)dest,    \
                                         (const gpushmem_##NAME *)source, nelems));                \
    }
#define GPSHM_COMPLEX(NAME, TYPE, OP)                                                              \
    static inline int shmem_##NAME##_##OP##_reduce(shmem_team_t team, TYPE *dest,                  \
                                                   const TYPE *source, size_t nreduce)             \
    {                                                                                              \
        return gpushmem_shmem_check(                                                               \
            gpushmem_##NAME##_##OP##_reduce(gpushmem_team_of_shmem(team), (gpushmem_##NAME *)dest, \
                                            (const gpushmem_##NAME *)source, nreduce));            \
    }                                                                                              \
    static inline void shmem_##NAME##_##OP##_to_all(TYPE *dest, const TYPE *source, int nreduce,   \
                                                    int PE_start, int logPE_stride, int PE_size,   \
                                                    TYPE *pWrk, long *pSync)                       \
    {                                                                                              \
        shmem_##NAME##_##OP##_to_all((gpushmem_##NAME *)dest, (const gpushmem_##NAME *)source,     \
                                     nreduce, PE_start, logPE_stride, PE_size,                     \
                                     (gpushmem_##NAME *)pWrk, pSync);                              \
    }
__extension__ typedef __complex__ float shmem_complexf_of_c;
__extension__ typedef __complex__ double shmem_complexd_of_c;
GPSHM_COMPLEX(complexf, shmem_complexf_of_c, sum)
GPSHM_COMPLEX(complexf, shmem_complexf_of_c, prod)
GPSHM_COMPLEX(complexd, shmem_complexd_of_c, sum)
GPSHM_COMPLEX(complexd, shmem_complexd_of_c, prod)
GPSHM_COMPLEX_SCAN(complexf, shmem_complexf_of_c, inscan)
GPSHM_COMPLEX_SCAN(complexf, shmem_complexf_of_c, exscan)
GPSHM_COMPLEX_SCAN(complexd, shmem_complexd_of_c, inscan)
GPSHM_COMPLEX_SCAN(complexd, shmem_complexd_of_c, exscan)
#undef GPSHM_COMPLEX_SCAN
#undef GPSHM_COMPLEX
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#include "gpushmem/compat/impl/shmem_generic.h"
#endif

#endif
