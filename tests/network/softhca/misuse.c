// SPDX-License-Identifier: BSD-3-Clause
// What a program may not do with a queue, by name. Hardware answers with an error completion at
// best; here it is also said what was wrong, so that tests can fail on the words "softhca: misuse".
#include <stdarg.h>
#include <stdio.h>

#include "softhca.h"

enum { LINES = 50 };

_Atomic uint32_t shca_misuses[SHCA_MISUSE_KINDS];

static const char *const names[SHCA_MISUSE_KINDS] = {
#define NAME(id, text) [SHCA_MISUSE_##id] = (text),
    SHCA_MISUSE_LIST(NAME)
#undef NAME
};

const char *shca_misuse_name(enum shca_misuse kind)
{
    return names[kind];
}

void shca_misuse(enum shca_misuse kind, uint32_t number, const char *format, ...)
{
    static _Atomic uint32_t lines;
    char text[384];
    va_list list;
    atomic_fetch_add(&shca_misuses[kind], 1);
    if (atomic_fetch_add(&lines, 1) >= LINES)
        return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    shca_say("misuse (%s): queue 0x%06x: %s", names[kind], number, text);
}
