// SPDX-License-Identifier: BSD-3-Clause
// The settings files of a process: which there are, whether they may be trusted, and what they say.
// docs/adr/0049-settings-files.md.
#ifndef GPSH_SETTINGS_FILES_H
#define GPSH_SETTINGS_FILES_H

#include <stdbool.h>

#include "core/settings.h"

#define GPSH_SETTINGS_FILE      "GPUSHMEM_SETTINGS_FILE"
#define GPSH_SETTINGS_FILE_NONE "none" // as its value: no file is read
enum { GPSH_SETTINGS_PATH_BYTES = 4096 };

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
    char path[GPSH_SETTINGS_PATH_BYTES];
};

// In the order of their rank: the first that has a line for a setting has the say.
enum { GPSH_SETTINGS_FILES = 2 };

struct gpsh_settings_files {
    struct gpsh_settings_file file[GPSH_SETTINGS_FILES];
    struct {
        char *value; // NULL: no line; "": the default, whatever files of lower rank say
        const struct gpsh_settings_file *file;
        int line;
    } row[GPSH_SETTINGS];
};

// Reads the files that an environment (like environ) leads to, below `root` ("" for this machine's
// own). Names that are no settings are warned about. GPUSHMEM_ERR_SETTING with a sentence: a file
// cannot be read, must not be trusted, or has a line that is no setting; *out is untouched then.
// Values are not looked at. Free with gpsh_settings_files_free.
int gpsh_settings_files_read(char *const *environment, const char *root,
                             struct gpsh_settings_files **out);
void gpsh_settings_files_free(struct gpsh_settings_files *files); // may be NULL

// Whether another read with this environment would look at the same places.
bool gpsh_settings_files_fit(const struct gpsh_settings_files *files, char *const *environment);

// The value of a variable in an environment, or NULL.
const char *gpsh_settings_variable(char *const *environment, const char *name);

#endif
