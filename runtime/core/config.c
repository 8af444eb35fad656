// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "core/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"
#include "generated/transports.h"

#define PREFIX "GPUSHMEM_"

enum kind { KIND_INT, KIND_SIZE, KIND_BOOL, KIND_STRING, KIND_CHOICE, KIND_LIST };

struct row {
    const char *name;
    enum kind kind;
    size_t offset;
    const char *standard;
    int64_t low, high;
    const char *choices;
    const char *help;
};

static const struct row rows[] = {
#define GPSH_SETTING(field, NAME, kind, def, low, high, choices, help)                             \
    {PREFIX #NAME, KIND_##kind, offsetof(struct gpsh_settings, field), def, low, high,             \
     choices,      help},
#include "core/config.def"
#undef GPSH_SETTING
};

enum { ROWS = sizeof rows / sizeof rows[0], NAME_BYTES = 64 }; // no name is that long

// Variables of the programs around the library, not settings of it: never warned about.
static const char *const not_settings[] = {"GPUSHMEM_RUN_", "GPUSHMEM_TEST_", "GPUSHMEM_SOFTHCA_",
                                           "GPUSHMEM_HOME="};

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
                             PREFIX "PROXY_CPUS=%s is no list of CPUs like 4-7,12, nor \"any\"",
                             text);
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

// `what` a value of the row is, and how it is written (`as`).
static int outside(const struct row *row, const char *text, const char *what, const char *as)
{
    return gpsh_fail(GPUSHMEM_ERR_SETTING,
                     "%s=%s is not %s from %" PRId64 " to %" PRId64
                     "%s; unset it to get the default, %s",
                     row->name, text, what, row->low, row->high, as, row->standard);
}

static int parse_int(const struct row *row, const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (errno || end == text || *end || parsed < row->low || parsed > row->high)
        return outside(row, text, "a whole number", "");
    *value = parsed;
    return 0;
}

static int parse_size_row(const struct row *row, const char *text, uint64_t *value)
{
    uint64_t parsed;
    if (gpsh_parse_size(text, &parsed) || parsed < (uint64_t)row->low ||
        parsed > (uint64_t)row->high)
        return outside(row, text, "a size", " bytes, like 4096, 64K, 256M or 2G");
    *value = parsed;
    return 0;
}

static int parse_bool(const struct row *row, const char *text, bool *value)
{
    static const char *const words = "0|1|no|yes|off|on|false|true";
    int index = word_index(words, text, strlen(text));
    if (index < 0)
        return gpsh_fail(GPUSHMEM_ERR_SETTING,
                         "%s=%s is neither 1, yes, on, true nor 0, no, off, false", row->name,
                         text);
    *value = index & 1;
    return 0;
}

static int parse_list(const struct row *row, const char *text, const char **value)
{
    for (const char *at = text;; at++) {
        size_t span = strcspn(at, ",");
        if (word_index(row->choices, at, span) < 0)
            return gpsh_fail(GPUSHMEM_ERR_SETTING,
                             "%s=%s: '%.*s' is none of %s; separate several by commas", row->name,
                             text, (int)span, at, row->choices);
        at += span;
        if (!*at)
            break;
    }
    *value = strdup(text);
    return *value ? 0
                  : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the value of %s", row->name);
}

static int parse_row(const struct row *row, const char *text, struct gpsh_settings *out)
{
    void *field = (char *)out + row->offset;
    switch (row->kind) {
    case KIND_INT: return parse_int(row, text, field);
    case KIND_SIZE: return parse_size_row(row, text, field);
    case KIND_BOOL: return parse_bool(row, text, field);
    case KIND_LIST: return parse_list(row, text, field);
    case KIND_STRING:
        *(const char **)field = strdup(text);
        return *(const char **)field
                   ? 0
                   : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the value of %s", row->name);
    case KIND_CHOICE: {
        int index = word_index(row->choices, text, strlen(text));
        if (index < 0)
            return gpsh_fail(GPUSHMEM_ERR_SETTING, "%s=%s is none of %s", row->name, text,
                             row->choices);
        *(int *)field = index;
        return 0;
    }
    }
    return GPUSHMEM_ERR_SETTING;
}

