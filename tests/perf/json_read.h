// SPDX-License-Identifier: BSD-3-Clause
// Reads JSON (RFC 8259) into a tree.
#ifndef PERF_JSON_READ_H
#define PERF_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

enum perf_json_kind {
    PERF_JSON_NULL,
    PERF_JSON_BOOL,
    PERF_JSON_NUMBER,
    PERF_JSON_TEXT,
    PERF_JSON_LIST,
    PERF_JSON_OBJECT,
};

struct perf_json {
    enum perf_json_kind kind;
    char *key;              // in an object; else NULL
    char *text;             // of a text; \u escapes beyond ASCII are '?'
    double number;          // of a number; 1 for true
    struct perf_json *more; // inside a list or an object
    size_t n;
};

// NULL if the text is no JSON (then *problem is a phrase about it, and *line tells where) or if
// there is no memory. To be freed by perf_json_free.
struct perf_json *perf_json_parse(const char *text, const char **problem, int *line);
void perf_json_free(struct perf_json *json); // NULL is legal

// The member of an object; NULL if there is none, and of what is no object, or NULL.
const struct perf_json *perf_json_get(const struct perf_json *json, const char *key);
// "" and 0 where it is something else, or NULL.
const char *perf_json_text(const struct perf_json *json);
double perf_json_number(const struct perf_json *json);

#endif
