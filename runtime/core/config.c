// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // environ
#include "core/config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"
#include "core/settings_files.h"

static char *const nothing[] = {NULL};

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

// Of a program around the library: no setting, and never warned about.
static bool is_foreign(const char *entry)
{
    return begins(entry, "GPUSHMEM_RUN_") || begins(entry, "GPUSHMEM_TEST_") ||
           begins(entry, "GPUSHMEM_SOFTHCA_") || begins(entry, "GPUSHMEM_HOME=");
}

static int environment_take(char *const *environment, bool tell, struct gpsh_settings_given *given)
{
    int status = 0;
    for (int i = 0; i < GPSH_SETTINGS && !status; i++) {
        const char *text = gpsh_settings_variable(environment, gpsh_setting_rows[i].name);
        if (text && *text)
            status = gpsh_setting_give(given, i, GPSH_FROM_ENVIRONMENT, text,
                                       gpsh_setting_rows[i].name, 0);
    }
    for (char *const *entry = environment; *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        if (begins(*entry, GPSH_SETTING_PREFIX) && !is_foreign(*entry) &&
            gpsh_setting_find(*entry, length) == GPSH_SETTINGS)
            gpsh_setting_ignore(given, "", *entry, length, tell);
    }
    return status;
}

int gpsh_settings_gather(char *const *environment, const char *root, bool tell,
                         struct gpsh_settings_given *given)
{
    memset(given, 0, sizeof *given);
    int status = gpsh_settings_files_read(environment, root, tell, given);
    return status ? status : environment_take(environment, tell, given);
}

int gpsh_settings_read(char *const *environment, struct gpsh_settings *out)
{
    struct gpsh_settings_given given = {0};
    int status = environment_take(environment ? environment : nothing, true, &given);
    if (!status)
        status = gpsh_settings_parse(&given, GPSH_SETTING_PREFIX, out);
    gpsh_settings_given_clear(&given);
    return status;
}

// ---- This process ----

static struct gpsh_settings_given aliases, here; // here: of the last read
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct gpsh_settings gpsh_settings_state;

void gpsh_setting_aliases_begin(void)
{
    pthread_mutex_lock(&lock);
    gpsh_settings_given_clear(&aliases);
}

int gpsh_setting_alias(const char *setting, const char *value, const char *from)
{
    int i = gpsh_setting_find(setting, strlen(setting));
    return i == GPSH_SETTINGS
               ? gpsh_fail(GPUSHMEM_ERR_SETTING, "%s: there is no setting %s", from, setting)
               : gpsh_setting_give(&aliases, i, GPSH_FROM_ALIAS, value, from, 0);
}

void gpsh_setting_aliases_end(void)
{
    pthread_mutex_unlock(&lock);
}

void gpsh_settings_forget(void)
{
    pthread_mutex_lock(&lock);
    gpsh_settings_given_clear(&aliases);
    gpsh_settings_given_clear(&here);
    pthread_mutex_unlock(&lock);
}

// Under the lock. Those who start a program with another user's rights choose no file for it.
static int gather_here(bool tell, struct gpsh_settings_given *given)
{
    char *const *all = environ ? environ : nothing;
    memset(given, 0, sizeof *given);
    int status = gpsh_settings_files_read(getauxval(AT_SECURE) ? nothing : all, "", tell, given);
    for (int i = 0; i < GPSH_SETTINGS && !status; i++)
        if (aliases.row[i].text && aliases.row[i].from)
            status = gpsh_setting_give(given, i, GPSH_FROM_ALIAS, aliases.row[i].text,
                                       aliases.row[i].from, 0);
    return status ? status : environment_take(all, tell, given);
}

int gpsh_settings_read_process(const char *prefix, struct gpsh_settings *out)
{
    struct gpsh_settings_given given;
    pthread_mutex_lock(&lock);
    int status = gather_here(!strcmp(prefix, GPSH_SETTING_PREFIX), &given);
    if (!status)
        status = gpsh_settings_parse(&given, prefix, out);
    gpsh_settings_given_clear(status ? &given : &here);
    if (!status)
        here = given;
    pthread_mutex_unlock(&lock);
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

int gpsh_settings_open(void)
{
    int status = gpsh_settings_read_process(GPSH_SETTING_PREFIX, &gpsh_settings_state);
    if (status)
        gpsh_settings_keep_on_error();
    return status;
}

void gpsh_settings_keep_on_error(void)
{
    struct gpsh_settings_given given;
    struct gpsh_settings alone;
    struct gpsh_error failure;
    gpsh_error_keep(&failure);
    pthread_mutex_lock(&lock);
    if (gather_here(false, &given)) // a file that cannot be read does not hide the environment
        environment_take(environ ? environ : nothing, false, &given);
    if (!gpsh_settings_parse(&given, GPSH_SETTING_PREFIX "ON_ERROR", &alone)) {
        gpsh_settings_state.on_error = alone.on_error;
        gpsh_settings_clear(&alone);
    }
    gpsh_settings_given_clear(&given);
    pthread_mutex_unlock(&lock);
    gpsh_error_put_back(&failure);
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

const struct gpsh_setting_given *gpsh_setting_origin(int row)
{
    return &here.row[row];
}

const struct gpsh_settings_file *gpsh_settings_file(int i)
{
    return &here.file[i];
}

bool gpsh_setting_is_given(const char *setting)
{
    pthread_mutex_lock(&lock);
    int i = gpsh_setting_find(setting, strlen(setting));
    bool given = i < GPSH_SETTINGS && here.row[i].text && *here.row[i].text;
    pthread_mutex_unlock(&lock);
    return given;
}

// An alias's value is what became of the variable's.
const char *gpsh_setting_as_given(const char *setting, char *out, size_t bytes)
{
    pthread_mutex_lock(&lock);
    int i = gpsh_setting_find(setting, strlen(setting));
    const struct gpsh_setting_given *g = &here.row[i];
    bool alias = g->source == GPSH_FROM_ALIAS;
    const char *variable = alias ? getenv(g->from) : NULL;
    snprintf(out, bytes, "%s=%s", alias ? g->from : setting,
             variable              ? variable
             : g->text && *g->text ? g->text
                                   : gpsh_setting_rows[i].standard);
    pthread_mutex_unlock(&lock);
    return out;
}

int gpsh_setting_fail_at(const char *setting, int status)
{
    pthread_mutex_lock(&lock);
    gpsh_setting_given_fail(&here.row[gpsh_setting_find(setting, strlen(setting))], status);
    pthread_mutex_unlock(&lock);
    return status;
}

void gpsh_settings_log_files(void)
{
    for (int i = 0; i < GPSH_SETTINGS_FILES; i++)
        if (here.file[i].state == GPSH_FILE_READ)
            GPSH_LOG(INFO, "config", "settings in %s: %d", here.file[i].path,
                     here.file[i].settings);
}
