// SPDX-License-Identifier: BSD-3-Clause
#include "json.h"

#include <inttypes.h>

// Bytes that are not UTF-8 would make the text no JSON: they become the replacement character. The
// second byte tells what is longer than it need be, a half of a surrogate pair, or beyond U+10FFFF.
static size_t utf8_length(const unsigned char *text)
{
    size_t length = text[0] < 0x80                       ? 1
                    : text[0] >= 0xc2 && text[0] < 0xe0  ? 2
                    : text[0] >= 0xe0 && text[0] < 0xf0  ? 3
                    : text[0] >= 0xf0 && text[0] <= 0xf4 ? 4
                                                         : 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool no_character = (text[0] == 0xe0 && text[1] < 0xa0) ||
                        (text[0] == 0xed && text[1] > 0x9f) ||
                        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f);
    return no_character ? 0 : length;
}

static void string_write(FILE *out, const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    fputc('"', out);
    while (*c) {
        size_t length = utf8_length(c);
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(out, "\\u%04x", *c);
        else if (length)
            fwrite(c, 1, length, out);
        else
            fputs("\\ufffd", out);
        c += length ? length : 1;
    }
    fputc('"', out);
}

// What goes before a value: a comma, a line of its own, its key.
static void value_begin(struct gpsh_json *json, const char *key)
{
    if (json->filled[json->depth])
        fputc(',', json->out);
    json->filled[json->depth] = true;
    if (json->depth)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    if (key) {
        string_write(json->out, key);
        fputs(": ", json->out);
    }
}

static void nest(struct gpsh_json *json, const char *key, const char *brackets)
{
    value_begin(json, key);
    fputc(brackets[0], json->out);
    if (json->depth + 1 < GPSH_JSON_DEPTH)
        json->depth++;
    json->filled[json->depth] = false;
    json->closing[json->depth] = brackets[1];
}

void gpsh_json_object(struct gpsh_json *json, const char *key)
{
    nest(json, key, "{}");
}

void gpsh_json_list(struct gpsh_json *json, const char *key)
{
    nest(json, key, "[]");
}

void gpsh_json_end(struct gpsh_json *json)
{
    bool filled = json->filled[json->depth];
    char closing = json->closing[json->depth];
    json->depth--;
    if (filled)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    fputc(closing, json->out);
    if (!json->depth)
        fputc('\n', json->out);
}

void gpsh_json_text(struct gpsh_json *json, const char *key, const char *text)
{
    value_begin(json, key);
    if (text)
        string_write(json->out, text);
    else
        fputs("null", json->out);
}

void gpsh_json_number(struct gpsh_json *json, const char *key, double number)
{
    value_begin(json, key);
    fprintf(json->out, "%.10g", number);
}

void gpsh_json_integer(struct gpsh_json *json, const char *key, int64_t number)
{
    value_begin(json, key);
    fprintf(json->out, "%" PRId64, number);
}

void gpsh_json_bool(struct gpsh_json *json, const char *key, bool value)
{
    value_begin(json, key);
    fputs(value ? "true" : "false", json->out);
}
