// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "core/config.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"
#include "core/setting_rows.h"
#include "core/settings_text.h"

#define rows gpsh_setting_specs

static char *const nothing[] = {NULL};

// ---- What the process has beside its environment ----

static struct alias {
    char *value, *from;
} aliases[GPSH_SETTINGS];
static struct gpsh_settings_files *files; // NULL: not read yet
static pthread_mutex_t sources_lock = PTHREAD_MUTEX_INITIALIZER;

static void aliases_clear(void)
{
    for (int i = 0; i < GPSH_SETTINGS; i++) {
        free(aliases[i].value);
        free(aliases[i].from);
        aliases[i] = (struct alias){NULL, NULL};
    }
}

void gpsh_setting_aliases_begin(void)
{
    pthread_mutex_lock(&sources_lock);
    aliases_clear();
}

int gpsh_setting_alias(const char *setting, const char *value, const char *from)
{
    int i = gpsh_setting_find(setting, strlen(setting));
    if (i == GPSH_SETTINGS)
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
    pthread_mutex_unlock(&sources_lock);
}

static void files_forget(void)
{
    gpsh_settings_files_free(files);
    files = NULL;
}

void gpsh_settings_forget(void)
{
    pthread_mutex_lock(&sources_lock);
    aliases_clear();
    files_forget();
    pthread_mutex_unlock(&sources_lock);
}

// Those who start a program with another user's rights choose no file for it.
static char *const *environment_of_places(void)
{
    return environ && !getauxval(AT_SECURE) ? environ : nothing;
}

// Files that were read stay, as long as the environment leads to them.
static int files_read(bool *fresh)
{
    char *const *environment = environment_of_places();
    *fresh = !files || !gpsh_settings_files_fit(files, environment);
    if (!*fresh)
        return 0;
    files_forget();
    return gpsh_settings_files_read(environment, "", &files);
}

// ---- Where a value comes from ----

struct sources {
    char *const *environment;
    const struct alias *aliases; // NULL: none
    const struct gpsh_settings_files *files;
};

struct found {
    enum gpsh_setting_source source;
    const char *text, *name; // name: of variable or file
    int line;
};

static struct found find(int i, const struct sources *in)
{
    if (i == GPSH_SETTINGS)
        return (struct found){GPSH_FROM_DEFAULT, "", "", 0};
    const char *text = gpsh_settings_variable(in->environment, rows[i].name);
    if (text && *text)
        return (struct found){GPSH_FROM_ENVIRONMENT, text, rows[i].name, 0};
    const struct alias *alias = in->aliases ? &in->aliases[i] : NULL;
    if (alias && alias->value && alias->from)
        return (struct found){GPSH_FROM_ALIAS, alias->value, alias->from, 0};
    if (in->files && in->files->row[i].value)
        return (struct found){GPSH_FROM_FILE, in->files->row[i].value, in->files->row[i].file->path,
                              in->files->row[i].line};
    return (struct found){GPSH_FROM_DEFAULT, rows[i].standard, rows[i].name, 0};
}

// Under the lock.
static struct found find_here(int i)
{
    const struct sources here = {environ ? environ : nothing, aliases, files};
    return find(i, &here);
}

void gpsh_setting_origin(int row, struct gpsh_setting_origin *out)
{
    pthread_mutex_lock(&sources_lock);
    struct found found = find_here(row);
    *out = (struct gpsh_setting_origin){.source = found.source, .line = found.line};
    snprintf(out->name, sizeof out->name, "%s", found.name);
    pthread_mutex_unlock(&sources_lock);
}

bool gpsh_setting_is_given(const char *setting)
{
    int i = gpsh_setting_find(setting, strlen(setting));
    pthread_mutex_lock(&sources_lock);
    struct found found = find_here(i);
    bool given = found.source != GPSH_FROM_DEFAULT && *found.text;
    pthread_mutex_unlock(&sources_lock);
    return given;
}

// An alias's value is what became of the variable's.
const char *gpsh_setting_as_given(const char *setting, char *out, size_t bytes)
{
    int i = gpsh_setting_find(setting, strlen(setting));
    pthread_mutex_lock(&sources_lock);
    struct found found = find_here(i);
    bool alias = found.source == GPSH_FROM_ALIAS;
    const char *variable = alias ? getenv(found.name) : NULL;
    if (found.source == GPSH_FROM_FILE && !*found.text)
        found.text = rows[i].standard;
    snprintf(out, bytes, "%s=%s", alias ? found.name : setting, variable ? variable : found.text);
    pthread_mutex_unlock(&sources_lock);
    return out;
}

static int fail_at(const struct found *found, int status)
{
    enum { MOST = 200 }; // that gpsh_fail_in takes
    char place[MOST];
    return status && found->source == GPSH_FROM_FILE
               ? gpsh_fail_in(status, gpsh_settings_line_place(found->name, found->line, place,
                                                               sizeof place))
               : status;
}

int gpsh_setting_fail_at(const char *setting, int status)
{
    int i = gpsh_setting_find(setting, strlen(setting));
    pthread_mutex_lock(&sources_lock);
    struct found found = find_here(i);
    fail_at(&found, status);
    pthread_mutex_unlock(&sources_lock);
    return status;
}

