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

// One more line, whose text is owned. False: there is no room, or the text is NULL.
static bool line_add(struct gpsh_log_merge *m, char *text, bool own)
{
    if (!text || m->n == GPSH_LOG_MERGE_MOST) {
        free(text);
        return false;
    }
    struct gpsh_log_merge_line *line = &m->lines[m->n++];
    line->text = text;
    line->own = own;
    memset(line->said, 0, (size_t)m->n_pes * sizeof(bool));
    return true;
}

bool gpsh_log_merge_add_own(struct gpsh_log_merge *m, const char *text, size_t bytes)
{
    return m->n && line_add(m, strndup(text, bytes), true);
}

void gpsh_log_merge_add(struct gpsh_log_merge *m, int pe, const char *text)
{
    int i = 0;
    while (i < m->n && (m->lines[i].own || strcmp(m->lines[i].text, text) != 0))
        i++;
    if (i == m->n && !line_add(m, strdup(text), false))
        return;
    m->lines[i].said[pe] = true;
    m->last_s = gpsh_clock_s();
    if (m->n == 1 && m->first_s == 0)
        m->first_s = m->last_s;
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
        if (!m->lines[i].own) {
            struct gpsh_text text = {pes, sizeof(pes), 0};
            gpsh_text_add_ranges(&text, m->n_pes, has_said, &m->lines[i]);
            int n = snprintf(line, sizeof(line), "gpushmem[%s] %s\n", pes, m->lines[i].text);
            print(line, (size_t)n, arg);
        } else {
            print(m->lines[i].text, strlen(m->lines[i].text), arg);
        }
        free(m->lines[i].text);
    }
    m->n = 0;
    m->first_s = 0;
}
