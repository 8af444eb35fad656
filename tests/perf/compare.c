// SPDX-License-Identifier: BSD-3-Clause
#include "compare.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"
#include "table.h"

struct ratio {
    double middle, low, high;
    enum perf_verdict verdict;
};

static const char *const words[PERF_VERDICTS] = {"same", "faster", "slower", "unclear"};

static struct ratio ratio_of(const struct perf_row *old, const struct perf_row *now,
                             double tolerance)
{
    double most = 1 + tolerance, least = 1 / most;
    struct ratio r = {.middle = now->us_p50 / old->us_p50,
                      .low = now->us_low / old->us_high,
                      .high = now->us_high / old->us_low};
    r.verdict = r.low > most                       ? PERF_SLOWER
                : r.high < least                   ? PERF_FASTER
                : r.low >= least && r.high <= most ? PERF_SAME
                                                   : PERF_UNCLEAR;
    return r;
}

// Of a floor: also where it varies so much that nothing can be said of it.
static bool has_moved(const struct ratio *r, double tolerance)
{
    bool beyond = r->middle > 1 + tolerance || r->middle < 1 / (1 + tolerance);
    return r->verdict != PERF_SAME && beyond;
}

static bool is_same_row(const struct perf_row *a, const struct perf_row *b)
{
    return !strcmp(a->test, b->test) && a->size_bytes == b->size_bytes &&
           perf_table_under_one_heading(a, b);
}

// The row of the other run; a test's rows may have the same name (memcpy beside put and get), so
// that each is given once.
static const struct perf_row *partner(const struct perf_recorded *run, const struct perf_row *row,
                                      bool *taken)
{
    for (int i = 0; i < run->n_rows; i++)
        if (!taken[i] && is_same_row(&run->rows[i], row)) {
            taken[i] = true;
            return &run->rows[i];
        }
    return NULL;
}

static void print_row(FILE *out, const struct perf_row *old, const struct perf_row *now,
                      const struct ratio *r)
{
    char size[32] = "", before[32], after[32], interval[64];
    if (now->size_bytes)
        perf_size_text(now->size_bytes, size, sizeof size);
    perf_figure_text(old->us_p50, before, sizeof before);
    perf_figure_text(now->us_p50, after, sizeof after);
    snprintf(interval, sizeof interval, "%.3f to %.3f", r->low, r->high);
    fprintf(out, "%-17s %8s %8s %8s %6.3f %16s %s\n", now->test, size, before, after, r->middle,
            interval, words[r->verdict]);
}

// What else is not the same: those figures may tell more about the machine than about gpushmem.
static void print_difference(FILE *out, const char *what, const char *old, const char *now)
{
    if (strcmp(old, now) != 0)
        fprintf(out, "Not the same: %s was %s%s%s, now it is %s%s%s.\n", what, *old ? "'" : "",
                *old ? old : "not told", *old ? "'" : "", *now ? "'" : "", *now ? now : "not told",
                *now ? "'" : "");
}

static void print_settings(FILE *out, const struct perf_recorded *a, const struct perf_recorded *b,
                           bool both)
{
    const struct perf_json *settings = perf_json_get(a->json, "settings");
    for (size_t i = 0; settings && i < settings->n; i++) {
        const char *name = settings->more[i].key;
        if (!name || (both && perf_json_get(perf_json_get(b->json, "settings"), name)))
            continue;
        print_difference(out, name, perf_recorded_text(both ? b : a, "settings", name),
                         perf_recorded_text(both ? a : b, "settings", name));
    }
}

