// SPDX-License-Identifier: BSD-3-Clause
#include "plot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "figures.h"
#include "plot_series.h"
#include "runtime/cli/svg_text.h"

enum {
    WIDTH = 960,
    LEFT = 76,
    RIGHT = 300,
    HEAD = 58,
    PANEL = 340,
    TOP = 34,
    BOTTOM = 58,
    FOOT = 24
};
enum { LEGEND = WIDTH - RIGHT + 26, LINE = 19, LEGEND_TEXT = 38, MOST_LABELS = 11, SHAPES = 3 };

// Okabe and Ito's, which most colour-blind people can tell apart.
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#5b4a8a", "#8c6d1f"};
enum { COLOURS = sizeof colours / sizeof colours[0] };
static const char floor_colour[] = "#4a4f58";
// By run: full, then broken in different ways.
static const char *const dashes[] = {"", "7 4", "2 4", "10 3 2 3", "1 3"};
enum { DASHES = sizeof dashes / sizeof dashes[0] };
static const char *const ring_dashes[DASHES] = {"", "4 3", "1.5 3", "7 3 1.5 3", "1 2"};

struct panel {
    FILE *out;
    const struct perf_chart *chart;
    double top;                          // of the drawing's frame
    double low_x, high_x, low_y, high_y; // logarithms, base 2 and base 10
};

static double x_of(const struct panel *p, double size)
{
    return LEFT + (log2(size) - p->low_x) / (p->high_x - p->low_x) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct panel *p, double value)
{
    return p->top + (p->high_y - log10(value)) / (p->high_y - p->low_y) * (PANEL - TOP - BOTTOM);
}

static double bottom_of(const struct panel *p)
{
    return p->top + PANEL - TOP - BOTTOM;
}

static void text_put(FILE *out, double x, double y, const char *style, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, style);
    gpsh_svg_text(out, text, LEGEND_TEXT * 2);
    fputs("</text>\n", out);
}

static void line_put(FILE *out, double x1, double y1, double x2, double y2, const char *style)
{
    fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1,
            x2, y2, style);
}

// ---- Axes ----

static void sizes_draw(const struct panel *p)
{
    int low = (int)ceil(p->low_x), high = (int)floor(p->high_x), step = 1;
    while ((high - low) / step >= MOST_LABELS)
        step++;
    for (int power = low; power <= high; power += step) {
        char text[32];
        double x = x_of(p, exp2(power));
        perf_size_text(UINT64_C(1) << power, text, sizeof text);
        line_put(p->out, x, p->top, x, bottom_of(p), "grid");
        text_put(p->out, x, bottom_of(p) + 18, "tick middle", text);
    }
    text_put(p->out, (LEFT + WIDTH - RIGHT) / 2.0, bottom_of(p) + 38, "axis middle", "size");
}

// 1, 10, 100; where there are few of them also 2 and 5, or all.
static void values_draw(const struct panel *p)
{
    static const double steps[] = {1, 2, 5, 3, 4, 6, 7, 8, 9};
    double decades = p->high_y - p->low_y;
    int n = decades > 3 ? 1 : decades > 0.7 ? 3 : 9;
    for (int decade = (int)floor(p->low_y); decade <= (int)ceil(p->high_y); decade++)
        for (int i = 0; i < n; i++) {
            char text[32];
            double value = steps[i] * pow(10, decade), at = log10(value);
            if (at < p->low_y - 1e-9 || at > p->high_y + 1e-9)
                continue;
            snprintf(text, sizeof text, "%g", value);
            line_put(p->out, LEFT, y_of(p, value), WIDTH - RIGHT, y_of(p, value), "grid");
            text_put(p->out, LEFT - 8, y_of(p, value) + 4, "tick end", text);
        }
}

// ---- Series ----

static const char *colour_of(const struct perf_series *s)
{
    return s->floor ? floor_colour : colours[s->colour % COLOURS];
}

static void dash_put(FILE *out, const char *dash)
{
    if (*dash)
        fprintf(out, " stroke-dasharray=\"%s\"", dash);
}

// The shape is what more series than colours still tells apart.
static void shape_put(FILE *out, int shape, double x, double y, double r)
{
    if (shape == 0)
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"", x, y, r);
    else if (shape == 1)
        fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"", x - r, y - r,
                2 * r, 2 * r);
    else
        fprintf(out, "<path d=\"M%.1f %.1f l%.1f %.1f l-%.1f %.1f l-%.1f -%.1f z\"", x, y - r, r, r,
                r, r, r, r);
}

