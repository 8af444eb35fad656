// SPDX-License-Identifier: BSD-3-Clause
// The table of a run, row by row: in lines of 80 columns, or as Markdown.
#ifndef PERF_TABLE_H
#define PERF_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "report.h"

// Rows that share all but test, size and figures stand under one heading.
bool perf_table_under_one_heading(const struct perf_row *a, const struct perf_row *b);
void perf_table_heading(FILE *out, const struct perf_row *row);
// `before`: the row above; NULL for the first one.
void perf_table_print(const struct perf_row *row, const struct perf_row *before, bool markdown);

#endif
