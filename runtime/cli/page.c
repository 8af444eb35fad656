// SPDX-License-Identifier: BSD-3-Clause
#define _POSIX_C_SOURCE 200809L // fileno
#include "page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { NARROWEST = 20, USUAL = 80, READABLE = 100, FIELD = 14 };

static int columns_of(int fd)
{
    struct winsize size;
    if (!isatty(fd))
        return 0;
    if (ioctl(fd, TIOCGWINSZ, &size) || !size.ws_col)
        return USUAL;
    return size.ws_col < NARROWEST ? NARROWEST : size.ws_col;
}

int gpsh_page_columns(void)
{
    return columns_of(STDOUT_FILENO);
}

static bool has_colours(void)
{
    const char *off = getenv("NO_COLOR"), *kind = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(off && *off) && kind && strcmp(kind, "dumb") != 0;
}

const char *gpsh_page_colour(enum gpsh_colour colour)
{
    static const char *const codes[] = {
        [GPSH_PLAIN] = "\033[0m", [GPSH_GREEN] = "\033[32m", [GPSH_YELLOW] = "\033[33m",
        [GPSH_RED] = "\033[31m",  [GPSH_BLUE] = "\033[36m",  [GPSH_BOLD] = "\033[1m",
        [GPSH_DIM] = "\033[2m",
    };
    return has_colours() ? codes[colour] : "";
}

// `n` bytes of text in lines of `width` columns, the further ones behind `mark` and up to `indent`.
static void wrap(FILE *out, int width, const char *text, size_t n, int used, const char *mark,
                 int indent)
{
    const char *end = text + n;
    for (bool first = true; text < end; first = false) {
        const char *space = memchr(text, ' ', (size_t)(end - text));
        int word = (int)((space ? space : end) - text);
        if (!first && used + 1 + word > width) {
            fprintf(out, "\n%-*s", indent, mark);
            used = indent;
        } else if (!first) {
            fputc(' ', out);
            used++;
        }
        fprintf(out, "%.*s", word, text);
        used += word;
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

void gpsh_page_wrap(const char *text, int used, int indent)
{
    int width = gpsh_page_columns();
    if (!width || width > READABLE)
        width = READABLE;
    wrap(stdout, width, text, strlen(text), used, "", indent);
}

int gpsh_page_help_columns(FILE *out)
{
    int columns = columns_of(fileno(out));
    return !columns ? USUAL : columns > READABLE ? READABLE : columns;
}

void gpsh_page_help(FILE *out, const char *text, int used, int indent)
{
    int width = gpsh_page_help_columns(out);
    for (;; used = indent) {
        size_t n = strcspn(text, "\n");
        wrap(out, width, text, n, used, "", indent);
        text += n;
        if (!*text++)
            return;
        fprintf(out, "%*s", indent, "");
    }
}

void gpsh_page_help_paragraphs(const char *const *texts)
{
    for (; *texts; texts++) {
        putchar('\n');
        gpsh_page_help(stdout, *texts, 0, 0);
    }
}

void gpsh_page_document(int width, const char *mark, const char *text)
{
    int indent = *mark ? (int)strlen(mark) + 1 : 0;
    printf("%-*s", indent, mark);
    wrap(stdout, width, text, strlen(text), indent, mark, indent);
}

void gpsh_page_paragraph(const char *text)
{
    if (gpsh_page_columns())
        gpsh_page_wrap(text, 0, 0);
    else
        puts(text);
}

void gpsh_page_field(const char *name, const char *format, ...)
{
    char text[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    int used = printf("%-13s ", name);
    if (gpsh_page_columns())
        gpsh_page_wrap(text, used, FIELD);
    else
        puts(text);
}
