// SPDX-License-Identifier: BSD-3-Clause
#include "core/spelling.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// Letters to insert, remove or replace in one word to get the other.
static int difference(const char *a, size_t length, const char *b)
{
    enum { MOST = 64 }; // no word is that long
    int row[MOST], b_length = (int)strlen(b);
    for (int j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 0; i < length; i++) {
        int diagonal = row[0], typed = toupper((unsigned char)a[i]);
        row[0] = (int)i + 1;
        for (int j = 0; j < b_length; j++) {
            int replaced = diagonal + (typed != toupper((unsigned char)b[j])),
                shorter = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = replaced < shorter ? replaced : shorter;
        }
    }
    return row[b_length];
}

void gpsh_spelling_consider(struct gpsh_spelling *spelling, const char *word, const char *name)
{
    enum { MOST = 2 };
    int wrong = difference(spelling->typed, spelling->length, word);
    if (wrong > MOST || 2 * (size_t)wrong > spelling->length)
        return;
    if (!spelling->meant || wrong < spelling->wrong) {
        spelling->wrong = wrong;
        spelling->meant = name;
    }
}

const char *gpsh_spelling_ask(const struct gpsh_spelling *spelling, char out[GPSH_SPELLING_BYTES])
{
    out[0] = '\0';
    if (spelling->meant)
        snprintf(out, GPSH_SPELLING_BYTES, "did you mean %s? ", spelling->meant);
    return out;
}
