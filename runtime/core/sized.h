// SPDX-License-Identifier: BSD-3-Clause
// Structs that public functions fill may grow: the caller's header says how large its one is, and
// the library writes what both know (docs/design/compatibility.md).
#ifndef GPSH_SIZED_H
#define GPSH_SIZED_H

#include <stddef.h>
#include <string.h>

#include "core/error.h"

// Copies *from, of `known` bytes, to *out, of `size` bytes; what the library does not know becomes
// zero. `least`: size of the struct as it was published first.
// GPUSHMEM_ERR_INVALID: `out` is NULL, or too small for any version.
static inline int gpsh_sized_fill(const char *function, void *out, size_t size, const void *from,
                                  size_t known, size_t least)
{
    if (out == NULL)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: no place for the result (NULL)", function);
    if (size < least)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: a struct of %zu bytes is too small, the first version has %zu: pass "
                         "its sizeof",
                         function, size, least);
    memcpy(out, from, size < known ? size : known);
    if (size > known)
        memset((char *)out + known, 0, size - known);
    return 0;
}

#endif
