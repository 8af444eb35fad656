// SPDX-License-Identifier: BSD-3-Clause
// Writes JSON, value by value and indented. The caller ends each object and list that it begins.
#ifndef GPSH_JSON_H
#define GPSH_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { GPSH_JSON_DEPTH = 16 };

struct gpsh_json {
    FILE *out;
    int depth;
    bool filled[GPSH_JSON_DEPTH]; // whether the object or list at a depth has something already
    char closing[GPSH_JSON_DEPTH];
};

// `key` is NULL in a list and for the outermost value. Start with {.out = stdout}.
void gpsh_json_object(struct gpsh_json *json, const char *key);
void gpsh_json_list(struct gpsh_json *json, const char *key);
// Ends the object or list that was begun last; the outermost one with a newline.
void gpsh_json_end(struct gpsh_json *json);
void gpsh_json_text(struct gpsh_json *json, const char *key, const char *text); // NULL: null
void gpsh_json_number(struct gpsh_json *json, const char *key, double number);
void gpsh_json_integer(struct gpsh_json *json, const char *key, int64_t number);
void gpsh_json_bool(struct gpsh_json *json, const char *key, bool value);

#endif
