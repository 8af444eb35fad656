// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // strdup
#include "core/setting_parse.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"

int gpsh_parse_size(const char *text, uint64_t *bytes)
{
    if (!isdigit((unsigned char)text[0]))
        return GPUSHMEM_ERR_SETTING;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno)
        return GPUSHMEM_ERR_SETTING;
    unsigned shift = 0;
    if (*end) {
        const char *suffix = strchr("kKmMgGtT", *end);
        if (!suffix)
            return GPUSHMEM_ERR_SETTING;
        shift = 10 * (unsigned)((suffix - "kKmMgGtT") / 2 + 1);
        end++;
        if (!strcasecmp(end, "iB") || !strcasecmp(end, "B"))
            end += strlen(end);
    }
    if (*end || value > UINT64_MAX >> shift)
        return GPUSHMEM_ERR_SETTING;
    *bytes = (uint64_t)value << shift;
    return 0;
}

// The value in a sentence; of a long one its beginning, or there would be no room for what is
// allowed.
struct quoted {
    char text[104];
};

static struct quoted quote(const char *text)
{
    enum { MOST = 100 };
    struct quoted out;
    snprintf(out.text, sizeof out.text, "%.*s%s", MOST, text, strlen(text) > MOST ? "..." : "");
    return out;
}

// After a sentence about a value with a # in it, which somebody took for a comment.
static const char *comment_hint(const char *text)
{
    return strchr(text, '#') ? " (a comment in a settings file needs a blank before its #)" : "";
}

int gpsh_parse_cpus(const char *text, int *out, int n)
{
    int cpus[1024], count = 0;
    for (const char *p = strcmp(text, "any") ? text : ""; *p;) {
        char *end;
        long first = strtol(p, &end, 10), last = first;
        bool ok = end != p && first >= 0;
        if (ok && *end == '-') {
            p = end + 1;
            last = strtol(p, &end, 10);
            ok = end != p;
        }
        if (!ok || last < first || last > 65535 || (*end && *end != ','))
            return gpsh_fail(GPUSHMEM_ERR_SETTING,
                             GPSH_SETTING_PREFIX
                             "PROXY_CPUS=%s is no list of CPUs like 4-7,12, nor \"any\"%s",
                             quote(text).text, comment_hint(text));
        for (long cpu = first; cpu <= last && count < 1024; cpu++)
            cpus[count++] = (int)cpu;
        p = *end ? end + 1 : end;
    }
    for (int i = 0; i < n; i++)
        out[i] = count ? cpus[i % count] : -1;
    return 0;
}

static int word_index(const char *choices, const char *word, size_t length)
{
    int index = 0;
    for (const char *at = choices; *at; index++) {
        size_t span = strcspn(at, "|");
        if (span == length && !strncasecmp(at, word, length))
            return index;
        at += span + (at[span] == '|');
    }
    return -1;
}

// `what` a value of the row is, and how it is written (`as`). `rest`: what follows the number and
// is no part of it, or "".
static int outside(const struct gpsh_setting_spec *row, const char *text, const char *what,
                   const char *as, const char *rest)
{
    char wrong[100] = "";
    if (*rest)
        snprintf(wrong, sizeof wrong, ": '%.40s' after the number is not understood", rest);
    return gpsh_fail(GPUSHMEM_ERR_SETTING,
                     "%s=%s is not %s from %" PRId64 " to %" PRId64
                     "%s%s%s; leave it out to get the default, %s",
                     row->name, quote(text).text, what, row->low, row->high, as, wrong,
                     comment_hint(text), row->standard);
}

static int parse_int(const struct gpsh_setting_spec *row, const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (errno || end == text || *end || parsed < row->low || parsed > row->high)
        return outside(row, text, "a whole number", "", end == text ? "" : end);
    *value = parsed;
    return 0;
}

// What a size has after its digits and unit.
static const char *size_rest(const char *text)
{
    const char *rest = text + strspn(text, "0123456789");
    if (rest == text)
        return "";
    if (*rest && strchr("kKmMgGtT", *rest))
        rest++;
    else
        return rest;
    return rest + (!strncasecmp(rest, "iB", 2) ? 2 : !strncasecmp(rest, "B", 1));
}

static int parse_size_row(const struct gpsh_setting_spec *row, const char *text, uint64_t *value)
{
    uint64_t parsed;
    if (gpsh_parse_size(text, &parsed) || parsed < (uint64_t)row->low ||
        parsed > (uint64_t)row->high)
        return outside(row, text, "a size", " bytes, like 4096, 64K, 256M or 2G", size_rest(text));
    *value = parsed;
    return 0;
}

static int parse_bool(const struct gpsh_setting_spec *row, const char *text, bool *value)
{
    static const char *const words = "0|1|no|yes|off|on|false|true";
    int index = word_index(words, text, strlen(text));
    if (index < 0)
        return gpsh_fail(GPUSHMEM_ERR_SETTING,
                         "%s=%s is neither 1, yes, on, true nor 0, no, off, false%s", row->name,
                         quote(text).text, comment_hint(text));
    *value = index & 1;
    return 0;
}

static int parse_list(const struct gpsh_setting_spec *row, const char *text, const char **value)
{
    for (const char *at = text;; at++) {
        size_t span = strcspn(at, ",");
        if (word_index(row->choices, at, span) < 0)
            return gpsh_fail(GPUSHMEM_ERR_SETTING,
                             "%s=%s: '%.*s' is none of %s; separate several by commas%s", row->name,
                             quote(text).text, (int)(span < 40 ? span : 40), at, row->choices,
                             comment_hint(text));
        at += span;
        if (!*at)
            break;
    }
    *value = strdup(text);
    return *value ? 0
                  : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the value of %s", row->name);
}

int gpsh_setting_parse(const struct gpsh_setting_spec *row, const char *text,
                       struct gpsh_settings *out)
{
    void *field = (char *)out + row->offset;
    switch (row->kind) {
    case GPSH_KIND_INT: return parse_int(row, text, field);
    case GPSH_KIND_SIZE: return parse_size_row(row, text, field);
    case GPSH_KIND_BOOL: return parse_bool(row, text, field);
    case GPSH_KIND_LIST: return parse_list(row, text, field);
    case GPSH_KIND_STRING:
        *(const char **)field = strdup(text);
        return *(const char **)field
                   ? 0
                   : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the value of %s", row->name);
    case GPSH_KIND_CHOICE: {
        int index = word_index(row->choices, text, strlen(text));
        if (index < 0)
            return gpsh_fail(GPUSHMEM_ERR_SETTING, "%s=%s is none of %s%s", row->name,
                             quote(text).text, row->choices, comment_hint(text));
        *(int *)field = index;
        return 0;
    }
    }
    return GPUSHMEM_ERR_SETTING;
}
