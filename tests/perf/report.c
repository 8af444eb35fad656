// SPDX-License-Identifier: BSD-3-Clause
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char erase_line[] = "\r\033[K";

static const char *size_text(uint64_t bytes, char *text, size_t room)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;
    while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, room, "%" PRIu64 " %s", bytes, units[unit]);
    return text;
}

// Four significant digits, and nothing for what was not measured.
static const char *figure(double value, char *text, size_t room)
{
    int digits = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : value >= 1 ? 3 : 4;
    snprintf(text, room, value ? "%.*f" : "", digits, value);
    return text;
}

void perf_report_progress(struct perf_report *r, const char *test, const char *issuer,
                          uint64_t size)
{
    char text[32];
    if (r->progress)
        fprintf(stderr, "%smeasuring %s, issued by %s, %s ...", erase_line, test, issuer,
                size_text(size, text, sizeof text));
}

enum { COLUMNS = 10 };

static void print_row(const struct perf_report *r, const char *const cells[COLUMNS])
{
    static const int widths[COLUMNS] = {-16, -9, 4, -9, -7, 8, 10, 10, 9, 9};
    for (int i = 0; i < COLUMNS; i++)
        printf(r->markdown ? "| %*s " : "%*s ", widths[i], cells[i]);
    puts(r->markdown ? "|" : "");
}

static void print_heading(const struct perf_report *r)
{
    static const char *const heading[COLUMNS] = {"test", "issuer", "PEs",    "transport", "path",
                                                 "size", "p50 us", "p99 us", "GB/s",      "M/s"};
    print_row(r, heading);
    if (r->markdown)
        puts("|---|---|--:|---|---|--:|--:|--:|--:|--:|");
}

static void print(struct perf_report *r, const struct perf_row *row)
{
    char size[32], p50[32], p99[32], bandwidth[32], rate[32], pes[16];
    if (r->n_rows == 1)
        print_heading(r);
    snprintf(pes, sizeof pes, "%d", row->n_pes);
    const char *const cells[COLUMNS] = {
        row->test,
        row->issuer,
        pes,
        row->transport,
        row->path,
        row->size_bytes ? size_text(row->size_bytes, size, sizeof size) : "",
        figure(row->latency_us_p50, p50, sizeof p50),
        figure(row->latency_us_p99, p99, sizeof p99),
        figure(row->bandwidth_gb_s, bandwidth, sizeof bandwidth),
        figure(row->rate_m_s, rate, sizeof rate)};
    print_row(r, cells);
    fflush(stdout);
}

void perf_report_add(struct perf_report *r, const struct perf_row *row)
{
    if (r->progress)
        fputs(erase_line, stderr);
    if (r->n_rows == r->room) {
        int room = r->room ? 2 * r->room : 64;
        struct perf_row *grown = realloc(r->rows, (size_t)room * sizeof *grown);
        if (!grown)
            return;
        r->rows = grown;
        r->room = room;
    }
    r->rows[r->n_rows++] = *row;
    if (r->table)
        print(r, row);
}

static void json_figure(FILE *out, const char *name, double value)
{
    fprintf(out, ", \"%s\": ", name);
    if (value)
        fprintf(out, "%.6g", value);
    else
        fputs("null", out);
}

static void json_row(FILE *out, const struct perf_row *row, bool last)
{
    fprintf(out,
            "  {\"test\": \"%s\", \"issuer\": \"%s\", \"transport\": \"%s\", \"path\": \"%s\", "
            "\"pes\": %d, \"size_bytes\": %" PRIu64,
            row->test, row->issuer, row->transport, row->path, row->n_pes, row->size_bytes);
    json_figure(out, "latency_us_p50", row->latency_us_p50);
    json_figure(out, "latency_us_p99", row->latency_us_p99);
    json_figure(out, "bandwidth_gb_s", row->bandwidth_gb_s);
    json_figure(out, "rate_m_s", row->rate_m_s);
    fputs(last ? "}\n" : "},\n", out);
}

bool perf_report_can_write(const char *path)
{
    FILE *out = path && strcmp(path, "-") ? fopen(path, "a") : stdout;
    if (!out)
        fprintf(stderr, "gpushmem perf: cannot write --json %s: %s\n", path, strerror(errno));
    else if (out != stdout)
        fclose(out);
    return out != NULL;
}

bool perf_report_write_json(const struct perf_report *r, const char *path)
{
    bool to_file = strcmp(path, "-") != 0;
    FILE *out = to_file ? fopen(path, "w") : stdout;
    if (!out) {
        fprintf(stderr, "gpushmem perf: cannot write --json %s: %s\n", path, strerror(errno));
        return false;
    }
    fputs("[\n", out);
    for (int i = 0; i < r->n_rows; i++)
        json_row(out, &r->rows[i], i == r->n_rows - 1);
    fputs("]\n", out);
    bool good = !ferror(out) && (to_file ? fclose(out) : fflush(out)) == 0;
    if (!good)
        fprintf(stderr, "gpushmem perf: writing --json %s failed: %s\n", path, strerror(errno));
    return good;
}

void perf_report_clear(struct perf_report *r)
{
    free(r->rows);
    *r = (struct perf_report){.rows = NULL};
}
