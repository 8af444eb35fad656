// SPDX-License-Identifier: BSD-3-Clause
#include "core/settings_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

enum { PLACE_BYTES = 200 };

const char *gpsh_settings_line_place(const char *file, int number, char *out, size_t bytes)
{
    char line[16] = "";
    size_t room = bytes - 1;
    if (number)
        room -= (size_t)snprintf(line, sizeof line, ":%d", number);
    size_t length = strlen(file);
    bool whole = length <= room;
    snprintf(out, bytes, "%s%s%s", whole ? "" : "...", whole ? file : file + length - room + 3,
             line);
    return out;
}

static int line_refuse(const char *file, int number, const char *why)
{
    char place[PLACE_BYTES];
    return gpsh_fail(GPUSHMEM_ERR_SETTING, "%s: %s",
                     gpsh_settings_line_place(file, number, place, sizeof place), why);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

// The text without blanks around it; its end is cut off.
static char *trim(char *text)
{
    size_t length = strlen(text);
    while (length && is_blank(text[length - 1]))
        length--;
    text[length] = '\0';
    return text + strspn(text, " \t");
}

static void comment_cut(char *line)
{
    for (char *at = line; (at = strchr(at, '#')); at++)
        if (at == line || is_blank(at[-1])) {
            *at = '\0';
            return;
        }
}

// A byte that no text has; what terminals take for commands is among them, also as UTF-8 writes
// U+0080 to U+009F.
static const char *stray_byte(const char *line, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)line;
    for (size_t i = 0; i < length; i++)
        if ((bytes[i] < ' ' && bytes[i] != '\t') || bytes[i] == 0x7f ||
            (i && bytes[i - 1] == 0xc2 && bytes[i] >= 0x80 && bytes[i] <= 0x9f))
            return line + i;
    return NULL;
}

// What is wrong with the line's bytes, before anything is made of them.
static int line_check(const char *file, int number, const char *line, size_t length)
{
    char why[100];
    const char *stray = stray_byte(line, length);
    if (length >= GPSH_SETTINGS_LINE_BYTES)
        snprintf(why, sizeof why, "the line has %zu bytes; %d are the most", length,
                 GPSH_SETTINGS_LINE_BYTES - 1);
    else if (stray)
        snprintf(why, sizeof why, "byte 0x%02x is no text; settings are lines NAME = VALUE",
                 (unsigned char)*stray);
    else
        return 0;
    return line_refuse(file, number, why);
}

static int value_check(const struct gpsh_settings_line *line)
{
    size_t length = strlen(line->value);
    char first = line->value[0];
    if (length < 2 || (first != '"' && first != '\'') || line->value[length - 1] != first)
        return 0;
    char why[200];
    snprintf(why, sizeof why, "%.60s = %.60s: write the value without quotes", line->name,
             line->value);
    return line_refuse(line->file, line->number, why);
}

static int line_split(char *text, struct gpsh_settings_line *line)
{
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    char *equals = text + length + strspn(text + length, " \t");
    if (!length || *equals != '=') {
        char why[200];
        snprintf(why, sizeof why,
                 "'%.60s' is no setting; write one a line as NAME = VALUE, and # before a comment",
                 text);
        return line_refuse(line->file, line->number, why);
    }
    line->value = trim(equals + 1);
    text[length] = '\0';
    line->name = text;
    return value_check(line);
}

// One line without its end; text[length] may be written.
static int line_read(char *text, size_t length, struct gpsh_settings_line *line)
{
    line->name = NULL;
    if (length && text[length - 1] == '\r')
        length--;
    int status = line_check(line->file, line->number, text, length);
    if (status)
        return status;
    text[length] = '\0';
    comment_cut(text);
    text = trim(text);
    return *text ? line_split(text, line) : 0;
}

int gpsh_settings_text_read(const char *file, char *text, size_t bytes,
                            int (*take)(void *arg, const struct gpsh_settings_line *line),
                            void *arg)
{
    static const char mark[] = "\xef\xbb\xbf"; // that some editors begin a file with
    struct gpsh_settings_line line = {.file = file};
    char *end = text + bytes;
    if (bytes >= 3 && !memcmp(text, mark, 3))
        text += 3;
    while (text < end) {
        char *newline = memchr(text, '\n', (size_t)(end - text)), *stop = newline ? newline : end;
        line.number++;
        int status = line_read(text, (size_t)(stop - text), &line);
        if (!status && line.name)
            status = take(arg, &line);
        if (status)
            return status;
        text = stop + 1;
    }
    return 0;
}
