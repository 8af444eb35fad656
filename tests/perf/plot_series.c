// SPDX-License-Identifier: BSD-3-Clause
#include "plot_series.h"

#include <stdlib.h>
#include <string.h>

#include "table.h"

static double value_of(const struct perf_row *row, enum perf_axis axis)
{
    double value = axis == PERF_LATENCY ? row->latency_us_p50 : row->bandwidth_gb_s;
    return row->size_bytes ? value : 0;
}

static bool is_alike(const struct perf_row *a, const struct perf_row *b)
{
    return !strcmp(a->test, b->test) && perf_table_under_one_heading(a, b);
}

static int colour_of(struct perf_chart *chart, const struct perf_row *row)
{
    for (int i = 0; i < chart->n; i++)
        if (is_alike(chart->series[i].row, row))
            return chart->series[i].colour;
    return perf_row_is_floor(row) ? 0 : chart->colours++;
}

static struct perf_series *series_of(struct perf_chart *chart, const struct perf_row *row, int run)
{
    for (int i = 0; i < chart->n; i++)
        if (chart->series[i].run == run && is_alike(chart->series[i].row, row))
            return &chart->series[i];
    size_t bytes = ((size_t)chart->n + 1) * sizeof *chart->series;
    struct perf_series *more = realloc(chart->series, bytes);
    if (!more)
        return NULL;
    chart->series = more;
    more[chart->n] = (struct perf_series){
        .row = row, .run = run, .colour = colour_of(chart, row), .floor = perf_row_is_floor(row)};
    return &more[chart->n++];
}

static void widen(struct perf_chart *chart, double size, double value)
{
    bool first = chart->most_size == 0;
    chart->least_size = first || size < chart->least_size ? size : chart->least_size;
    chart->most_size = first || size > chart->most_size ? size : chart->most_size;
    chart->least = first || value < chart->least ? value : chart->least;
    chart->most = first || value > chart->most ? value : chart->most;
}

// In its place by size; a size that is there already keeps its value (memcpy beside put and get).
static bool point_add(struct perf_chart *chart, struct perf_series *s, double size, double value)
{
    int at = s->n;
    while (at > 0 && s->points[at - 1].size >= size)
        at--;
    if (at < s->n && s->points[at].size == size)
        return true;
    struct perf_point *more = realloc(s->points, ((size_t)s->n + 1) * sizeof *more);
    if (!more)
        return false;
    s->points = more;
    memmove(more + at + 1, more + at, (size_t)(s->n - at) * sizeof *more);
    more[at] = (struct perf_point){size, value};
    s->n++;
    widen(chart, size, value);
    return true;
}

bool perf_chart_make(struct perf_chart *chart, enum perf_axis axis,
                     const struct perf_recorded *runs, int n_runs)
{
    bool good = true;
    *chart = (struct perf_chart){.n = 0};
    for (int run = 0; run < n_runs && good; run++)
        for (int i = 0; i < runs[run].n_rows && good; i++) {
            const struct perf_row *row = &runs[run].rows[i];
            double value = value_of(row, axis);
            if (value <= 0)
                continue;
            struct perf_series *s = series_of(chart, row, run);
            good = s && point_add(chart, s, (double)row->size_bytes, value);
        }
    return good;
}

void perf_chart_clear(struct perf_chart *chart)
{
    for (int i = 0; i < chart->n; i++)
        free(chart->series[i].points);
    free(chart->series);
    *chart = (struct perf_chart){.n = 0};
}
