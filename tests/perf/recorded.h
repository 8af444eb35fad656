// SPDX-License-Identifier: BSD-3-Clause
// A run that was written as JSON.
#ifndef PERF_RECORDED_H
#define PERF_RECORDED_H

#include <stdbool.h>

#include "json_read.h"
#include "report.h"

struct perf_recorded {
    const char *name; // of the file; not owned
    struct perf_json *json;
    struct perf_row *rows;
    int n_rows;
};

// False, with a sentence on stderr, if the file cannot be read or is none that --json has written.
bool perf_recorded_read(struct perf_recorded *run, const char *path);
// The same of a text; `name` stands in sentences.
bool perf_recorded_parse(struct perf_recorded *run, const char *name, const char *text);
// "machine", "cpu": a text of the document, or "".
const char *perf_recorded_text(const struct perf_recorded *run, const char *part, const char *key);
// "machine", "load": a number of the document, or 0.
double perf_recorded_number(const struct perf_recorded *run, const char *part, const char *key);
// What no library can beat, measured beside its rows: memcpy, plain loads and stores.
bool perf_row_is_floor(const struct perf_row *row);
void perf_recorded_clear(struct perf_recorded *run);

#endif
