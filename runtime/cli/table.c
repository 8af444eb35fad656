// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // vasprintf
#include "table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/printable.h"
#include "core/text.h"
#include "page.h"

// A cell that is longer than WIDEST pushes the rest of its own line aside, and no other. The last
// cell of a row that a terminal is too narrow for begins below it where MOST columns are taken.
enum { WIDEST = 40, GAP = 2, MOST = 60, BELOW = 4 };

// NULL: no memory. An escape (core/printable.h) is four characters.
__attribute__((format(printf, 1, 0))) static char *cell_make(const char *format, va_list args)
{
    char *text;
    int length = vasprintf(&text, format, args);
    if (length < 0)
        return NULL;
    size_t most = 4 * (size_t)length + 1;
    char *cell = realloc(text, most);
    if (cell)
        gpsh_printable(cell, most);
    else
        free(text);
    return cell;
}

void gpsh_table_add(struct gpsh_table *table, const char *format, ...)
{
    char **more = realloc(table->cells, ((size_t)table->n + 1) * sizeof *more);
    if (!more)
        return;
    va_list args;
    va_start(args, format);
    table->cells = more;
    table->cells[table->n++] = cell_make(format, args);
    va_end(args);
}

void gpsh_table_add_words(struct gpsh_table *table, const char *words)
{
    for (size_t length; *words; words += length + (words[length] == '|')) {
        length = strcspn(words, "|");
        gpsh_table_add(table, "%.*s", (int)length, words);
    }
}

static const char *text_of(const struct gpsh_table *table, int cell)
{
    return table->cells[cell] ? table->cells[cell] : "";
}

// `used`: columns that the row has taken.
static void print_last(const char *text, int used)
{
    int columns = gpsh_page_columns(), indent = used;
    if (!columns || used + (int)strlen(text) <= columns) {
        puts(text);
        return;
    }
    if (used > MOST || used > columns / 2) {
        indent = BELOW;
        printf("\n%*s", indent, "");
    }
    gpsh_page_wrap(text, indent, indent);
}

// The first cell of a row, and the others below it: for a terminal that even a row without its last
// cell does not fit on.
static void print_folded(const struct gpsh_table *table)
{
    for (int i = 0; i < table->n; i += table->columns) {
        char others[4096];
        struct gpsh_text t = {others, sizeof others, 0};
        puts(text_of(table, i));
        for (int k = i + 1; k < i + table->columns && k < table->n; k++)
            gpsh_text_add(&t, "%s%s", t.used ? "; " : "", text_of(table, k));
        if (!t.used)
            continue;
        printf("%*s", BELOW, "");
        gpsh_page_wrap(others, BELOW, BELOW);
    }
}

static void print_rows(const struct gpsh_table *table, const int *width)
{
    for (int i = 0, used = 0; i < table->n; i++) {
        bool last = (i + 1) % table->columns == 0 || i + 1 == table->n;
        if (last)
            print_last(text_of(table, i), used);
        used =
            last ? 0
                 : used + printf("%-*s%*s", width[i % table->columns], text_of(table, i), GAP, "");
    }
}

void gpsh_table_print(struct gpsh_table *table)
{
    int columns = gpsh_page_columns(), lead = 0, width[GPSH_TABLE_COLUMNS] = {0};
    for (int i = 0; i < table->n; i++) {
        int length = (int)strlen(text_of(table, i)), *column = &width[i % table->columns];
        if (length > *column && length <= WIDEST)
            *column = length;
    }
    for (int i = 0; i + 1 < table->columns; i++)
        lead += width[i] + GAP;
    if (columns && lead > columns)
        print_folded(table);
    else
        print_rows(table, width);
    for (int i = 0; i < table->n; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct gpsh_table){.columns = table->columns};
}
