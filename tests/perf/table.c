// SPDX-License-Identifier: BSD-3-Clause
#include "table.h"

#include <stdio.h>
#include <string.h>

#include "figures.h"

// Names, then figures: "test" and what the heading says in lines, all of it in Markdown.
enum { FIGURES = 6, TEXT = 48 };
static const char *const figure_names[FIGURES] = {"p50 us", "p99 us", "p99.9 us",
                                                  "max us", "GB/s",   "M/s"};

struct cells {
    char test[TEXT], size[TEXT], pes[TEXT], figures[FIGURES][TEXT];
};

static void pes_fill(char *text, const struct perf_row *row)
{
    int used = snprintf(text, TEXT, "%d", row->n_pes);
    if (row->pairs > 1)
        used += snprintf(text + used, TEXT - (size_t)used, ", %d pairs", row->pairs);
    if (row->bidirectional && used < TEXT)
        snprintf(text + used, TEXT - (size_t)used, ", both ways");
}

static void cells_fill(struct cells *cells, const struct perf_row *row)
{
    const double values[FIGURES] = {row->latency_us_p50, row->latency_us_p99, row->latency_us_p99_9,
                                    row->latency_us_max, row->bandwidth_gb_s, row->rate_m_s};
    snprintf(cells->test, TEXT, "%s", row->test);
    if (row->overlap)
        snprintf(cells->test, TEXT, "%s %.0f %%", row->test, row->overlap_percent);
    cells->size[0] = '\0';
    if (row->size_bytes)
        perf_size_text(row->size_bytes, cells->size, TEXT);
    for (int i = 0; i < FIGURES; i++)
        perf_figure_text(values[i], cells->figures[i], TEXT);
    pes_fill(cells->pes, row);
}

bool perf_table_under_one_heading(const struct perf_row *a, const struct perf_row *b)
{
    return !strcmp(a->issuer, b->issuer) && !strcmp(a->transport, b->transport) &&
           !strcmp(a->path, b->path) && !strcmp(a->memory, b->memory) && a->n_pes == b->n_pes &&
           a->pairs == b->pairs && a->bidirectional == b->bidirectional;
}

void perf_table_heading(FILE *out, const struct perf_row *row)
{
    char pes[TEXT];
    pes_fill(pes, row);
    fprintf(out, "# issued by: %s; PEs: %s; transport: %s, %s; memory: %s\n", row->issuer, pes,
            row->transport, row->path, row->memory);
}

// The columns of a line, without spaces at its end.
static void print_line(const char *test, const char *size, const char *const figures[FIGURES])
{
    enum { LINE = 256 };
    char line[LINE];
    int used = snprintf(line, LINE, "%-17.40s %8s", test, size);
    for (int i = 0; i < FIGURES; i++)
        used +=
            snprintf(line + used, LINE - (size_t)used, " %*s", i < FIGURES - 2 ? 8 : 7, figures[i]);
    while (used && line[used - 1] == ' ')
        line[--used] = '\0';
    puts(line);
}

static void print_plain(const struct perf_row *row, const struct cells *cells, bool heading)
{
    const char *figures[FIGURES];
    for (int i = 0; i < FIGURES; i++)
        figures[i] = cells->figures[i];
    if (heading) {
        perf_table_heading(stdout, row);
        print_line("test", "size", figure_names);
    }
    print_line(cells->test, cells->size, figures);
}

static void print_markdown(const struct perf_row *row, const struct cells *cells, bool heading)
{
    if (heading) {
        printf("| test | issuer | PEs | transport | path | memory | size |");
        for (int i = 0; i < FIGURES; i++)
            printf(" %s |", figure_names[i]);
        puts("\n|---|---|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|");
    }
    printf("| %s | %s | %s | %s | %s | %s | %s |", cells->test, row->issuer, cells->pes,
           row->transport, row->path, row->memory, cells->size);
    for (int i = 0; i < FIGURES; i++)
        printf(" %s |", cells->figures[i]);
    puts("");
}

void perf_table_print(const struct perf_row *row, const struct perf_row *before, bool markdown)
{
    struct cells cells;
    cells_fill(&cells, row);
    if (markdown) {
        print_markdown(row, &cells, !before);
    } else {
        bool heading = !before || !perf_table_under_one_heading(row, before);
        if (heading && before)
            puts("");
        print_plain(row, &cells, heading);
    }
    fflush(stdout);
}
