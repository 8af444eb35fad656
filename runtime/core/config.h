// SPDX-License-Identifier: BSD-3-Clause
// Settings: the struct is made from config.def, filled from the environment (GPUSHMEM_<NAME>).
#ifndef GPSH_CONFIG_H
#define GPSH_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define GPSH_FIELD_INT    int64_t
#define GPSH_FIELD_SIZE   uint64_t
#define GPSH_FIELD_BOOL   bool
#define GPSH_FIELD_STRING const char *
#define GPSH_FIELD_CHOICE int
#define GPSH_FIELD_LIST   const char *

struct gpsh_settings {
#define GPSH_SETTING(field, NAME, kind, def, low, high, choices, help) GPSH_FIELD_##kind field;
#include "core/config.def"
#undef GPSH_SETTING
};

enum { GPSH_COLLECTIVES_TEXT = 80 }; // of the setting in full

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
enum gpsh_amo_agent { GPSH_AGENT_AUTO, GPSH_AGENT_CPU, GPSH_AGENT_NIC };

// Reads every setting from `environment` (like environ). Stops at the first bad value:
// GPUSHMEM_ERR_SETTING with a sentence naming the variable, the value and what is allowed; *out is
// untouched then. An unknown GPUSHMEM_* variable is a warning. Strings belong to *out: free with
// gpsh_settings_clear.
int gpsh_settings_read(char *const *environment, struct gpsh_settings *out);
void gpsh_settings_clear(struct gpsh_settings *settings);

// The same of this process's environment, and where that has no value for a setting, of its alias.
// Variables without `prefix` ("GPUSHMEM_": all) are passed over, and their settings are the
// defaults.
int gpsh_settings_read_process(const char *prefix, struct gpsh_settings *out);

// Aliases: what variables of other libraries say about settings (NVSHMEM_MAX_TEAMS=8 about
// GPUSHMEM_TEAMS); sentences name the variable, `from`. Nothing is set in the environment: children
// and the next init of this process may have other values. All are replaced between begin and end,
// and other threads see none of that; only gpsh_setting_alias may be called in between.
void gpsh_setting_aliases_begin(void);
int gpsh_setting_alias(const char *setting, const char *value, const char *from);
void gpsh_setting_aliases_end(void);
void gpsh_setting_aliases_forget(void);
// Whether the environment or an alias has a value for GPUSHMEM_*.
bool gpsh_setting_is_given(const char *setting);

// What the user wrote for GPUSHMEM_*, NAME=VALUE with the name that they know, or the default.
const char *gpsh_setting_as_given(const char *setting, char *out, size_t bytes);

// Parses "64M", "1G", "4096" into bytes. 0, or GPUSHMEM_ERR_SETTING without a sentence.
int gpsh_parse_size(const char *text, uint64_t *bytes);

// CPUs in "4-7,12": out[i] is that of the i-th of n threads, in turn; -1 where the text is empty or
// "any". GPUSHMEM_ERR_SETTING with a sentence if it is no such list.
int gpsh_parse_cpus(const char *text, int *out, int n);

// One row of the table as text, for `gpushmem info` and the documentation. Returns false past the
// last row.
struct gpsh_setting_text {
    const char *name;     // with the GPUSHMEM_ prefix
    const char *kind;     // "integer", "size", "boolean", "text", "choice", "list"
    const char *standard; // default
    const char *choices;
    const char *help;
    int64_t low, high;
};
bool gpsh_setting_row(int row, struct gpsh_setting_text *text);
// The value a row has in `settings`, as text; for choices the word.
void gpsh_setting_value(const struct gpsh_settings *settings, int row, char *text, size_t bytes);

#endif
