// SPDX-License-Identifier: BSD-3-Clause
// Which versions of the libraries that gpushmem needs this process has loaded.
#ifndef GPSH_LIBRARIES_H
#define GPSH_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>

enum { GPSH_LIBRARY_TEXT = 256 };

struct gpsh_library {
    const char *name; // as it is printed
    const char *key;  // in JSON
    char version[GPSH_LIBRARY_TEXT];
};

// Fills *out with row `row`; false: there are not so many.
bool gpsh_library_row(int row, struct gpsh_library *out);

#endif