static void print_differences(FILE *out, const struct perf_recorded *old,
                              const struct perf_recorded *now)
{
    static const char *const keys[][2] = {
        {"versions", "gpushmem"}, {"versions", "compiler"}, {"machine", "cpu"},
        {"machine", "system"},    {"machine", "gpus"},      {"machine", "gpu_driver"},
        {"machine", "nics"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        print_difference(out, keys[i][1], perf_recorded_text(old, keys[i][0], keys[i][1]),
                         perf_recorded_text(now, keys[i][0], keys[i][1]));
    print_settings(out, old, now, false);
    print_settings(out, now, old, true);
}

// A machine whose floors have moved has changed: then the rows say nothing about the library.
static const char *verdict_of(const struct perf_comparison *c, int rows)
{
    const int *counts = c->counts;
    if (c->floors_changed)
        return "the machine changed";
    if (counts[PERF_SLOWER] && counts[PERF_FASTER])
        return "mixed";
    if (counts[PERF_SLOWER] || counts[PERF_FASTER])
        return words[counts[PERF_SLOWER] ? PERF_SLOWER : PERF_FASTER];
    return 2 * counts[PERF_UNCLEAR] >= rows ? "unclear" : "the same";
}

static void print_verdict(FILE *out, const struct perf_comparison *c, const char *name,
                          double tolerance)
{
    const int *n = c->counts;
    int rows = n[PERF_SAME] + n[PERF_FASTER] + n[PERF_SLOWER] + n[PERF_UNCLEAR];
    if (!rows) {
        fprintf(out, "Verdict: none. No row of this run is in %s.\n", name);
        return;
    }
    fprintf(out,
            "Verdict: %s.%cOf %d rows, by more than %g %%: %d slower, %d faster; %d the same,\n"
            "%d unclear.\n",
            verdict_of(c, rows), c->floors_changed ? '\n' : ' ', rows, tolerance * 100,
            n[PERF_SLOWER], n[PERF_FASTER], n[PERF_SAME], n[PERF_UNCLEAR]);
    if (n[PERF_UNCLEAR])
        fprintf(out, "Unclear rows vary too much within a run: measure longer (--seconds),\n"
                     "or on an idle machine.\n");
    if (c->floors_changed)
        fprintf(out,
                "%d of %d floors (memcpy, raw-flag, raw-load) are not where they were, and what\n"
                "is slower or faster may be so by the machine. Measure both again, in turn.\n",
                c->floors_changed, c->floors);
    if (c->alone)
        fprintf(out, "%d rows are in one of the two runs only.\n", c->alone);
}

static void compare_rows(FILE *out, struct perf_comparison *c, const struct perf_recorded *old,
                         const struct perf_recorded *now, bool *taken, double tolerance)
{
    const struct perf_row *above = NULL;
    for (int i = 0; i < now->n_rows; i++) {
        const struct perf_row *row = &now->rows[i], *then = partner(old, row, taken);
        c->alone += !then;
        if (!then)
            continue;
        struct ratio ratio = ratio_of(then, row, tolerance);
        if (!above || !perf_table_under_one_heading(above, row)) {
            perf_table_heading(out, row);
            fprintf(out, "%-17s %8s %8s %8s %6s %16s\n", "test", "size", "then us", "now us",
                    "ratio", "interval");
        }
        print_row(out, then, row, &ratio);
        bool floor = perf_row_is_floor(row), changed = has_moved(&ratio, tolerance);
        c->counts[ratio.verdict] += !floor;
        c->floors += floor;
        c->floors_changed += floor && changed;
        above = row;
    }
    for (int i = 0; i < old->n_rows; i++)
        c->alone += !taken[i];
}

// Of the minute before each run: more than the machine has cores takes time from what is measured.
static void print_loads(FILE *out, const struct perf_recorded *old, const struct perf_recorded *now)
{
    double cores = perf_recorded_number(now, "machine", "cores"),
           then = perf_recorded_number(old, "machine", "load"),
           here = perf_recorded_number(now, "machine", "load");
    if (cores > 0)
        fprintf(out, "load: then %.1f, now %.1f, on %.0f cores%s\n", then, here, cores,
                here >= cores || then >= cores ? ": busy, so figures vary" : "");
}

struct perf_comparison perf_compare(FILE *out, const struct perf_recorded *old,
                                    const struct perf_recorded *now, double tolerance)
{
    struct perf_comparison c = {.alone = 0};
    bool *taken = calloc((size_t)old->n_rows + 1, sizeof *taken);
    if (!taken)
        return c;
    fprintf(out, "\n== compared with %s (%s) ==\n", old->name,
            perf_recorded_text(old, NULL, "time"));
    print_loads(out, old, now);
    compare_rows(out, &c, old, now, taken, tolerance);
    fputc('\n', out);
    print_differences(out, old, now);
    print_verdict(out, &c, old->name, tolerance);
    free(taken);
    return c;
}