static const char *find_value(char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (char *const *entry = environment; *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

static bool is_known(const char *entry, size_t length)
{
    for (int i = 0; i < ROWS; i++)
        if (strlen(rows[i].name) == length && !strncmp(rows[i].name, entry, length))
            return true;
    for (size_t i = 0; i < sizeof not_settings / sizeof not_settings[0]; i++)
        if (!strncmp(entry, not_settings[i], strlen(not_settings[i])))
            return true;
    return false;
}

// Letters to insert, remove or replace in one word to get the other.
static int difference(const char *a, size_t a_length, const char *b)
{
    int row[NAME_BYTES];
    int b_length = (int)strlen(b);
    for (int j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 0; i < a_length; i++) {
        int diagonal = row[0];
        row[0] = (int)i + 1;
        for (int j = 0; j < b_length; j++) {
            int replaced = diagonal + (a[i] != b[j]),
                shorter = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = replaced < shorter ? replaced : shorter;
        }
    }
    return row[b_length];
}

// The setting that was probably meant, or NULL: one with at most two letters wrong.
static const char *resembling(const char *entry, size_t length)
{
    enum { MOST = 2 };
    const char *best = NULL;
    int least = MOST + 1;
    for (int i = 0; i < ROWS && length < NAME_BYTES; i++) {
        int wrong = difference(entry, length, rows[i].name);
        if (wrong < least) {
            least = wrong;
            best = rows[i].name;
        }
    }
    return best;
}

static void say_unknown(const char *entry, size_t length)
{
    const char *meant = resembling(entry, length);
    if (meant)
        GPSH_LOG(WARN, "config", "%.*s: unknown setting, ignored; did you mean %s?", (int)length,
                 entry, meant);
    else
        GPSH_LOG(WARN, "config",
                 "%.*s: unknown setting, ignored; `gpushmem info` lists the settings", (int)length,
                 entry);
}

static void warn_unknown(char *const *environment, const char *prefix)
{
    for (char *const *entry = environment; *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        if (!strncmp(*entry, prefix, strlen(prefix)) && !is_known(*entry, length))
            say_unknown(*entry, length);
    }
}

// What a row's kind and range do not say.
static int check_whole(const struct gpsh_settings *settings)
{
    int64_t entries = settings->ring_entries;
    if (entries & (entries - 1))
        return gpsh_fail(GPUSHMEM_ERR_SETTING,
                         PREFIX "RING_ENTRIES=%" PRId64 " is not a power of two, like 1024 or 4096",
                         entries);
    return gpsh_parse_cpus(settings->proxy_cpus, NULL, 0);
}

// ---- Aliases ----

static struct alias {
    char *value, *from;
} aliases[ROWS];
static pthread_mutex_t aliases_lock = PTHREAD_MUTEX_INITIALIZER;

static int row_of(const char *setting)
{
    int i = 0;
    while (i < ROWS && strcmp(rows[i].name, setting) != 0)
        i++;
    return i;
}

static void aliases_clear(void)
{
    for (int i = 0; i < ROWS; i++) {
        free(aliases[i].value);
        free(aliases[i].from);
        aliases[i] = (struct alias){NULL, NULL};
    }
}

void gpsh_setting_aliases_begin(void)
{
    pthread_mutex_lock(&aliases_lock);
    aliases_clear();
}

int gpsh_setting_alias(const char *setting, const char *value, const char *from)
{
    int i = row_of(setting);
    if (i == ROWS)
        return gpsh_fail(GPUSHMEM_ERR_SETTING, "%s: there is no setting %s", from, setting);
    struct alias alias = {strdup(value), strdup(from)};
    free(aliases[i].value);
    free(aliases[i].from);
    aliases[i] = alias;
    return alias.value && alias.from
               ? 0
               : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the value of %s", from);
}

void gpsh_setting_aliases_end(void)
{
    pthread_mutex_unlock(&aliases_lock);
}

void gpsh_setting_aliases_forget(void)
{
    gpsh_setting_aliases_begin();
    gpsh_setting_aliases_end();
}

bool gpsh_setting_is_given(const char *setting)
{
    int i = row_of(setting);
    pthread_mutex_lock(&aliases_lock);
    bool given = getenv(setting) || (i < ROWS && aliases[i].value);
    pthread_mutex_unlock(&aliases_lock);
    return given;
}

// An alias's value is what became of the variable's.
const char *gpsh_setting_as_given(const char *setting, char *out, size_t bytes)
{
    int i = row_of(setting);
    const char *name = setting, *value = getenv(setting);
    pthread_mutex_lock(&aliases_lock);
    if (!value && i < ROWS && aliases[i].from) {
        name = aliases[i].from;
        value = getenv(name) ? getenv(name) : aliases[i].value;
    }
    if (!value)
        value = i < ROWS ? rows[i].standard : "";
    snprintf(out, bytes, "%s=%s", name, value);
    pthread_mutex_unlock(&aliases_lock);
    return out;
}

// ---- Reading ----

// A row's value is that of the environment, else `of`, an array of aliases or NULL, else the
// default.
static int read_row(int i, const char *text, const struct alias *of, struct gpsh_settings *out)
{
    struct row row = rows[i];
    if (text && *text)
        return parse_row(&row, text, out);
    if (!of || !of[i].value || !of[i].from)
        return parse_row(&row, row.standard, out);
    row.name = of[i].from;
    return parse_row(&row, of[i].value, out);
}

static int read_all(char *const *environment, const char *prefix, const struct alias *of,
                    struct gpsh_settings *out)
{
    struct gpsh_settings settings;
    int status = 0;
    memset(&settings, 0, sizeof settings);
    for (int i = 0; i < ROWS && !status; i++) {
        bool taken = !strncmp(rows[i].name, prefix, strlen(prefix));
        status = read_row(i, taken ? find_value(environment, rows[i].name) : NULL,
                          taken ? of : NULL, &settings);
    }
    if (!status)
        status = check_whole(&settings);
    if (status) {
        gpsh_settings_clear(&settings);
        return status;
    }
    *out = settings;
    warn_unknown(environment, prefix);
    return 0;
}

static char *const nothing[] = {NULL};

int gpsh_settings_read(char *const *environment, struct gpsh_settings *out)
{
    return read_all(environment ? environment : nothing, PREFIX, NULL, out);
}

int gpsh_settings_read_process(const char *prefix, struct gpsh_settings *out)
{
    pthread_mutex_lock(&aliases_lock);
    int status = read_all(environ ? environ : nothing, prefix, aliases, out);
    pthread_mutex_unlock(&aliases_lock);
    return status;
}

void gpsh_settings_clear(struct gpsh_settings *settings)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].kind == KIND_STRING || rows[i].kind == KIND_LIST) {
            char **field = (char **)((char *)settings + rows[i].offset);
            free(*field);
            *field = NULL;
        }
}

