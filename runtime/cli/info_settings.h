// SPDX-License-Identifier: BSD-3-Clause
// What `gpushmem info` prints about settings.
#ifndef GPSH_INFO_SETTINGS_H
#define GPSH_INFO_SETTINGS_H

#include <stdbool.h>

#include "core/config.h"
#include "json.h"

// Whose programs the settings are shown for: their variables count beside GPUSHMEM_*.
enum gpsh_info_for { GPSH_FOR_GPUSHMEM, GPSH_FOR_NVSHMEM, GPSH_FOR_OPENSHMEM };
#define GPSH_INFO_FOR_WORDS "gpushmem|nvshmem|openshmem"

// Reads the settings of this process. An exit code; not 0: it was said why.
int gpsh_info_settings_read(enum gpsh_info_for whose, struct gpsh_settings *settings);

// Those that a user should know and those that are set, a line each; or all, with their meanings in
// full.
void gpsh_info_settings_print(const struct gpsh_settings *settings, bool all);
void gpsh_info_settings_add(struct gpsh_json *json, const struct gpsh_settings *settings);

void gpsh_info_settings_markdown(void); // docs/settings.md
void gpsh_info_settings_file(void);     // a settings file with all of them as comments

#endif
