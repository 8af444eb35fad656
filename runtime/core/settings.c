// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // strdup
#include "core/settings.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/error.h"
#include "core/log.h"
#include "core/number_list.h"
#include "core/spelling.h"
#include "generated/transports.h"

#define NAME_MAIN   GPSH_SETTING_PREFIX
#define NAME_EXPERT GPSH_SETTING_PREFIX
#define NAME_TEST   GPSH_SETTING_PREFIX "TEST_"

const struct gpsh_setting gpsh_setting_rows[GPSH_SETTINGS] = {
#define GPSH_SETTING(level, field, NAME, kind, def, low, high, choices, help)                      \
    {NAME_##level #NAME,                                                                           \
     GPSH_LEVEL_##level,                                                                           \
     GPSH_KIND_##kind,                                                                             \
     offsetof(struct gpsh_settings, field),                                                        \
     def,                                                                                          \
     low,                                                                                          \
     high,                                                                                         \
     choices,                                                                                      \
     help},
#include "core/settings.def"
#undef GPSH_SETTING
};

#define rows gpsh_setting_rows

// ---- Names ----

int gpsh_setting_find(const char *name, size_t length)
{
    int i = 0;
    while (i < GPSH_SETTINGS &&
           (strncmp(rows[i].name, name, length) != 0 || rows[i].name[length] != '\0'))
        i++;
    return i;
}

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

// "unknown setting, ignored; did you mean ...?"
static const char *unknown(const char *name, size_t length, char *out, size_t bytes)
{
    enum { PREFIX = sizeof GPSH_SETTING_PREFIX - 1 };
    size_t skip = !strncasecmp(name, GPSH_SETTING_PREFIX, PREFIX) ? PREFIX : 0;
    struct gpsh_spelling spelling = {.typed = name + skip, .length = length - skip};
    for (int i = 0; i < GPSH_SETTINGS; i++) {
        const char *word = rows[i].name + strlen(NAME_MAIN);
        if (rows[i].level == GPSH_LEVEL_TEST) {
            word = rows[i].name + strlen(NAME_TEST);
            if (strlen(word) == length - skip && begins(name + skip, word)) {
                snprintf(out, bytes, "no setting any more, ignored: %s", rows[i].help);
                return out;
            }
            continue;
        }
        gpsh_spelling_consider(&spelling, word, rows[i].name);
    }
    const char *meant = spelling.meant;
    snprintf(out, bytes, "unknown setting, ignored; %s%s%s", meant ? "did you mean " : "",
             meant ? meant : "`gpushmem info` lists the settings", meant ? "?" : "");
    return out;
}

// ---- Values of text ----

// *rest is what follows number and unit, or "" where there is no number.
static bool size_read(const char *text, uint64_t *bytes, const char **rest)
{
    static const char units[] = "KMGT";
    *rest = "";
    if (!isdigit((unsigned char)text[0]))
        return false;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (unit) {
        end++;
        end += !strncasecmp(end, "iB", 2) ? 2 : !strncasecmp(end, "B", 1);
    }
    *rest = end;
    if (errno || *end || value > UINT64_MAX >> shift)
        return false;
    *bytes = (uint64_t)value << shift;
    return true;
}

int gpsh_parse_size(const char *text, uint64_t *bytes)
{
    const char *rest;
    return size_read(text, bytes, &rest) ? 0 : GPUSHMEM_ERR_SETTING;
}

// A value in a sentence: of a long one its beginning, or there would be no room for what is
// allowed; and after the sentence, of one with a # that somebody took for a comment.
#define QUOTED      "%.100s%s"
#define QUOTE(text) (text), strlen(text) > 100 ? "..." : ""
static const char *comment_hint(const char *text)
{
    return strchr(text, '#') ? " (a comment in a settings file needs a blank before its #)" : "";
}

