// SPDX-License-Identifier: BSD-3-Clause
#include "core/setting_rows.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "generated/transports.h"

const struct gpsh_setting_spec gpsh_setting_specs[GPSH_SETTINGS] = {
#define GPSH_SETTING(field, NAME, kind, def, low, high, choices, help)                             \
    {GPSH_SETTING_PREFIX #NAME,                                                                    \
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

enum { NAME_BYTES = 64 }; // no name is that long

int gpsh_setting_find(const char *name, size_t length)
{
    int i = 0;
    while (i < GPSH_SETTINGS && (strlen(gpsh_setting_specs[i].name) != length ||
                                 strncmp(gpsh_setting_specs[i].name, name, length) != 0))
        i++;
    return i;
}

bool gpsh_setting_is_foreign(const char *entry)
{
    static const char *const theirs[] = {"GPUSHMEM_RUN_", "GPUSHMEM_TEST_", "GPUSHMEM_SOFTHCA_",
                                         "GPUSHMEM_HOME="};
    for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++)
        if (!strncmp(entry, theirs[i], strlen(theirs[i])))
            return true;
    return false;
}

// Letters to insert, remove or replace in one word to get the other.
static int difference(const char *a, const char *b)
{
    int row[NAME_BYTES];
    int b_length = (int)strlen(b);
    for (int j = 0; j <= b_length; j++)
        row[j] = j;
    for (int i = 0; a[i]; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < b_length; j++) {
            int replaced = diagonal + (a[i] != b[j]),
                shorter = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = replaced < shorter ? replaced : shorter;
        }
    }
    return row[b_length];
}

// In capitals and with the prefix, as settings are written. False: no setting is that long.
static bool spell(const char *name, size_t length, char spelt[NAME_BYTES])
{
    size_t used = 0;
    if (length < sizeof GPSH_SETTING_PREFIX ||
        strncasecmp(name, GPSH_SETTING_PREFIX, sizeof GPSH_SETTING_PREFIX - 2) != 0)
        used = (size_t)snprintf(spelt, NAME_BYTES, GPSH_SETTING_PREFIX);
    if (used + length >= NAME_BYTES)
        return false;
    for (size_t i = 0; i < length; i++)
        spelt[used++] = (char)toupper((unsigned char)name[i]);
    spelt[used] = '\0';
    return true;
}

// The setting that was probably meant, or NULL: one with at most two letters wrong.
static const char *resembling(const char *name, size_t length)
{
    enum { MOST = 2 };
    char spelt[NAME_BYTES];
    const char *best = NULL;
    int least = MOST + 1;
    for (int i = 0; i < GPSH_SETTINGS && spell(name, length, spelt); i++) {
        int wrong = difference(spelt, gpsh_setting_specs[i].name);
        if (wrong < least) {
            least = wrong;
            best = gpsh_setting_specs[i].name;
        }
    }
    return best;
}

const char *gpsh_setting_advice(const char *name, size_t length, char *out, size_t bytes)
{
    const char *meant = resembling(name, length);
    if (meant)
        snprintf(out, bytes, "did you mean %s?", meant);
    else
        snprintf(out, bytes, "`gpushmem info` lists the settings");
    return out;
}
