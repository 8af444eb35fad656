// SPDX-License-Identifier: BSD-3-Clause
// The text of a settings file: a setting a line, NAME = VALUE. A # begins a comment at the start of
// a line and after a blank. Nothing here knows which settings there are.
#ifndef GPSH_SETTINGS_TEXT_H
#define GPSH_SETTINGS_TEXT_H

#include <stddef.h>

enum { GPSH_SETTINGS_FILE_BYTES = 1 << 18, GPSH_SETTINGS_LINE_BYTES = 1 << 12 }; // at most

struct gpsh_settings_line {
    const char *file; // as sentences name it
    int number;       // the first is 1
    const char *name, *value;
};

// Calls `take` for each setting in the text, which is changed; text[bytes] is there and may be,
// too. The line's strings last for the call. Stops at the first line that is none, with a sentence
// that names file and line, or that `take` returns an error for.
int gpsh_settings_text_read(const char *file, char *text, size_t bytes,
                            int (*take)(void *arg, const struct gpsh_settings_line *line),
                            void *arg);

// "FILE:LINE", or "FILE" for number 0; of a long one the end, which is what files differ in.
const char *gpsh_settings_line_place(const char *file, int number, char *out, size_t bytes);

#endif