int gpsh_parse_cpus(const char *text, int *out, int n)
{
    enum { MOST = 1024, LARGEST = 65535 };
    int cpus[MOST], count = 0;
    const char *rest = strcmp(text, "any") ? text : "";
    for (long cpu, last = 0; *rest;) {
        if (!gpsh_number_list_next(&rest, &cpu, &last) || last > LARGEST || *rest == '\n')
            return gpsh_fail(GPUSHMEM_ERR_SETTING,
                             GPSH_SETTING_PREFIX "PROXY_CPUS=" QUOTED
                                                 " is no list of CPUs like 4-7,12, nor \"any\"%s",
                             QUOTE(text), comment_hint(text));
        for (; cpu <= last && count < MOST; cpu++)
            cpus[count++] = (int)cpu;
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

// As one writes it: "16T".
static void size_print(uint64_t size, char *text, size_t bytes)
{
    static const char units[] = "\0KMGT";
    int unit = 0;
    for (; size && size % 1024 == 0 && unit < 4; unit++)
        size /= 1024;
    snprintf(text, bytes, "%" PRIu64 "%.1s", size, units + unit);
}

static void limit_print(const struct gpsh_setting *row, int64_t limit, char *text, size_t bytes)
{
    if (row->kind == GPSH_KIND_SIZE)
        size_print((uint64_t)limit, text, bytes);
    else
        snprintf(text, bytes, "%" PRId64, limit);
}

// Of a size with a fraction, like 1.5G: what to write for it, 1536M; else nothing.
static void whole_size_hint(const char *text, char *hint, size_t bytes)
{
    char *end;
    double value = strtod(text, &end);
    static const char units[] = "KMGT", smaller[] = "\0KMG"; // 1.5K is 1536
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit && value > 0 && value < 1e6)
        snprintf(hint, bytes, "; write %.0f%.1s", value * 1024, smaller + (unit - units));
}

// `rest`: what follows the number and is no part of it, or "".
static int refuse_number(const struct gpsh_setting *row, const char *text, const char *rest)
{
    bool size = row->kind == GPSH_KIND_SIZE;
    char wrong[100] = "", hint[40] = "", low[24], high[24];
    if (*rest)
        snprintf(wrong, sizeof wrong, ": '%.40s' after the number is not understood", rest);
    if (size && *rest == '.')
        whole_size_hint(text, hint, sizeof hint);
    limit_print(row, row->low, low, sizeof low);
    limit_print(row, row->high, high, sizeof high);
    return gpsh_fail(GPUSHMEM_ERR_SETTING,
                     "%s=" QUOTED " is not %s from %s to %s%s%s%s%s; leave it out to get the "
                     "default, %s",
                     row->name, QUOTE(text), size ? "a size" : "a whole number", low, high,
                     size ? " (a whole number of bytes, or of K, M, G or T)" : "", wrong, hint,
                     comment_hint(text), row->standard);
}

static int parse_number(const struct gpsh_setting *row, const char *text, void *field)
{
    const char *rest = "";
    bool ok;
    if (row->kind == GPSH_KIND_SIZE) {
        uint64_t bytes = 0;
        ok = size_read(text, &bytes, &rest) && bytes >= (uint64_t)row->low &&
             bytes <= (uint64_t)row->high;
        *(uint64_t *)field = bytes;
    } else {
        char *end;
        errno = 0;
        long long value = strtoll(text, &end, 10);
        rest = end == text ? "" : end;
        ok = !errno && end != text && !*end && value >= row->low && value <= row->high;
        *(int64_t *)field = value;
    }
    return ok ? 0 : refuse_number(row, text, rest);
}

static int parse_word(const struct gpsh_setting *row, const char *text, void *field)
{
    bool yes_no = row->kind == GPSH_KIND_BOOL;
    int index =
        word_index(yes_no ? "0|1|no|yes|off|on|false|true" : row->choices, text, strlen(text));
    if (index < 0 && yes_no)
        return gpsh_fail(GPUSHMEM_ERR_SETTING,
                         "%s=" QUOTED " is neither 1, yes, on, true nor 0, no, off, false%s",
                         row->name, QUOTE(text), comment_hint(text));
    if (index < 0)
        return gpsh_fail(GPUSHMEM_ERR_SETTING, "%s=" QUOTED " is none of %s%s", row->name,
                         QUOTE(text), row->choices, comment_hint(text));
    if (yes_no)
        *(bool *)field = index & 1;
    else
        *(int *)field = index;
    return 0;
}

static int parse_text(const struct gpsh_setting *row, const char *text, char **field)
{
    for (const char *at = text; row->kind == GPSH_KIND_LIST;) {
        size_t span = strcspn(at, ",");
        if (word_index(row->choices, at, span) < 0)
            return gpsh_fail(GPUSHMEM_ERR_SETTING,
                             "%s=" QUOTED ": '%.*s' is none of %s; separate several by commas%s",
                             row->name, QUOTE(text), (int)(span < 40 ? span : 40), at, row->choices,
                             comment_hint(text));
        if (!at[span])
            break;
        at += span + 1;
    }
    *field = strdup(text);
    return *field ? 0
                  : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the value of %s", row->name);
}

static int parse_row(const struct gpsh_setting *row, const char *text, struct gpsh_settings *out)
{
    void *field = (char *)out + row->offset;
    switch (row->kind) {
    case GPSH_KIND_INT:
    case GPSH_KIND_SIZE: return parse_number(row, text, field);
    case GPSH_KIND_BOOL:
    case GPSH_KIND_CHOICE: return parse_word(row, text, field);
    case GPSH_KIND_STRING:
    case GPSH_KIND_LIST: break;
    }
    return parse_text(row, text, field);
}

// What a row's kind and range do not say.
static int check_row(const struct gpsh_setting *row, const struct gpsh_settings *settings)
{
    int64_t entries = settings->ring_entries;
    if (row->offset == offsetof(struct gpsh_settings, ring_entries) && entries & (entries - 1))
        return gpsh_fail(GPUSHMEM_ERR_SETTING,
                         "%s=%" PRId64 " is not a power of two, like 1024 or 4096", row->name,
                         entries);
    if (row->offset == offsetof(struct gpsh_settings, proxy_cpus))
        return gpsh_parse_cpus(settings->proxy_cpus, NULL, 0);
    return 0;
}

void gpsh_setting_value(const struct gpsh_settings *settings, int row, char *text, size_t bytes)
{
    const void *field = (const char *)settings + rows[row].offset;
    const char *word = rows[row].choices;
    switch (rows[row].kind) {
    case GPSH_KIND_INT: snprintf(text, bytes, "%" PRId64, *(const int64_t *)field); break;
    case GPSH_KIND_SIZE: size_print(*(const uint64_t *)field, text, bytes); break;
    case GPSH_KIND_BOOL: snprintf(text, bytes, "%d", *(const bool *)field); break;
    case GPSH_KIND_CHOICE:
        for (int i = *(const int *)field; i > 0; i--)
            word += strcspn(word, "|") + 1;
        snprintf(text, bytes, "%.*s", (int)strcspn(word, "|"), word);
        break;
    case GPSH_KIND_STRING:
    case GPSH_KIND_LIST: snprintf(text, bytes, "%s", *(char *const *)field); break;
    }
}

// ---- What was given ----

const char *gpsh_settings_variable(char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (char *const *entry = environment; *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

int gpsh_setting_give(struct gpsh_settings_given *given, int row, enum gpsh_setting_source source,
                      const char *text, const char *from, int line)
{
    struct gpsh_setting_given *g = &given->row[row];
    free(g->text);
    free(g->from);
    *g = (struct gpsh_setting_given){source, line, strdup(text), strdup(from)};
    return g->text && g->from
               ? 0
               : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the value of %s", from);
}

void gpsh_setting_ignore(struct gpsh_settings_given *given, const char *place, const char *name,
                         size_t length, bool tell)
{
    char what[400], sentence[sizeof given->first_ignored];
    snprintf(sentence, sizeof sentence, "%s%.*s: %s", place, length < 64 ? (int)length : 64, name,
             unknown(name, length, what, sizeof what));
    if (!given->ignored++)
        memcpy(given->first_ignored, sentence, sizeof sentence);
    if (tell)
        GPSH_LOG(WARN, "config", "%s", sentence);
}

void gpsh_settings_given_clear(struct gpsh_settings_given *given)
{
    for (int i = 0; i < GPSH_SETTINGS; i++) {
        free(given->row[i].text);
        free(given->row[i].from);
    }
    for (int i = 0; i < GPSH_SETTINGS_FILES; i++)
        free(given->file[i].path);
    memset(given, 0, sizeof *given);
}

int gpsh_setting_given_fail(const struct gpsh_setting_given *given, int status)
{
    char place[200];
    if (!status || given->source != GPSH_FROM_FILE)
        return status;
    size_t length = strlen(given->from), skip = length > 180 ? length - 180 : 0;
    snprintf(place, sizeof place, "%s%s:%d", skip ? "..." : "", given->from + skip, given->line);
    return gpsh_fail_in(status, place);
}

int gpsh_settings_parse(const struct gpsh_settings_given *given, const char *prefix,
                        struct gpsh_settings *out)
{
    static const struct gpsh_setting_given none;
    struct gpsh_settings settings;
    int status = 0;
    memset(&settings, 0, sizeof settings);
    for (int i = 0; i < GPSH_SETTINGS && !status; i++) {
        const struct gpsh_setting_given *g = begins(rows[i].name, prefix) ? &given->row[i] : &none;
        struct gpsh_setting row = rows[i];
        if (g->source == GPSH_FROM_ALIAS)
            row.name = g->from;
        status = parse_row(&row, g->text && *g->text ? g->text : row.standard, &settings);
        status = gpsh_setting_given_fail(g, status ? status : check_row(&row, &settings));
    }
    if (status)
        gpsh_settings_clear(&settings);
    else
        *out = settings;
    return status;
}

void gpsh_settings_clear(struct gpsh_settings *settings)
{
    for (int i = 0; i < GPSH_SETTINGS; i++)
        if (rows[i].kind == GPSH_KIND_STRING || rows[i].kind == GPSH_KIND_LIST) {
            char **field = (char **)((char *)settings + rows[i].offset);
            free(*field);
            *field = NULL;
        }
}
