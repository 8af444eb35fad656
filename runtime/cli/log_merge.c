// SPDX-License-Identifier: BSD-3-Clause
#define _POSIX_C_SOURCE 200809L // strdup
#include "log_merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/text.h"

enum { LONGEST = 2048, PES_BYTES = 400 };

// Lines wait until nothing has come for the first of these times, or for the second.
static const double quiet_s = 0.1, longest_wait_s = 0.5;

static double clock_s(void)
{
    return (double)gpsh_clock_ns() * 1e-9;
}

// Room for one more line, or NULL.
static struct gpsh_log_merge_line *line_new(struct gpsh_log_merge *m)
{
    if (m->n == m->room) {
        int wanted = m->room ? 2 * m->room : 16;
        struct gpsh_log_merge_line *grown = realloc(m->lines, (size_t)wanted * sizeof(*grown));
        if (!grown)
            return NULL;
        m->lines = grown;
        m->room = wanted;
    }
    return &m->lines[m->n];
}

static struct gpsh_log_merge_line *line_of(struct gpsh_log_merge *m, const char *text)
{
    for (int i = 0; i < m->n; i++) {
        if (m->lines[i].said && strcmp(m->lines[i].text, text) == 0)
            return &m->lines[i];
    }
    struct gpsh_log_merge_line *line = line_new(m);
    if (!line)
        return NULL;
    *line = (struct gpsh_log_merge_line){strdup(text), calloc((size_t)m->n_pes, sizeof(bool))};
    if (line->text && line->said) {
        m->n++;
        return line;
    }
    free(line->text);
    free(line->said);
    return NULL;
}

bool gpsh_log_merge_add_own(struct gpsh_log_merge *m, const char *text, size_t bytes)
{
    struct gpsh_log_merge_line *line = m->n && m->n < GPSH_LOG_MERGE_MOST ? line_new(m) : NULL;
    char *copy = line ? strndup(text, bytes) : NULL;
    if (!copy)
        return false;
    *line = (struct gpsh_log_merge_line){copy, NULL};
    m->n++;
    return true;
}

void gpsh_log_merge_add(struct gpsh_log_merge *m, int pe, const char *text)
{
    struct gpsh_log_merge_line *line = line_of(m, text);
    m->last_s = clock_s();
    if (m->n == 1 && m->first_s == 0)
        m->first_s = m->last_s;
    if (line)
        line->said[pe] = true;
}

double gpsh_log_merge_due_s(const struct gpsh_log_merge *m)
{
    if (m->n == 0)
        return 0;
    double quiet = m->last_s + quiet_s, late = m->first_s + longest_wait_s;
    return m->n == GPSH_LOG_MERGE_MOST ? m->first_s : quiet < late ? quiet : late;
}

static bool has_said(const void *line, int pe)
{
    return ((const struct gpsh_log_merge_line *)line)->said[pe];
}

void gpsh_log_merge_print(struct gpsh_log_merge *m,
                          void (*print)(const char *line, size_t bytes, void *arg), void *arg)
{
    for (int i = 0; i < m->n; i++) {
        char pes[PES_BYTES], line[LONGEST + PES_BYTES + 32];
        if (m->lines[i].said) {
            struct gpsh_text text = {pes, sizeof(pes), 0};
            gpsh_text_add_ranges(&text, m->n_pes, has_said, &m->lines[i]);
            int n = snprintf(line, sizeof(line), "gpushmem[%s] %s\n", pes, m->lines[i].text);
            print(line, (size_t)n, arg);
        } else {
            print(m->lines[i].text, strlen(m->lines[i].text), arg);
        }
        free(m->lines[i].text);
        free(m->lines[i].said);
    }
    m->n = 0;
    m->first_s = 0;
}

void gpsh_log_merge_release(struct gpsh_log_merge *m)
{
    free(m->lines);
    m->lines = NULL;
    m->room = 0;
}
