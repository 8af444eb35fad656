// SPDX-License-Identifier: BSD-3-Clause
#include "stat_counters.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "table.h"

// The numbers of a row, each with its names.
static const struct counter {
    const char *column;
    const char *metric; // of Prometheus
    const char *help;
    size_t offset;
    bool gauge;
} counters[] = {
#define COUNTER(field) offsetof(struct gpushmem_counters, field)
    {"operations", "operations_total", "operations accepted, or commands of kernels read",
     COUNTER(operations), false},
    {"completed", "completed_total", "of them complete", COUNTER(completed), false},
    {"bytes", "bytes_total", "bytes of payload that the operations move", COUNTER(bytes), false},
    {"posts", "posts_total", "operations that the commands of a ring became", COUNTER(posts),
     false},
    {"retries", "retries_total", "times there was no room for an operation", COUNTER(retries),
     false},
    {"batches", "batches_total", "passes over a ring that read something", COUNTER(batches), false},
    {"stalls", "stalls_total", "passes over a ring that ended for want of room", COUNTER(stalls),
     false},
    {"errors", "errors_total", "commands that failed", COUNTER(errors), false},
    {"peak", "peak_under_way", "most operations or commands under way at once", COUNTER(peak),
     true},
#undef COUNTER
};
enum { N_COUNTERS = sizeof counters / sizeof counters[0] };

static uint64_t *number(struct gpushmem_counters *row, int i)
{
    return (uint64_t *)(void *)((char *)row + counters[i].offset);
}

static bool next_row(const struct gpsh_board *board, uint64_t *position,
                     struct gpushmem_counters *row)
{
    return gpsh_sheet_next(&board->sheet, board, position, row);
}

static bool alike(const struct gpushmem_counters *a, const struct gpushmem_counters *b)
{
    return a->kind == b->kind && a->number == b->number && !strcmp(a->transport, b->transport);
}

// The next row, with those of the same queues towards further PEs added: they follow each other.
static bool next_sum(const struct gpsh_board *board, uint64_t *position,
                     struct gpushmem_counters *sum)
{
    struct gpushmem_counters row;
    if (!next_row(board, position, sum))
        return false;
    for (uint64_t ahead = *position; next_row(board, &ahead, &row) && alike(sum, &row);
         *position = ahead) {
        sum->pe = -1;
        for (int i = 0; i < N_COUNTERS; i++) {
            uint64_t more = *number(&row, i), *so_far = number(sum, i);
            *so_far = !counters[i].gauge ? *so_far + more : more > *so_far ? more : *so_far;
        }
    }
    return true;
}

// ---- The table ----

// What the row has counted in an earlier copy of its board.
static uint64_t operations_before(const struct gpsh_board *board,
                                  const struct gpushmem_counters *row, bool peers)
{
    struct gpushmem_counters then;
    uint64_t position = 0, found = 0;
    while (next_row(board, &position, &then))
        if (alike(&then, row) && (!peers || then.pe == row->pe))
            found += then.operations;
    return found;
}

static void add_row(struct gpsh_table *table, const struct gpsh_board *board,
                    struct gpushmem_counters *row)
{
    bool ring = row->kind == GPUSHMEM_COUNTERS_RING;
    gpsh_table_add(table, "%d", board->pe);
    if (ring)
        gpsh_table_add(table, "ring %d", row->number);
    else
        gpsh_table_add(table, "%s", row->owner);
    gpsh_table_add(table, "%s", ring ? "-" : row->transport);
    gpsh_table_add(table, row->pe < 0 ? "%s" : "%s%d",
                   ring          ? "-"
                   : row->pe < 0 ? "all"
                                 : "",
                   row->pe);
    for (int i = 0; i < N_COUNTERS; i++)
        gpsh_table_add(table, "%" PRIu64, *number(row, i));
}

void gpsh_stat_table(const struct gpsh_boards *boards, bool peers, const struct gpsh_boards *before,
                     double seconds)
{
    struct gpsh_table table = {.columns = 4 + N_COUNTERS + (before != NULL)};
    gpsh_table_add_words(&table, "PE|of|by|to PE");
    for (int i = 0; i < N_COUNTERS; i++)
        gpsh_table_add(&table, "%s", counters[i].column);
    if (before)
        gpsh_table_add(&table, "operations/s");
    for (int i = 0; i < boards->n; i++) {
        struct gpushmem_counters row;
        const struct gpsh_board *board = boards->list[i].board;
        for (uint64_t at = 0; peers ? next_row(board, &at, &row) : next_sum(board, &at, &row);) {
            add_row(&table, board, &row);
            if (!before)
                continue;
            uint64_t then = operations_before(before->list[i].board, &row, peers);
            gpsh_table_add(&table, "%.0f", (double)(row.operations - then) / seconds);
        }
    }
    gpsh_table_print(&table);
}

// ---- Prometheus ----

static void print_label(const char *name, const char *value, const char *before)
{
    printf("%s%s=\"", before, name);
    for (const char *c = value; *c; c++) {
        if (*c == '\\' || *c == '"')
            putchar('\\');
        if (*c == '\n')
            fputs("\\n", stdout);
        else
            putchar(*c);
    }
    putchar('"');
}

static void print_sample(const struct counter *counter, const struct gpsh_board *board,
                         const struct gpushmem_counters *row, uint64_t value)
{
    char text[16];
    printf("gpushmem_%s", counter->metric);
    print_label("job", board->job, "{");
    snprintf(text, sizeof text, "%d", board->pe);
    print_label("pe", text, ",");
    print_label("owner", row->owner, ",");
    snprintf(text, sizeof text, "%d", row->kind == GPUSHMEM_COUNTERS_RING ? row->number : row->pe);
    if (row->kind == GPUSHMEM_COUNTERS_RING) {
        print_label("ring", text, ",");
    } else {
        print_label("transport", row->transport, ",");
        print_label("peer", text, ",");
    }
    printf("} %" PRIu64 "\n", value);
}

static void print_metric(const struct gpsh_boards *boards, int which)
{
    const struct counter *counter = &counters[which];
    printf("# HELP gpushmem_%s %s\n# TYPE gpushmem_%s %s\n", counter->metric, counter->help,
           counter->metric, counter->gauge ? "gauge" : "counter");
    for (int i = 0; i < boards->n; i++) {
        struct gpushmem_counters row;
        for (uint64_t at = 0; next_row(boards->list[i].board, &at, &row);)
            print_sample(counter, boards->list[i].board, &row, *number(&row, which));
    }
}

void gpsh_stat_prometheus(const struct gpsh_boards *boards)
{
    for (int i = 0; i < N_COUNTERS; i++)
        print_metric(boards, i);
}
