// SPDX-License-Identifier: BSD-3-Clause
#include "api/compat.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/failed_calls.h"
#include "core/call_names.h"
#include "core/config.h"
#include "core/error.h"
#include "core/log.h"

// Constants have the same values in all three, and each its library's name. Settings keep ours.
static void rename_constants(const char *prefix, char *sentence)
{
    static const char *const families[] = {"CMP_", "SIGNAL_", "TEAM_INVALID"};
    const char ours[] = "GPUSHMEM_";
    const size_t length = sizeof ours - 1;
    for (char *at = sentence; (at = strstr(at, ours)); at++)
        for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
            if (strncmp(at + length, families[i], strlen(families[i])) == 0) {
                const char *theirs = *prefix == 'n' ? "NVSHMEM_" : "SHMEM_";
                memmove(at + strlen(theirs), at + length, strlen(at + length) + 1);
                memcpy(at, theirs, strlen(theirs));
                break;
            }
}

enum { RENAMED_BYTES = 1024 };

// Their variable for the size of the heap, before ours.
static void name_heap_size(const char *prefix, char *sentence)
{
    const char raise[] = "; raise GPUSHMEM_HEAP_SIZE";
    const size_t before = sizeof "; raise " - 1;
    char *at = strstr(sentence, raise), rest[RENAMED_BYTES];
    if (!at)
        return;
    snprintf(rest, sizeof rest, "%s", at + before);
    snprintf(at + before, RENAMED_BYTES - before - (size_t)(at - sentence), "%s, %s",
             *prefix == 'n' ? "NVSHMEM_SYMMETRIC_SIZE" : "SHMEM_SYMMETRIC_SIZE", rest);
}

static void rename_last(const char *prefix, char *out)
{
    gpsh_calls_rename(prefix, gpsh_last_error(), out, RENAMED_BYTES);
    rename_constants(prefix, out);
    name_heap_size(prefix, out);
}

static void log_last(const char *prefix)
{
    char renamed[RENAMED_BYTES];
    rename_last(prefix, renamed);
    if (gpsh_failure_is_new(prefix, renamed))
        GPSH_LOG(ERROR, prefix, "%s", renamed);
}

static void lose_last(const char *prefix)
{
    char renamed[RENAMED_BYTES];
    rename_last(prefix, renamed);
    gpsh_call_lost(prefix, "", renamed);
}

void gpsh_compat_failed(const char *prefix)
{
    if (gpsh_last_error_code() && !gpsh_error_is_said())
        log_last(prefix);
    gpsh_clear_error();
}

void gpsh_compat_lost(const char *prefix)
{
    if (gpsh_last_error_code())
        lose_last(prefix);
    gpsh_clear_error();
}

void gpsh_compat_init_failed(const char *prefix, bool said, bool told)
{
    gpsh_compat_begin(prefix);
    if (said)
        gpsh_error_mark_said();
    gpsh_settings_keep_on_error();
    if (!told && gpsh_call_lost_ends_job())
        gpsh_compat_lost(prefix); // does not return
    gpsh_compat_failed(prefix);
}

void gpsh_compat_begin(const char *prefix)
{
    gpsh_call_names_are(prefix);
}

static atomic_bool caller_tells;

void gpsh_caller_tells_failures(void)
{
    atomic_store(&caller_tells, true);
}

bool gpsh_failures_are_told(void)
{
    return gpsh_call_names() || atomic_load(&caller_tells);
}

void gpsh_value_failed(bool shared)
{
    const char *prefix = shared ? gpsh_call_names() : NULL;
    if (prefix)
        lose_last(prefix);
    else
        gpsh_call_lost("api", "a call failed that could not return it: ", gpsh_last_error());
}

int gpsh_compat_heap_size(const char *variable, const char *text)
{
    static const char setting[] = "GPUSHMEM_HEAP_SIZE";
    const double least = (double)gpsh_setting_rows[gpsh_setting_find(setting, strlen(setting))].low;
    char *end, bytes[32];
    double value = strtod(text, &end);
    const char *suffixes = "KMGT", *suffix = *end ? strchr(suffixes, toupper(*end)) : NULL;
    for (const char *s = suffixes; suffix && s <= suffix; s++)
        value *= 1024;
    if (suffix) { // KB and KiB are K, as in GPUSHMEM_HEAP_SIZE
        end++;
        end += !strncasecmp(end, "iB", 2) ? 2 : !strncasecmp(end, "B", 1);
    }
    if (end == text || *end || !(value >= 1) || value > 1e15)
        return gpsh_fail(GPUSHMEM_ERR_SETTING,
                         "%s=%s is no size; write bytes, or a number with K, M, G or T, like 512M",
                         variable, text);
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)(value < least ? least : value));
    return gpsh_setting_alias(setting, bytes, variable);
}
