// SPDX-License-Identifier: BSD-3-Clause
// The rows of settings.def, and their names.
#ifndef GPSH_SETTING_ROWS_H
#define GPSH_SETTING_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/settings.h"

#define GPSH_SETTING_PREFIX "GPUSHMEM_"

enum gpsh_setting_kind {
    GPSH_KIND_INT,
    GPSH_KIND_SIZE,
    GPSH_KIND_BOOL,
    GPSH_KIND_STRING,
    GPSH_KIND_CHOICE,
    GPSH_KIND_LIST
};

struct gpsh_setting_spec {
    const char *name; // with the prefix
    enum gpsh_setting_kind kind;
    size_t offset; // of its field in struct gpsh_settings
    const char *standard;
    int64_t low, high;
    const char *choices;
    const char *help;
};

extern const struct gpsh_setting_spec gpsh_setting_specs[GPSH_SETTINGS];

// The row of a name, or GPSH_SETTINGS if there is none.
int gpsh_setting_find(const char *name, size_t length);

// Whether a GPUSHMEM_* variable belongs to a program around the library: none of its settings, and
// never warned about.
bool gpsh_setting_is_foreign(const char *entry);

// What to do about a name that is unknown, for a sentence that ends so: "did you mean
// GPUSHMEM_HEAP_SIZE?"
const char *gpsh_setting_advice(const char *name, size_t length, char *out, size_t bytes);

#endif
