// SPDX-License-Identifier: BSD-3-Clause
// A sentence that is put together piece by piece in memory of a fixed size.
#ifndef GPSH_TEXT_H
#define GPSH_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct gpsh_text {
    char *at;
    size_t bytes, used; // `used` is more than `bytes` once something was cut off
};

void gpsh_text_add(struct gpsh_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// The numbers of 0 to n - 1 that are in the set, as "0-3,7"; ends with dots where it gets too long.
void gpsh_text_add_ranges(struct gpsh_text *text, int n, bool (*has)(const void *set, int number),
                          const void *set);

#endif
