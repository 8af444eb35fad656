// SPDX-License-Identifier: BSD-3-Clause
// The page that a person reads: how wide it is, and colours, where standard output is a terminal.
#ifndef GPSH_PAGE_H
#define GPSH_PAGE_H

#include <stdbool.h>
#include <stdio.h>

// Columns of the terminal; 0 where standard output is no terminal: lines may be of any length.
int gpsh_page_columns(void);

enum gpsh_colour {
    GPSH_PLAIN,
    GPSH_GREEN,
    GPSH_YELLOW,
    GPSH_RED,
    GPSH_BLUE,
    GPSH_BOLD,
    GPSH_DIM,
};

// Begins a colour, or with GPSH_PLAIN ends it: "" where there are none. NO_COLOR and TERM=dumb turn
// them off.
const char *gpsh_page_colour(enum gpsh_colour colour);

// Prints a text in lines that fit, broken between words; each but the first begins with `indent`
// spaces. The first one has `used` columns already.
void gpsh_page_wrap(const char *text, int used, int indent);

// For --help and its like, to `out`: columns are the terminal's, 100 at most, and 80 where `out` is
// no terminal.
int gpsh_page_help_columns(FILE *out);
// A text in lines that fit; a line break in it stays one.
void gpsh_page_help(FILE *out, const char *text, int used, int indent);
// Several paragraphs, each after an empty line; NULL ends them.
void gpsh_page_help_paragraphs(const char *const *texts);

// A paragraph of a file, in lines of `width` columns; each begins with `mark` and a space, unless
// that is "".
void gpsh_page_document(int width, const char *mark, const char *text);

// A paragraph: on a terminal in lines that fit, and else in one line.
void gpsh_page_paragraph(const char *text);

// "name          text": on a terminal in lines that fit, below each other, and else in one line.
void gpsh_page_field(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
