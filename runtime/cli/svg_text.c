// SPDX-License-Identifier: BSD-3-Clause
#include "svg_text.h"

#include <stdbool.h>
#include <string.h>

void gpsh_svg_text(FILE *out, const char *text, size_t most)
{
    bool cut = strlen(text) > most;
    for (size_t i = 0; text[i] && i < (cut ? most - 1 : most); i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '<' || c == '>' || c == '&' || c == '"')
            fprintf(out, "&#%d;", c);
        else
            fputc(c < 0x20 || c > 0x7e ? '?' : c, out);
    }
    if (cut)
        fputs("&#8230;", out);
}
