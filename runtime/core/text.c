// SPDX-License-Identifier: BSD-3-Clause
#include "core/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gpsh_text_add(struct gpsh_text *text, const char *format, ...)
{
    va_list args;
    if (text->used >= text->bytes)
        return;
    va_start(args, format);
    int n = vsnprintf(text->at + text->used, text->bytes - text->used, format, args);
    va_end(args);
    text->used += n > 0 ? (size_t)n : 0;
}

void gpsh_text_add_ranges(struct gpsh_text *text, int n, bool (*has)(const void *set, int number),
                          const void *set)
{
    static const char more[] = ",...";
    const char *comma = "";
    for (int first = 0, last; first < n; first = last + 1) {
        last = first;
        if (!has(set, first))
            continue;
        while (last + 1 < n && has(set, last + 1))
            last++;
        char piece[32];
        snprintf(piece, sizeof piece, last > first ? "%s%d-%d" : "%s%d", comma, first, last);
        if (text->used + strlen(piece) + sizeof more > text->bytes) {
            gpsh_text_add(text, "%s", more + !*comma);
            return;
        }
        gpsh_text_add(text, "%s", piece);
        comma = ",";
    }
}
