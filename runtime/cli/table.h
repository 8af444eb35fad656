// SPDX-License-Identifier: BSD-3-Clause
// Text in columns that line up.
#ifndef GPSH_TABLE_H
#define GPSH_TABLE_H

enum { GPSH_TABLE_COLUMNS = 24 };

struct gpsh_table {
    int columns;
    int n;        // cells so far, row by row
    char **cells; // [n]; one that there was no memory for is NULL
};

// The next cell: the rows are filled from left to right. Start with {.columns = ...}.
void gpsh_table_add(struct gpsh_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Several at once: "one|two|three".
void gpsh_table_add_words(struct gpsh_table *table, const char *words);
// Prints it to the standard output and forgets the cells. A row is a line without spaces at its
// end; but where a terminal is too narrow for it, the last cell is broken between words, and if the
// cells before it do not fit either, all stand below the first one.
void gpsh_table_print(struct gpsh_table *table);

#endif
