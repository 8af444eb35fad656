// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // asprintf
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "figures.h"
#include "options.h"
#include "table.h"

static const char erase_line[] = "\r\033[K";

// A longer line would be broken, and only its last part erased.
static int progress_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? 80 : size.ws_col - 1;
}

void perf_report_progress(struct perf_report *r, const char *test, const char *issuer,
                          uint64_t size)
{
    char text[32], line[160];
    if (!r->progress)
        return;
    snprintf(line, sizeof line, "measuring %s, issued by %s, %s ...", test, issuer,
             perf_size_text(size, text, sizeof text));
    fprintf(stderr, "%s%.*s", erase_line, progress_columns(), line);
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
        perf_table_print(row, r->n_rows > 1 ? &r->rows[r->n_rows - 2] : NULL, r->markdown);
}

static bool is_known(const struct perf_report *r, const char *sentence)
{
    for (int i = 0; i < r->n_left_out; i++)
        if (!strcmp(r->left_out[i], sentence))
            return true;
    return false;
}

// Once, though a run may have two sessions.
void perf_report_leave_out(struct perf_report *r, const char *test, unsigned issuer,
                           const char *why)
{
    const char *by = issuer == PERF_HOST     ? "the host"
                     : issuer == PERF_DEVICE ? "kernels"
                                             : "streams";
    char *sentence, **more = realloc(r->left_out, ((size_t)r->n_left_out + 1) * sizeof *more);
    if (more)
        r->left_out = more;
    if (!more || asprintf(&sentence, "%s, issued by %s, is left out: %s", test, by, why) < 0)
        return;
    if (is_known(r, sentence)) {
        free(sentence);
        return;
    }
    fprintf(stderr, "%sgpushmem perf: %s\n", r->progress ? erase_line : "", sentence);
    r->left_out[r->n_left_out++] = sentence;
}

void perf_report_clear(struct perf_report *r)
{
    for (int i = 0; i < r->n_left_out; i++)
        free(r->left_out[i]);
    free(r->left_out);
    free(r->rows);
    *r = (struct perf_report){.rows = NULL};
}