// The only point of a series is a wide ring around what others have there; that of another run has
// no line that could be broken, so the ring is, and lies around the first run's.
static void mark_put(FILE *out, const struct perf_series *s, double x, double y)
{
    bool alone = s->n == 1;
    const char *stroke = colour_of(s), *fill = alone ? "none" : s->run ? "#ffffff" : stroke;
    shape_put(out, s->colour / COLOURS % SHAPES, x, y, alone ? 6.5 + 4 * s->run : 3.4);
    fprintf(out, " fill=\"%s\" stroke=\"%s\" stroke-width=\"%s\"", fill, stroke,
            alone ? "2.4" : "1.4");
    dash_put(out, alone ? ring_dashes[s->run % DASHES] : "");
    fputs("/>\n", out);
}

// A floor is a bar at each of its sizes: it holds for no others.
static void bar_put(FILE *out, const struct perf_series *s, double x, double y)
{
    enum { HALF = 10 };
    fprintf(out,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
            "stroke-width=\"3\"",
            x - HALF, y, x + HALF, y, floor_colour);
    dash_put(out, ring_dashes[s->run % DASHES]);
    fputs("/>\n", out);
}

static void stroke_put(FILE *out, const struct perf_series *s)
{
    fprintf(out, " fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"", colour_of(s),
            s->floor ? "1.4" : "2");
    dash_put(out, s->floor ? "5 3" : dashes[s->run % DASHES]);
    fputs("/>\n", out);
}

static void points_join(const struct panel *p, const struct perf_series *s)
{
    fputs("<polyline points=\"", p->out);
    for (int i = 0; i < s->n; i++)
        fprintf(p->out, "%s%.1f,%.1f", i ? " " : "", x_of(p, s->points[i].size),
                y_of(p, s->points[i].value));
    fputc('"', p->out);
    stroke_put(p->out, s);
}

static void series_draw(const struct panel *p, const struct perf_series *s)
{
    fprintf(p->out, "<g class=\"%s\">\n", s->floor ? "series floor" : "series");
    if (s->n > 1)
        points_join(p, s);
    for (int i = 0; i < s->n; i++) {
        double x = x_of(p, s->points[i].size), y = y_of(p, s->points[i].value);
        if (s->floor)
            bar_put(p->out, s, x, y);
        else
            mark_put(p->out, s, x, y);
    }
    fputs("</g>\n", p->out);
}

// Lines, then floors, which they may hide, then what is a single point.
static void all_draw(const struct panel *p)
{
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < p->chart->n; i++) {
            const struct perf_series *s = &p->chart->series[i];
            if (turn == (s->floor ? 1 : s->n > 1 ? 0 : 2))
                series_draw(p, s);
        }
}

static void label_make(const struct perf_series *s, char *label, size_t room)
{
    const struct perf_row *r = s->row;
    int used = snprintf(label, room, "%s%s, %s, %s", s->floor ? "floor: " : "", r->test, r->issuer,
                        r->path);
    if (r->pairs > 1 && used > 0 && (size_t)used < room)
        used += snprintf(label + used, room - (size_t)used, ", %d pairs", r->pairs);
    if (r->bidirectional && used > 0 && (size_t)used < room)
        snprintf(label + used, room - (size_t)used, ", both ways");
}

// Each series once, whatever runs have it.
static void legend_draw(const struct panel *p)
{
    double y = p->top + 8;
    for (int i = 0; i < p->chart->n; i++) {
        struct perf_series s = p->chart->series[i];
        char label[128], before[128];
        bool known = false;
        label_make(&s, label, sizeof label);
        for (int k = 0; k < i && !known; k++) {
            label_make(&p->chart->series[k], before, sizeof before);
            known = !strcmp(label, before);
        }
        if (known)
            continue;
        s.run = 0;
        if (s.n > 1) {
            fprintf(p->out, "<polyline points=\"%d,%.1f %d,%.1f\"", LEGEND, y, LEGEND + 28, y);
            stroke_put(p->out, &s);
        }
        if (s.floor)
            bar_put(p->out, &s, LEGEND + 14, y);
        else
            mark_put(p->out, &s, LEGEND + 14, y);
        text_put(p->out, LEGEND + 36, y + 4, "tick", label);
        y += LINE;
    }
}

// ---- The picture ----

static double panel_height(const struct perf_chart *chart)
{
    double legend = TOP + BOTTOM + (double)LINE * chart->n;
    return legend > PANEL ? legend : PANEL;
}

