// SPDX-License-Identifier: BSD-3-Clause
// The settings files of a process: docs/design/starting.md.
#ifndef GPSH_SETTINGS_FILES_H
#define GPSH_SETTINGS_FILES_H

#include <stdio.h>

#include "core/settings.h"

// Reads the files that an environment (like environ) leads to, below `root` ("" for this machine's
// own); `tell`: warns about names that are no settings. GPUSHMEM_ERR_SETTING with a sentence: a
// file cannot be read, must not be trusted, or has a line that is no setting.
int gpsh_settings_files_read(char *const *environment, const char *root, bool tell,
                             struct gpsh_settings_given *given);
// The lines of one file; a fuzz target calls it.
int gpsh_settings_lines_read(FILE *in, struct gpsh_settings_file *file, bool tell,
                             struct gpsh_settings_given *given);

#endif