bool gpsh_settings_file(int i, struct gpsh_settings_file *out)
{
    pthread_mutex_lock(&sources_lock);
    bool there = files && i >= 0 && i < GPSH_SETTINGS_FILES;
    if (there)
        *out = files->file[i];
    pthread_mutex_unlock(&sources_lock);
    return there;
}

void gpsh_settings_log_files(void)
{
    struct gpsh_settings_file file;
    for (int i = 0; gpsh_settings_file(i, &file); i++)
        if (file.state == GPSH_FILE_READ)
            GPSH_LOG(INFO, "config", "settings in %s: %d", file.path, file.settings);
}

// ---- Reading ----

static void warn_unknown(char *const *environment, const char *prefix)
{
    char advice[120];
    for (char *const *entry = environment; *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, prefix, strlen(prefix)) != 0 || gpsh_setting_is_foreign(*entry) ||
            gpsh_setting_find(*entry, length) < GPSH_SETTINGS)
            continue;
        GPSH_LOG(WARN, "config", "%.*s: unknown setting, ignored; %s", (int)length, *entry,
                 gpsh_setting_advice(*entry, length, advice, sizeof advice));
    }
}

// What a row's kind and range do not say.
static int check_row(int i, const struct gpsh_settings *settings)
{
    int64_t entries = settings->ring_entries;
    if (rows[i].offset == offsetof(struct gpsh_settings, ring_entries) && entries & (entries - 1))
        return gpsh_fail(GPUSHMEM_ERR_SETTING,
                         "%s=%" PRId64 " is not a power of two, like 1024 or 4096", rows[i].name,
                         entries);
    if (rows[i].offset == offsetof(struct gpsh_settings, proxy_cpus))
        return gpsh_parse_cpus(settings->proxy_cpus, NULL, 0);
    return 0;
}

static int read_row(int i, const struct found *found, struct gpsh_settings *out)
{
    struct gpsh_setting_spec row = rows[i];
    if (found->source == GPSH_FROM_ALIAS)
        row.name = found->name;
    int status = gpsh_setting_parse(&row, *found->text ? found->text : row.standard, out);
    return fail_at(found, status ? status : check_row(i, out));
}

static int read_all(const struct sources *from, const char *prefix, struct gpsh_settings *out)
{
    static const struct sources nowhere = {nothing, NULL, NULL};
    struct gpsh_settings settings;
    int status = 0;
    memset(&settings, 0, sizeof settings);
    for (int i = 0; i < GPSH_SETTINGS && !status; i++) {
        bool taken = !strncmp(rows[i].name, prefix, strlen(prefix));
        struct found found = find(i, taken ? from : &nowhere);
        status = read_row(i, &found, &settings);
    }
    if (status) {
        gpsh_settings_clear(&settings);
        return status;
    }
    *out = settings;
    warn_unknown(from->environment, prefix);
    return 0;
}

int gpsh_settings_read_with(char *const *environment, const struct gpsh_settings_files *with,
                            struct gpsh_settings *out)
{
    const struct sources from = {environment ? environment : nothing, NULL, with};
    return read_all(&from, GPSH_SETTING_PREFIX, out);
}

int gpsh_settings_read(char *const *environment, struct gpsh_settings *out)
{
    return gpsh_settings_read_with(environment, NULL, out);
}

int gpsh_settings_read_process(const char *prefix, struct gpsh_settings *out)
{
    bool fresh;
    pthread_mutex_lock(&sources_lock);
    int status = files_read(&fresh);
    const struct sources here = {environ ? environ : nothing, aliases, files};
    if (!status)
        status = read_all(&here, prefix, out);
    if (status && fresh)
        files_forget(); // they may be mended before the next try
    pthread_mutex_unlock(&sources_lock);
    return status;
}

int gpsh_settings_read_quietly(const char *prefix, struct gpsh_settings *out)
{
    enum gpsh_log_level level = gpsh_log_threshold;
    gpsh_log_threshold = GPSH_LOG_ERROR;
    int status = gpsh_settings_read_process(prefix, out);
    gpsh_log_threshold = level;
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

struct gpsh_settings gpsh_settings_state;

int gpsh_settings_open(void)
{
    return gpsh_settings_read_process(GPSH_SETTING_PREFIX, &gpsh_settings_state);
}

void gpsh_settings_close(void)
{
    gpsh_settings_clear(&gpsh_settings_state);
    gpsh_settings_forget();
}

void gpsh_settings_fit_heap(uint64_t heap_size)
{
    gpsh_settings_state.heap_size = heap_size;
}

bool gpsh_setting_row(int row, struct gpsh_setting_text *text)
{
    static const char *const kinds[] = {"integer", "size", "boolean", "text", "choice", "list"};
    if (row < 0 || row >= GPSH_SETTINGS)
        return false;
    const struct gpsh_setting_spec *r = &rows[row];
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
    case GPSH_KIND_INT: snprintf(text, bytes, "%" PRId64, *(const int64_t *)field); break;
    case GPSH_KIND_SIZE: size_text(*(const uint64_t *)field, text, bytes); break;
    case GPSH_KIND_BOOL: snprintf(text, bytes, "%d", *(const bool *)field); break;
    case GPSH_KIND_CHOICE: choice_word(rows[row].choices, *(const int *)field, text, bytes); break;
    case GPSH_KIND_STRING:
    case GPSH_KIND_LIST: snprintf(text, bytes, "%s", *(char *const *)field); break;
    }
}
