// SPDX-License-Identifier: BSD-3-Clause
#include "page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { NARROWEST = 20, READABLE = 100, FIELD = 14 };

int gpsh_page_columns(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO))
        return 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
        return 80;
    return size.ws_col < NARROWEST ? NARROWEST : size.ws_col;
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

void gpsh_page_wrap(const char *text, int used, int indent)
{
    int width = gpsh_page_columns();
    if (!width || width > READABLE)
        width = READABLE;
    for (bool first = true; *text; first = false) {
        int word = (int)strcspn(text, " ");
        if (!first && used + 1 + word > width) {
            printf("\n%*s", indent, "");
            used = indent;
        } else if (!first) {
            putchar(' ');
            used++;
        }
        printf("%.*s", word, text);
        used += word;
        text += word;
        text += strspn(text, " ");
    }
    putchar('\n');
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
