// SPDX-License-Identifier: BSD-3-Clause
#include "core/printable.h"

#include <stdio.h>
#include <string.h>

enum { ESCAPE = 4 }; // characters of \x1b

// Bytes of the printable character that begins here; 0: there is none. U+0080 to U+009F are control
// characters, too.
static size_t character(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t more = *at >= 0xf0 ? 3 : *at >= 0xe0 ? 2 : 1;
    if (*at < 0x80)
        return *at >= ' ' && *at != 0x7f;
    if (*at < 0xc2 || *at > 0xf4 || (*at == 0xc2 && at[1] < 0xa0) || (*at == 0xe0 && at[1] < 0xa0))
        return 0;
    for (size_t i = 1; i <= more; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return more + 1;
}

void gpsh_printable(char *text, size_t bytes)
{
    size_t length = strlen(text);
    for (size_t at = 0, good; at < length; at += good ? good : ESCAPE) {
        good = character(text + at);
        if (good)
            continue;
        if (at + ESCAPE >= bytes) {
            text[at] = '\0';
            return;
        }
        char escape[ESCAPE + 1];
        size_t rest = length - at - 1, room = bytes - at - ESCAPE - 1;
        rest = rest < room ? rest : room;
        snprintf(escape, sizeof escape, "\\x%02x", (unsigned char)text[at]);
        memmove(text + at + ESCAPE, text + at + 1, rest);
        memcpy(text + at, escape, ESCAPE);
        length = at + ESCAPE + rest;
        text[length] = '\0';
    }
}