static void panel_draw(FILE *out, const struct perf_chart *chart, const char *title, double top)
{
    struct panel p = {.out = out,
                      .chart = chart,
                      .top = top + TOP,
                      .low_x = log2(chart->least_size) - 0.4,
                      .high_x = log2(chart->most_size) + 0.4,
                      .low_y = log10(chart->least) - 0.08,
                      .high_y = log10(chart->most) + 0.08};
    if (p.high_y - p.low_y < 0.4) {
        p.low_y -= 0.2;
        p.high_y += 0.2;
    }
    if (p.high_x - p.low_x < 1) {
        p.low_x -= 1;
        p.high_x += 1;
    }
    text_put(out, LEFT, top + 20, "name", title);
    sizes_draw(&p);
    values_draw(&p);
    fprintf(out, "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\" class=\"frame\"/>\n", LEFT,
            p.top, WIDTH - LEFT - RIGHT, PANEL - TOP - BOTTOM);
    all_draw(&p);
    legend_draw(&p);
}

// How a run is drawn: its line, and the ring of what has no line.
static void run_draw(FILE *out, int run, const char *name, double x, double y)
{
    fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#3c4149\"", x, y,
            x + 34, y);
    fputs(" stroke-width=\"2\"", out);
    dash_put(out, dashes[run % DASHES]);
    fputs("/>\n", out);
    shape_put(out, 0, x + 50, y, 6.5);
    fputs(" fill=\"none\" stroke=\"#3c4149\" stroke-width=\"2.4\"", out);
    dash_put(out, ring_dashes[run % DASHES]);
    fputs("/>\n", out);
    text_put(out, x + 64, y + 4, "tick", name);
}

static void runs_draw(FILE *out, const struct perf_recorded *runs, int n, double y)
{
    double x = LEFT;
    for (int i = 0; i < n; i++) {
        char text[96];
        const char *slash = strrchr(runs[i].name, '/');
        snprintf(text, sizeof text, "%.60s", slash && slash[1] ? slash + 1 : runs[i].name);
        run_draw(out, i, text, x, y);
        x += 84 + 7.0 * (double)strlen(text);
    }
}

static void picture_draw(FILE *out, const struct perf_chart *charts,
                         const struct perf_recorded *runs, int n)
{
    static const char *const titles[PERF_AXES] = {"latency, us (median)", "bandwidth, GB/s"};
    double height = HEAD + FOOT;
    for (int axis = 0; axis < PERF_AXES; axis++)
        height += charts[axis].n ? panel_height(&charts[axis]) : 0;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
            "viewBox=\"0 0 %d %.0f\">\n<style>\ntext { font-family: sans-serif; fill: #20242a }\n"
            ".name { font-size: 15px; font-weight: bold }\n.tick { font-size: 12px }\n"
            ".axis { font-size: 12px; fill: #555b65 }\n.middle { text-anchor: middle }\n"
            ".end { text-anchor: end }\n.grid { stroke: #e3e6ea }\n"
            ".frame { fill: none; stroke: #9aa1ab }\n</style>\n"
            "<rect width=\"%d\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
            WIDTH, height, WIDTH, height, WIDTH, height);
    char about[256];
    snprintf(about, sizeof about, "gpushmem perf %.60s, %.80s",
             perf_recorded_text(&runs[0], "versions", "gpushmem"),
             perf_recorded_text(&runs[0], "machine", "cpu"));
    text_put(out, LEFT, 26, "axis", about);
    runs_draw(out, runs, n, 46);
    double top = HEAD;
    for (int axis = 0; axis < PERF_AXES; axis++)
        if (charts[axis].n) {
            panel_draw(out, &charts[axis], titles[axis], top);
            top += panel_height(&charts[axis]);
        }
    fputs("</svg>\n", out);
}

static bool file_write(const char *path, const struct perf_chart *charts,
                       const struct perf_recorded *runs, int n)
{
    FILE *out = fopen(path, "we");
    if (out)
        picture_draw(out, charts, runs, n);
    bool good = out && !ferror(out);
    if (out)
        good &= fclose(out) == 0;
    if (!good)
        fprintf(stderr, "gpushmem perf: cannot write --plot %s: %s\n", path, strerror(errno));
    return good;
}

bool perf_plot_write(const char *path, const struct perf_recorded *runs, int n)
{
    struct perf_chart charts[PERF_AXES] = {{.n = 0}};
    bool good = true, any = false;
    for (int axis = 0; axis < PERF_AXES && good; axis++) {
        good = perf_chart_make(&charts[axis], (enum perf_axis)axis, runs, n);
        any |= charts[axis].n > 0;
    }
    if (!good)
        fprintf(stderr, "gpushmem perf: there is no memory for --plot %s\n", path);
    else if (!any)
        fprintf(stderr, "gpushmem perf: --plot %s is not written: no row has a size to draw\n",
                path);
    else
        good = file_write(path, charts, runs, n);
    for (int axis = 0; axis < PERF_AXES; axis++)
        perf_chart_clear(&charts[axis]);
    return good && any;
}
