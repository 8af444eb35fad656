// SPDX-License-Identifier: BSD-3-Clause
// Settings: settings.def makes the struct and the table; what was given for a row becomes a value.
#ifndef GPSH_SETTINGS_H
#define GPSH_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPSH_SETTING_PREFIX "GPUSHMEM_"
#define GPSH_SETTINGS_FILE  "GPUSHMEM_SETTINGS_FILE"

#define GPSH_FIELD_INT    int64_t
#define GPSH_FIELD_SIZE   uint64_t
#define GPSH_FIELD_BOOL   bool
#define GPSH_FIELD_STRING const char *
#define GPSH_FIELD_CHOICE int
#define GPSH_FIELD_LIST   const char *

struct gpsh_settings {
#define GPSH_SETTING(level, field, NAME, kind, def, low, high, choices, help)                      \
    GPSH_FIELD_##kind field;
#include "core/settings.def"
#undef GPSH_SETTING
};

enum {
    GPSH_SETTINGS = 0 // rows of settings.def
#define GPSH_SETTING(level, field, NAME, kind, def, low, high, choices, help) +1
#include "core/settings.def"
#undef GPSH_SETTING
};

// Those of this process, between gpsh_settings_open and close. core/ alone writes them.
extern struct gpsh_settings gpsh_settings_state __attribute__((visibility("hidden")));
static inline const struct gpsh_settings *gpsh_settings(void)
{
    return &gpsh_settings_state;
}

enum { GPSH_COLLECTIVES_TEXT = 128 }; // of the setting in full

enum gpsh_on_error { GPSH_ON_ERROR_WARN, GPSH_ON_ERROR_ABORT, GPSH_ON_ERROR_IGNORE };
enum gpsh_on_pe_failure { GPSH_ON_FAILURE_ABORT, GPSH_ON_FAILURE_NOTIFY };
enum gpsh_waits { GPSH_WAITS_AUTO, GPSH_WAITS_SPIN, GPSH_WAITS_YIELD };
enum gpsh_static_data { GPSH_STATIC_DATA_AUTO, GPSH_STATIC_DATA_ON, GPSH_STATIC_DATA_OFF };
enum gpsh_heap_kind { GPSH_HEAP_AUTO, GPSH_HEAP_HOST, GPSH_HEAP_DEVICE };
enum gpsh_huge_pages {
    GPSH_PAGES_AUTO,
    GPSH_PAGES_OFF,
    GPSH_PAGES_THP,
    GPSH_PAGES_2M,
    GPSH_PAGES_1G
};
enum gpsh_device_post { GPSH_DEVICE_POST_RING, GPSH_DEVICE_POST_NIC, GPSH_DEVICE_POST_AUTO };
enum gpsh_device_queues {
    GPSH_DEVICE_QUEUES_AUTO,
    GPSH_DEVICE_QUEUES_HOST,
    GPSH_DEVICE_QUEUES_GPU
};
enum gpsh_doorbell { GPSH_DOORBELL_AUTO, GPSH_DOORBELL_HOST };
enum gpsh_amo_agent { GPSH_AGENT_AUTO, GPSH_AGENT_CPU, GPSH_AGENT_NIC };
enum gpsh_gpudirect { GPSH_GPUDIRECT_AUTO, GPSH_GPUDIRECT_ALWAYS, GPSH_GPUDIRECT_NEVER };

// ---- The table ----

// What a user should know, what an expert may want, and what only tests change.
enum gpsh_setting_level { GPSH_LEVEL_MAIN, GPSH_LEVEL_EXPERT, GPSH_LEVEL_TEST };
enum gpsh_setting_kind {
    GPSH_KIND_INT,
    GPSH_KIND_SIZE,
    GPSH_KIND_BOOL,
    GPSH_KIND_STRING,
    GPSH_KIND_CHOICE,
    GPSH_KIND_LIST
};

