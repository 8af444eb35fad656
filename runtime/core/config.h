// SPDX-License-Identifier: BSD-3-Clause
// The settings of this process: from its environment, from variables of other libraries (aliases)
// and from files.
#ifndef GPSH_CONFIG_H
#define GPSH_CONFIG_H

#include <stdio.h>

#include "core/settings.h"

// Of files and environment. *given is to be cleared, also after an error.
int gpsh_settings_gather(char *const *environment, const char *root, bool tell,
                         struct gpsh_settings_given *given);
// Reads `environment` and nothing else. An unknown GPUSHMEM_* variable is a warning.
int gpsh_settings_read(char *const *environment, struct gpsh_settings *out);

// The settings of this process: of its environment, aliases and files. What was given is kept
// until the next read, or until it is forgotten. `prefix`: "GPUSHMEM_" takes all, and warns.
int gpsh_settings_read_process(const char *prefix, struct gpsh_settings *out);

// The same without warnings, for those that start programs which warn themselves.
int gpsh_settings_read_quietly(const char *prefix, struct gpsh_settings *out);

// The process's own (gpsh_settings), with the prefix "GPUSHMEM_".
int gpsh_settings_open(void);
void gpsh_settings_close(void); // forgets aliases and files, too
// Where init fails, maybe for another setting: GPUSHMEM_ON_ERROR holds all the same.
void gpsh_settings_keep_on_error(void);
// What the job has agreed on instead of a default that does not fit.
void gpsh_settings_fit_heap(uint64_t heap_size);

// Forgets aliases and what was given: what follows is another job's.
void gpsh_settings_forget(void);

// Aliases: what variables of other libraries say about settings (NVSHMEM_MAX_TEAMS=8 about
// GPUSHMEM_TEAMS); sentences name the variable, `from`. Nothing is set in the environment: children
// and the next init of this process may have other values. All are replaced between begin and end,
// and other threads see none of that; only gpsh_setting_alias may be called in between.
void gpsh_setting_aliases_begin(void);
int gpsh_setting_alias(const char *setting, const char *value, const char *from);
void gpsh_setting_aliases_end(void);

// ---- Where a value comes from: after gpsh_settings_read_process ----

// Of a row; lasts until the next read. Not for threads beside those.
const struct gpsh_setting_given *gpsh_setting_origin(int row);
const struct gpsh_settings_file *gpsh_settings_file(int i); // the i-th place

// Whether anybody has given GPUSHMEM_* a value.
bool gpsh_setting_is_given(const char *setting);

// What the user wrote for GPUSHMEM_*, NAME=VALUE with the name that they know, or the default.
const char *gpsh_setting_as_given(const char *setting, char *out, size_t bytes);

// Puts the line of the file in front of the last error's sentence if it is one that gave
// GPUSHMEM_* its value. Returns `status`.
int gpsh_setting_fail_at(const char *setting, int status);

// Logs which files were read.
void gpsh_settings_log_files(void);

#endif
