// SPDX-License-Identifier: BSD-3-Clause
// Settings: the struct is made from settings.def, and filled from the environment (GPUSHMEM_<NAME>)
// and from files. docs/adr/0049-settings-files.md.
#ifndef GPSH_CONFIG_H
#define GPSH_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/setting_parse.h"
#include "core/settings.h"
#include "core/settings_files.h"

// Reads every setting from `environment` (like environ) and from nowhere else. Stops at the first
// bad value: GPUSHMEM_ERR_SETTING with a sentence naming the variable, the value and what is
// allowed; *out is untouched then. An unknown GPUSHMEM_* variable is a warning. Strings belong to
// *out: free with gpsh_settings_clear.
int gpsh_settings_read(char *const *environment, struct gpsh_settings *out);
void gpsh_settings_clear(struct gpsh_settings *settings);

// The same, and where the environment has no value for a setting, that of `files`, which may be
// NULL.
int gpsh_settings_read_with(char *const *environment, const struct gpsh_settings_files *files,
                            struct gpsh_settings *out);

// The settings of this process: of its environment; where that has no value, of its alias; else of
// its settings files, which are read once, until they are forgotten. Variables and lines without
// `prefix` ("GPUSHMEM_": all) are passed over, and their settings are the defaults.
int gpsh_settings_read_process(const char *prefix, struct gpsh_settings *out);

// The same without warnings, for those that start programs which warn themselves.
int gpsh_settings_read_quietly(const char *prefix, struct gpsh_settings *out);

// The process's own (gpsh_settings), with the prefix "GPUSHMEM_".
int gpsh_settings_open(void);
void gpsh_settings_close(void); // forgets aliases and files, too
// What the job has agreed on instead of a default that does not fit.
void gpsh_settings_fit_heap(uint64_t heap_size);

// Forgets aliases and files: what follows is another job's.
void gpsh_settings_forget(void);

// Aliases: what variables of other libraries say about settings (NVSHMEM_MAX_TEAMS=8 about
// GPUSHMEM_TEAMS); sentences name the variable, `from`. Nothing is set in the environment: children
// and the next init of this process may have other values. All are replaced between begin and end,
// and other threads see none of that; only gpsh_setting_alias may be called in between.
void gpsh_setting_aliases_begin(void);
int gpsh_setting_alias(const char *setting, const char *value, const char *from);
void gpsh_setting_aliases_end(void);

// ---- Where a setting's value comes from: after gpsh_settings_read_process ----

enum gpsh_setting_source {
    GPSH_FROM_DEFAULT,
    GPSH_FROM_ENVIRONMENT,
    GPSH_FROM_ALIAS,
    GPSH_FROM_FILE
};
struct gpsh_setting_origin {
    enum gpsh_setting_source source;
    char name[GPSH_SETTINGS_PATH_BYTES]; // of the variable or file
    int line;                            // of the file
};
void gpsh_setting_origin(int row, struct gpsh_setting_origin *out);

// Whether anybody has given GPUSHMEM_* a value.
bool gpsh_setting_is_given(const char *setting);

// What the user wrote for GPUSHMEM_*, NAME=VALUE with the name that they know, or the default.
const char *gpsh_setting_as_given(const char *setting, char *out, size_t bytes);

// Puts the line of the file in front of the last error's sentence if it is one that gave
// GPUSHMEM_* its value. Returns `status`.
int gpsh_setting_fail_at(const char *setting, int status);

// The i-th place where a file is looked for; false past the last.
bool gpsh_settings_file(int i, struct gpsh_settings_file *out);

// Logs which files were read.
void gpsh_settings_log_files(void);

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
