// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // SOCK_CLOEXEC
#include "chorus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/launcher_log.h"

enum { LONGEST = 2048, MOST_LINES = 256, PES_BYTES = 400 };

// Lines wait until nothing has come for the first of these times, or for the second.
static const double quiet_s = 0.1, longest_wait_s = 0.5;

static double clock_s(void)
{
    return (double)gpsh_clock_ns() * 1e-9;
}

void gpsh_chorus_open(struct gpsh_chorus *c, const char *dir, int n_pes)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *c = (struct gpsh_chorus){.fd = -1, .n_pes = n_pes};
    int n = snprintf(c->path, sizeof(c->path), "%s/log", dir);
    if (n < 0 || (size_t)n >= sizeof(c->path))
        return;
    memcpy(address.sun_path, c->path, sizeof(address.sun_path));
    c->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd >= 0 && bind(c->fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        gpsh_chorus_close(c);
}

bool gpsh_chorus_address(const struct gpsh_chorus *c, int fd, char *text, size_t bytes)
{
    struct stat st;
    if (c->fd < 0 || fstat(fd, &st) < 0)
        return false;
    int n = snprintf(text, bytes, "%llu:%llu:%s", (unsigned long long)st.st_dev,
                     (unsigned long long)st.st_ino, c->path);
    return n > 0 && (size_t)n < bytes;
}

static struct gpsh_chorus_line *line_of(struct gpsh_chorus *c, const char *text)
{
    for (int i = 0; i < c->n; i++) {
        if (strcmp(c->lines[i].text, text) == 0)
            return &c->lines[i];
    }
    if (c->n == c->room) {
        int wanted = c->room ? 2 * c->room : 16;
        struct gpsh_chorus_line *grown = realloc(c->lines, (size_t)wanted * sizeof(*grown));
        if (!grown)
            return NULL;
        c->lines = grown;
        c->room = wanted;
    }
    struct gpsh_chorus_line line = {strdup(text), calloc((size_t)c->n_pes, sizeof(*line.said))};
    if (line.text && line.said) {
        c->lines[c->n] = line;
        return &c->lines[c->n++];
    }
    free(line.text);
    free(line.said);
    return NULL;
}

void gpsh_chorus_read(struct gpsh_chorus *c)
{
    union {
        struct gpsh_launcher_line line;
        char bytes[sizeof(struct gpsh_launcher_line) + LONGEST + 1];
    } got;
    ssize_t n;
    const ssize_t head = sizeof(got.line);
    while (c->fd >= 0 && c->n < MOST_LINES && (n = recv(c->fd, &got, sizeof(got) - 1, 0)) >= head) {
        got.bytes[n] = '\0';
        c->called |= n == head;
        if (n == head)
            continue;
        struct gpsh_chorus_line *line = line_of(c, got.line.text);
        c->last_s = clock_s();
        if (c->n == 1 && c->first_s == 0)
            c->first_s = c->last_s;
        if (line && got.line.pe >= 0 && got.line.pe < c->n_pes)
            line->said[got.line.pe] = true;
    }
}

double gpsh_chorus_due_s(const struct gpsh_chorus *c)
{
    if (c->n == 0)
        return 0;
    double quiet = c->last_s + quiet_s, late = c->first_s + longest_wait_s;
    return c->n == MOST_LINES ? c->first_s : quiet < late ? quiet : late;
}

// "0-3,7": cut with dots where it gets too long.
static void pes_print(const struct gpsh_chorus_line *line, int n_pes, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int pe = 0; pe < n_pes; pe++) {
        int last = pe;
        if (!line->said[pe])
            continue;
        while (last + 1 < n_pes && line->said[last + 1])
            last++;
        if (used + 16 > bytes) {
            snprintf(text + used, bytes - used, ",...");
            return;
        }
        used += (size_t)snprintf(text + used, bytes - used, last > pe ? "%s%d-%d" : "%s%d",
                                 used ? "," : "", pe, last);
        pe = last;
    }
}

void gpsh_chorus_print(struct gpsh_chorus *c,
                       void (*print)(const char *line, size_t bytes, void *arg), void *arg)
{
    for (int i = 0; i < c->n; i++) {
        char pes[PES_BYTES], line[LONGEST + PES_BYTES + 32];
        pes_print(&c->lines[i], c->n_pes, pes, sizeof(pes));
        int n = snprintf(line, sizeof(line), "gpushmem[%s] %s\n", pes, c->lines[i].text);
        print(line, (size_t)n, arg);
        free(c->lines[i].text);
        free(c->lines[i].said);
    }
    c->n = 0;
    c->first_s = 0;
}

void gpsh_chorus_close(struct gpsh_chorus *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    free(c->lines);
    c->lines = NULL;
    c->room = 0;
}
