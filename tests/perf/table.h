// SPDX-License-Identifier: BSD-3-Clause
// The table of a run, row by row: in lines of 80 columns, or as Markdown.
#ifndef PERF_TABLE_H
#define PERF_TABLE_H

#include <stdbool.h>

#include "report.h"

// `before`: the row above; NULL for the first one. Rows that share issuer, transport and memory
// stand under one heading.
void perf_table_print(const struct perf_row *row, const struct perf_row *before, bool markdown);

#endif
