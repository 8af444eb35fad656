// SPDX-License-Identifier: BSD-3-Clause
// Which of some words somebody meant who typed another one. Of the library and its programs.
#ifndef GPSH_SPELLING_H
#define GPSH_SPELLING_H

#include <stddef.h>

struct gpsh_spelling {
    const char *typed;
    size_t length; // of `typed`
    int wrong;     // letters of `meant`
    const char *meant;
};

// `word`, of fewer than 64 characters, could be what was typed: it takes the place of `meant` if it
// is nearer. Two letters may be wrong, missing or too many, though not more than half of them. Case
// does not count. `meant` becomes `name`, which lasts as long as the caller wants it.
void gpsh_spelling_consider(struct gpsh_spelling *spelling, const char *word, const char *name);

// "did you mean X? ", in `out`, or nothing where no word was near enough.
enum { GPSH_SPELLING_BYTES = 96 };
const char *gpsh_spelling_ask(const struct gpsh_spelling *spelling, char out[GPSH_SPELLING_BYTES]);

#endif
