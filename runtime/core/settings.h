// SPDX-License-Identifier: BSD-3-Clause
// The settings of this process: the struct is made from settings.def.
#ifndef GPSH_SETTINGS_H
#define GPSH_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#define GPSH_FIELD_INT    int64_t
#define GPSH_FIELD_SIZE   uint64_t
#define GPSH_FIELD_BOOL   bool
#define GPSH_FIELD_STRING const char *
#define GPSH_FIELD_CHOICE int
#define GPSH_FIELD_LIST   const char *

struct gpsh_settings {
#define GPSH_SETTING(field, NAME, kind, def, low, high, choices, help) GPSH_FIELD_##kind field;
#include "core/settings.def"
#undef GPSH_SETTING
};

enum {
    GPSH_SETTINGS = 0 // rows of settings.def
#define GPSH_SETTING(field, NAME, kind, def, low, high, choices, help) +1
#include "core/settings.def"
#undef GPSH_SETTING
};

// Those of this process, between gpsh_settings_open and close. core/ alone writes them.
extern struct gpsh_settings gpsh_settings_state __attribute__((visibility("hidden")));
static inline const struct gpsh_settings *gpsh_settings(void)
{
    return &gpsh_settings_state;
}

enum { GPSH_COLLECTIVES_TEXT = 96 }; // of the setting in full

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
enum gpsh_amo_agent { GPSH_AGENT_AUTO, GPSH_AGENT_CPU, GPSH_AGENT_NIC };

#endif