bool gpsh_setting_row(int row, struct gpsh_setting_text *text)
{
    static const char *const kinds[] = {"integer", "size", "boolean", "text", "choice", "list"};
    if (row < 0 || row >= ROWS)
        return false;
    const struct row *r = &rows[row];
    *text = (struct gpsh_setting_text){.name = r->name,
                                       .kind = kinds[r->kind],
                                       .standard = r->standard,
                                       .choices = r->choices,
                                       .help = r->help,
                                       .low = r->low,
                                       .high = r->high};
    return true;
}

static void choice_word(const char *choices, int index, char *text, size_t bytes)
{
    while (index-- > 0)
        choices += strcspn(choices, "|") + 1;
    snprintf(text, bytes, "%.*s", (int)strcspn(choices, "|"), choices);
}

static void size_text(uint64_t value, char *text, size_t bytes)
{
    static const char units[] = {'\0', 'K', 'M', 'G', 'T', '\0'};
    int unit = 0;
    while (value && value % 1024 == 0 && units[unit + 1]) {
        value /= 1024;
        unit++;
    }
    snprintf(text, bytes, "%" PRIu64 "%c", value, units[unit]);
}

void gpsh_setting_value(const struct gpsh_settings *settings, int row, char *text, size_t bytes)
{
    const void *field = (const char *)settings + rows[row].offset;
    switch (rows[row].kind) {
    case KIND_INT: snprintf(text, bytes, "%" PRId64, *(const int64_t *)field); break;
    case KIND_SIZE: size_text(*(const uint64_t *)field, text, bytes); break;
    case KIND_BOOL: snprintf(text, bytes, "%d", *(const bool *)field); break;
    case KIND_CHOICE: choice_word(rows[row].choices, *(const int *)field, text, bytes); break;
    case KIND_STRING:
    case KIND_LIST: snprintf(text, bytes, "%s", *(char *const *)field); break;
    }
}
