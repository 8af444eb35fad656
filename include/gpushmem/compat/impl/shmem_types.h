// SPDX-License-Identifier: BSD-3-Clause
// Types, constants and type families of shmem.h. The values are gpushmem's, so that nothing is
// translated.
#ifndef GPUSHMEM_COMPAT_IMPL_SHMEM_TYPES_H
#define GPUSHMEM_COMPAT_IMPL_SHMEM_TYPES_H

#include "gpushmem/gpushmem.h"
#include "gpushmem/impl/signatures.h"

// As large as a pointer, as with other implementations, whose programs rely on it, and NULL where
// there is no team.
typedef struct gpushmem_shmem_team *shmem_team_t;
typedef gpushmem_ctx_t shmem_ctx_t;
// As the standard has it. Functions read the members that a mask names, and nothing behind them.
typedef struct {
    int num_contexts;
} shmem_team_config_t;
typedef struct gpushmem_ctx_session_config shmem_ctx_session_config_t;

// Whose header this is, for programs that ask: the library's version, as 10000 * major + 100 *
// minor + patch.
#define GPUSHMEM_SHMEM_NUMVERSION                                                                  \
    (GPUSHMEM_VERSION_MAJOR * 10000 + GPUSHMEM_VERSION_MINOR * 100 + GPUSHMEM_VERSION_PATCH)
// The standard that the header follows. The library's own version is in the vendor string.
#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
#define SHMEM_VERSION_MAJOR SHMEM_MAJOR_VERSION
#define SHMEM_VERSION_MINOR SHMEM_MINOR_VERSION
#define SHMEM_MAX_NAME_LEN  GPUSHMEM_MAX_NAME_LEN
#define GPSHM_TEXT_(number) #number
#define GPSHM_TEXT(number)  GPSHM_TEXT_(number)
#define SHMEM_VENDOR_STRING                                                                        \
    "gpushmem " GPSHM_TEXT(GPUSHMEM_VERSION_MAJOR) "." GPSHM_TEXT(                                 \
        GPUSHMEM_VERSION_MINOR) "." GPSHM_TEXT(GPUSHMEM_VERSION_PATCH)

#define SHMEM_THREAD_SINGLE     0
#define SHMEM_THREAD_FUNNELED   1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE   3

#define SHMEM_TEAM_INVALID      ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD        ((shmem_team_t)1)
#define SHMEM_TEAM_SHARED       ((shmem_team_t)2)
#define SHMEM_TEAM_NUM_CONTEXTS GPUSHMEM_TEAM_NUM_CONTEXTS

#define SHMEM_CTX_INVALID    GPUSHMEM_CTX_INVALID
#define SHMEM_CTX_DEFAULT    GPUSHMEM_CTX_DEFAULT
#define SHMEM_CTX_SERIALIZED 1L
#define SHMEM_CTX_PRIVATE    2L
#define SHMEM_CTX_NOSTORE    4L

#define SHMEM_CTX_SESSION_BATCH     1L
#define SHMEM_CTX_SESSION_TOTAL_OPS 1L

#define SHMEM_SIGNAL_SET 9
#define SHMEM_SIGNAL_ADD 10

#define SHMEM_MALLOC_ATOMICS_REMOTE 1L
#define SHMEM_MALLOC_SIGNAL_REMOTE  2L

#define SHMEM_CMP_EQ 0
#define SHMEM_CMP_NE 1
#define SHMEM_CMP_GT 2
#define SHMEM_CMP_LE 3
#define SHMEM_CMP_LT 4
#define SHMEM_CMP_GE 5

// Work arrays of active sets. Zero, so that static ones are right without being initialised; and of
// one size, so that none is too small where a program takes one for another.
#define SHMEM_SYNC_VALUE              0L
#define SHMEM_SYNC_SIZE               16
#define SHMEM_ALLTOALL_SYNC_SIZE      SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALLS_SYNC_SIZE     SHMEM_SYNC_SIZE
#define SHMEM_BARRIER_SYNC_SIZE       SHMEM_SYNC_SIZE
#define SHMEM_BCAST_SYNC_SIZE         SHMEM_SYNC_SIZE
#define SHMEM_COLLECT_SYNC_SIZE       SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_SYNC_SIZE        SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 1

// Names of the standard's first versions.
#define _SHMEM_MAJOR_VERSION           SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION           SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN            SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING           SHMEM_VENDOR_STRING
#define _SHMEM_CMP_EQ                  SHMEM_CMP_EQ
#define _SHMEM_CMP_NE                  SHMEM_CMP_NE
#define _SHMEM_CMP_GT                  SHMEM_CMP_GT
#define _SHMEM_CMP_LE                  SHMEM_CMP_LE
#define _SHMEM_CMP_LT                  SHMEM_CMP_LT
#define _SHMEM_CMP_GE                  SHMEM_CMP_GE
#define _SHMEM_SYNC_VALUE              SHMEM_SYNC_VALUE
#define _SHMEM_ALLTOALL_SYNC_SIZE      SHMEM_ALLTOALL_SYNC_SIZE
#define _SHMEM_ALLTOALLS_SYNC_SIZE     SHMEM_ALLTOALLS_SYNC_SIZE
#define _SHMEM_BARRIER_SYNC_SIZE       SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE         SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE       SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE        SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE

// Teams as gpushmem's own functions take them, and back. A handle that is none stays one.
static inline gpushmem_team_t gpushmem_team_of_shmem(shmem_team_t team)
{
    intptr_t number = (intptr_t)team - 1;
    return number == (gpushmem_team_t)number ? (gpushmem_team_t)number : INT32_MIN;
}
static inline shmem_team_t gpushmem_team_as_shmem(gpushmem_team_t team)
{
    return (shmem_team_t)((intptr_t)team + 1);
}

// Type families that are not those of gpushmem/types.h. long double has rows of its own.
#define GPSHM_RMA_TYPES(X)                                                                         \
    X(float, float)                                                                                \
    X(double, double)                                                                              \
    GPUSHMEM_INTEGER_TYPES(X)
#define GPSHM_ORDERED_TYPES(X)                                                                     \
    GPSHM_RMA_TYPES(X)                                                                             \
    X(longdouble, long double)
#define GPSHM_ARITHMETIC_TYPES(X)                                                                  \
    GPSHM_ORDERED_TYPES(X)                                                                         \
    X(complexf, gpushmem_complexf)                                                                 \
    X(complexd, gpushmem_complexd)
// Of the deprecated reductions.
#define GPSHM_OLD_BITWISE_TYPES(X)                                                                 \
    X(short, short)                                                                                \
    X(int, int)                                                                                    \
    X(long, long)                                                                                  \
    X(longlong, long long)
#define GPSHM_OLD_ORDERED_TYPES(X)                                                                 \
    X(float, float)                                                                                \
    X(double, double)                                                                              \
    X(longdouble, long double)                                                                     \
    GPSHM_OLD_BITWISE_TYPES(X)
#define GPSHM_OLD_ARITHMETIC_TYPES(X)                                                              \
    X(complexf, gpushmem_complexf)                                                                 \
    X(complexd, gpushmem_complexd)                                                                 \
    GPSHM_OLD_ORDERED_TYPES(X)

#endif