struct gpsh_setting {
    const char *name; // GPUSHMEM_..., or GPUSHMEM_TEST_...
    enum gpsh_setting_level level;
    enum gpsh_setting_kind kind;
    size_t offset; // of its field in struct gpsh_settings
    const char *standard;
    int64_t low, high;
    const char *choices, *help;
};
extern const struct gpsh_setting gpsh_setting_rows[GPSH_SETTINGS];

// The row of a name, or GPSH_SETTINGS if there is none.
int gpsh_setting_find(const char *name, size_t length);

// The value a row has in `settings`, as text that can be given back.
void gpsh_setting_value(const struct gpsh_settings *settings, int row, char *text, size_t bytes);

// Parses "64M", "1G", "4096" into bytes. 0, or GPUSHMEM_ERR_SETTING without a sentence.
int gpsh_parse_size(const char *text, uint64_t *bytes);

// CPUs in "4-7,12": out[i] is that of the i-th of n threads, in turn; -1 where the text is empty or
// "any". GPUSHMEM_ERR_SETTING with a sentence if it is no such list.
int gpsh_parse_cpus(const char *text, int *out, int n);

// ---- What was written for each setting, and where ----

enum gpsh_setting_source { // in rising rank
    GPSH_FROM_DEFAULT,
    GPSH_FROM_FILE,
    GPSH_FROM_ALIAS,
    GPSH_FROM_ENVIRONMENT
};
struct gpsh_setting_given {
    enum gpsh_setting_source source;
    int line;          // of the file
    char *text, *from; // NULL: nothing; `from`: the variable or the file
};

enum gpsh_settings_owner {
    GPSH_FILE_OF_NOBODY, // there is no such place
    GPSH_FILE_NAMED,     // by GPUSHMEM_SETTINGS_FILE, instead of the user's
    GPSH_FILE_OF_USER,
    GPSH_FILE_OF_SYSTEM
};
enum gpsh_settings_state { GPSH_FILE_ABSENT, GPSH_FILE_READ, GPSH_FILE_PASSED_OVER };
struct gpsh_settings_file {
    enum gpsh_settings_owner owner;
    enum gpsh_settings_state state;
    int settings; // lines that are some
    char *path;
};
enum { GPSH_SETTINGS_FILES = 2, GPSH_SETTINGS_FILE_BYTES = 1 << 18 };

struct gpsh_settings_given {
    struct gpsh_settings_file file[GPSH_SETTINGS_FILES]; // the user's, the system's
    struct gpsh_setting_given row[GPSH_SETTINGS];
    int ignored;             // names that no row has
    char first_ignored[500]; // what is said of the first of them
};

// Keeps a copy in place of what the row had. GPUSHMEM_ERR_NO_MEMORY with a sentence.
int gpsh_setting_give(struct gpsh_settings_given *given, int row, enum gpsh_setting_source source,
                      const char *text, const char *from, int line);

// Counts a name that no row has, of `length` characters: "PLACE" "NAME: unknown setting, ignored;
// did you mean ...?" `place` begins the sentence, and may be empty. `tell`: also as a warning.
void gpsh_setting_ignore(struct gpsh_settings_given *given, const char *place, const char *name,
                         size_t length, bool tell);

void gpsh_settings_given_clear(struct gpsh_settings_given *given);

// Puts the line of the file in front of the last error's sentence if it is one that gave this.
// Returns `status`.
int gpsh_setting_given_fail(const struct gpsh_setting_given *given, int status);

// The value of a variable in an environment, or NULL.
const char *gpsh_settings_variable(char *const *environment, const char *name);

// ---- Values ----

// Makes values of the rows with this prefix; the others have their defaults. Stops at the first bad
// one: GPUSHMEM_ERR_SETTING with a sentence naming the variable, the value and what is allowed;
// *out is untouched then. Strings belong to *out: free with gpsh_settings_clear.
int gpsh_settings_parse(const struct gpsh_settings_given *given, const char *prefix,
                        struct gpsh_settings *out);
void gpsh_settings_clear(struct gpsh_settings *settings);

#endif
