// SPDX-License-Identifier: BSD-3-Clause
// Numbers that are compiled into programs, and into bindings for other languages, never change.
// (NVSHMEM's public documentation has the same for these; that the file compiles is the test.)
#include "gpushmem/bootstrap.h"
#include "gpushmem/types.h"

_Static_assert(GPUSHMEM_SIGNAL_SET == 9 && GPUSHMEM_SIGNAL_ADD == 10, "signal operations");
_Static_assert(GPUSHMEM_CMP_EQ == 0 && GPUSHMEM_CMP_NE == 1 && GPUSHMEM_CMP_GT == 2 &&
                   GPUSHMEM_CMP_LE == 3 && GPUSHMEM_CMP_LT == 4 && GPUSHMEM_CMP_GE == 5,
               "comparisons");
_Static_assert(GPUSHMEM_THREAD_SINGLE == 0 && GPUSHMEM_THREAD_FUNNELED == 1 &&
                   GPUSHMEM_THREAD_SERIALIZED == 2 && GPUSHMEM_THREAD_MULTIPLE == 3,
               "thread levels");
_Static_assert(GPUSHMEM_CTX_SERIALIZED == 1 && GPUSHMEM_CTX_PRIVATE == 2 &&
                   GPUSHMEM_CTX_NOSTORE == 4,
               "context options");
// Frameworks hand an id of this size over.
_Static_assert(sizeof(gpushmem_uniqueid_t) == 128, "unique id");
