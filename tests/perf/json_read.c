// SPDX-License-Identifier: BSD-3-Clause
#include "json_read.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 32 };

struct reader {
    const char *at;
    int line, depth;
    const char *problem;
};

static bool value_read(struct reader *r, struct perf_json *value);

static bool complain(struct reader *r, const char *problem)
{
    r->problem = r->problem ? r->problem : problem;
    return false;
}

static void skip_space(struct reader *r)
{
    for (; *r->at && strchr(" \t\r\n", *r->at); r->at++)
        r->line += *r->at == '\n';
}

static bool take(struct reader *r, char wanted)
{
    skip_space(r);
    if (*r->at != wanted)
        return false;
    r->at++;
    return true;
}

// What follows a backslash; what is no ASCII is of no use here.
static bool escape_read(struct reader *r, char *out)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char digits[5] = "";
    const char *letter = *r->at ? strchr(letters, *r->at) : NULL;
    if (letter) {
        *out = meanings[letter - letters];
        r->at++;
        return true;
    }
    for (int i = 0; *r->at == 'u' && i < 4 && isxdigit((unsigned char)r->at[1 + i]); i++)
        digits[i] = r->at[1 + i];
    if (!digits[3])
        return complain(r, "a text has an escape that JSON does not know");
    long code = strtol(digits, NULL, 16);
    *out = code > 0 && code < 0x80 ? (char)code : '?';
    r->at += 5;
    return true;
}

static char *text_read(struct reader *r)
{
    if (!take(r, '"')) {
        complain(r, "a text is missing");
        return NULL;
    }
    char *text = malloc(strlen(r->at) + 1), *out = text;
    while (text && *r->at != '"') {
        bool good = (unsigned char)*r->at >= 0x20 || complain(r, "a text does not end");
        if (good && *r->at == '\\') {
            r->at++;
            good = escape_read(r, out++);
        } else if (good) {
            *out++ = *r->at++;
        }
        if (!good) {
            free(text);
            return NULL;
        }
    }
    if (!text) {
        complain(r, "there is no memory for it");
        return NULL;
    }
    *out = '\0';
    r->at++;
    char *fitting = realloc(text, strlen(text) + 1);
    return fitting ? fitting : text;
}

static bool number_read(struct reader *r, struct perf_json *value)
{
    size_t length = strspn(r->at, "+-.0123456789eE");
    char *end;
    value->kind = PERF_JSON_NUMBER;
    value->number = strtod(r->at, &end);
    bool starts = isdigit((unsigned char)r->at[r->at[0] == '-']);
    if (!starts || end != r->at + length || !isfinite(value->number))
        return complain(r, "a value is none of JSON's");
    r->at = end;
    return true;
}

static bool word_read(struct reader *r, struct perf_json *value)
{
    static const struct {
        const char *word;
        enum perf_json_kind kind;
        double number;
    } words[] = {
        {"null", PERF_JSON_NULL, 0}, {"true", PERF_JSON_BOOL, 1}, {"false", PERF_JSON_BOOL, 0}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i].word);
        if (strncmp(r->at, words[i].word, length) != 0)
            continue;
        value->kind = words[i].kind;
        value->number = words[i].number;
        r->at += length;
        return true;
    }
    return number_read(r, value);
}

// Room for one more; powers of two, as `n` tells.
static struct perf_json *add(struct reader *r, struct perf_json *parent)
{
    if ((parent->n & (parent->n - 1)) == 0) {
        size_t room = parent->n ? 2 * parent->n : 1;
        struct perf_json *more = realloc(parent->more, room * sizeof *more);
        if (!more) {
            complain(r, "there is no memory for it");
            return NULL;
        }
        parent->more = more;
    }
    struct perf_json *child = &parent->more[parent->n++];
    *child = (struct perf_json){.kind = PERF_JSON_NULL};
    return child;
}

static bool member_read(struct reader *r, struct perf_json *parent)
{
    struct perf_json *child = add(r, parent);
    if (!child)
        return false;
    if (parent->kind == PERF_JSON_OBJECT) {
        child->key = text_read(r);
        if (!child->key || (!take(r, ':') && !complain(r, "a colon is missing")))
            return false;
    }
    return value_read(r, child);
}

static bool inside_read(struct reader *r, struct perf_json *value, char end)
{
    r->at++;
    if (++r->depth > DEEPEST)
        return complain(r, "it is nested too deeply");
    bool good = true;
    if (!take(r, end)) {
        do
            good = member_read(r, value);
        while (good && take(r, ','));
        good = good && (take(r, end) || complain(r, "a list or an object does not end"));
    }
    r->depth--;
    return good;
}

static bool value_read(struct reader *r, struct perf_json *value)
{
    skip_space(r);
    if (*r->at == '{' || *r->at == '[') {
        value->kind = *r->at == '{' ? PERF_JSON_OBJECT : PERF_JSON_LIST;
        return inside_read(r, value, *r->at == '{' ? '}' : ']');
    }
    if (*r->at != '"')
        return word_read(r, value);
    value->kind = PERF_JSON_TEXT;
    value->text = text_read(r);
    return value->text != NULL;
}

static void inside_free(struct perf_json *json)
{
    for (size_t i = 0; i < json->n; i++)
        inside_free(&json->more[i]);
    free(json->more);
    free(json->key);
    free(json->text);
}

struct perf_json *perf_json_parse(const char *text, const char **problem, int *line)
{
    struct reader r = {.at = text, .line = 1};
    struct perf_json *json = calloc(1, sizeof *json);
    bool good = json ? value_read(&r, json) : complain(&r, "there is no memory for it");
    skip_space(&r);
    if (good && *r.at)
        good = complain(&r, "something follows its end");
    *problem = r.problem;
    *line = r.line;
    if (good)
        return json;
    perf_json_free(json);
    return NULL;
}

void perf_json_free(struct perf_json *json)
{
    if (json)
        inside_free(json);
    free(json);
}

const struct perf_json *perf_json_get(const struct perf_json *json, const char *key)
{
    for (size_t i = 0; json && json->kind == PERF_JSON_OBJECT && i < json->n; i++)
        if (!strcmp(json->more[i].key, key))
            return &json->more[i];
    return NULL;
}

const char *perf_json_text(const struct perf_json *json)
{
    return json && json->kind == PERF_JSON_TEXT ? json->text : "";
}

double perf_json_number(const struct perf_json *json)
{
    return json && (json->kind == PERF_JSON_NUMBER || json->kind == PERF_JSON_BOOL) ? json->number
                                                                                    : 0;
}
