// SPDX-License-Identifier: BSD-3-Clause
// `gpushmem info`: what this build is, what the machine has, every setting; with --peers how each
// PE is reached.
#define _GNU_SOURCE // environ
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/nvshmem_env.h"
#include "collectives.h"
#include "commands.h"
#include "core/config.h"
#include "devices.h"
#include "gpushmem/gpushmem.h"
#include "info_peers.h"
#include "json.h"
#include "libraries.h"
#include "memory/team_scratch.h"
#include "options.h"
#include "say.h"
#include "table.h"
#include "transport/transport.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void print_build(void)
{
    printf("gpushmem      %s\n", gpushmem_version_string());
    printf("compiler      " COMPILER "\n");
    struct gpsh_library library;
    for (int row = 0; gpsh_library_row(row, &library); row++)
        printf("%-13s %s\n", library.name, library.version);
    printf("transports   ");
    for (int i = 0; gpsh_transports[i]; i++)
        printf(" %s", gpsh_transports[i]->name);
    printf("\n");
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static const char *allowed(const struct gpsh_setting_text *t, char *text, size_t bytes)
{
    if (!strcmp(t->kind, "integer"))
        snprintf(text, bytes, "%" PRId64 " to %" PRId64, t->low, t->high);
    else if (!strcmp(t->kind, "size"))
        snprintf(text, bytes, "%" PRId64 " to %" PRId64 " bytes", t->low, t->high);
    else if (!strcmp(t->kind, "boolean"))
        snprintf(text, bytes, "0 or 1");
    else if (!strcmp(t->kind, "choice") || !strcmp(t->kind, "list")) {
        size_t used = 0;
        // "|" would end a Markdown cell
        for (const char *c = t->choices; *c && used + 4 < bytes; c++)
            used += (size_t)snprintf(text + used, bytes - used, *c == '|' ? ", " : "%c", *c);
    } else
        snprintf(text, bytes, "text");
    return text;
}

static void add_setting(struct gpsh_json *json, const struct gpsh_settings *settings, int row,
                        const struct gpsh_setting_text *text)
{
    char value[256], range[256];
    gpsh_setting_value(settings, row, value, sizeof value);
    gpsh_json_object(json, NULL);
    gpsh_json_text(json, "name", text->name);
    gpsh_json_text(json, "value", value);
    gpsh_json_text(json, "origin", is_set(text->name) ? "environment" : "default");
    gpsh_json_text(json, "default", text->standard);
    gpsh_json_text(json, "kind", text->kind);
    gpsh_json_text(json, "allowed", allowed(text, range, sizeof range));
    gpsh_json_text(json, "meaning", text->help);
    gpsh_json_end(json);
}

static void add_libraries(struct gpsh_json *json)
{
    struct gpsh_library library;
    gpsh_json_object(json, "libraries");
    for (int row = 0; gpsh_library_row(row, &library); row++)
        gpsh_json_text(json, library.key, library.version);
    gpsh_json_end(json);
}

// NVSHMEM's variables, and then OpenSHMEM's.
static bool compat_row(int row, struct gpsh_nvshmem_variable *out)
{
    static const struct gpsh_nvshmem_variable shmem[] = {
        {"SHMEM_SYMMETRIC_SIZE", "size", "GPUSHMEM_HEAP_SIZE",
         "bytes of symmetric heap of each PE, like 512M or 1.5G"},
        {"SHMEM_DEBUG", "translated", "GPUSHMEM_LOG_LEVEL", "log what the library does"},
        {"SHMEM_VERSION", "obeyed", "", "PE 0 prints the version at the start"},
        {"SHMEM_INFO", "obeyed", "", "PE 0 prints these four at the start"},
    };
    enum { SHMEM_ROWS = sizeof shmem / sizeof shmem[0] };
    if (gpsh_nvshmem_variable(row, out))
        return true;
    int first = 0;
    while (gpsh_nvshmem_variable(first, out))
        first++;
    if (row - first >= SHMEM_ROWS)
        return false;
    *out = shmem[row - first];
    return true;
}

static void add_compat(struct gpsh_json *json)
{
    struct gpsh_nvshmem_variable v;
    gpsh_json_list(json, "compat");
    for (int row = 0; compat_row(row, &v); row++) {
        gpsh_json_object(json, NULL);
        gpsh_json_text(json, "name", v.name);
        gpsh_json_text(json, "way", v.way);
        gpsh_json_text(json, "setting", *v.setting ? v.setting : NULL);
        gpsh_json_text(json, "meaning", v.help);
        gpsh_json_end(json);
    }
    gpsh_json_end(json);
}

static int print_json(void)
{
    struct gpsh_json json = {.out = stdout};
    struct gpsh_settings settings;
    struct gpsh_setting_text text;
    if (gpsh_settings_read(environ, &settings)) {
        gpsh_cli_say("info", "%s", gpushmem_last_error());
        return 1;
    }
    gpsh_json_object(&json, NULL);
    gpsh_json_text(&json, "version", gpushmem_version_string());
    gpsh_json_text(&json, "compiler", COMPILER);
    add_libraries(&json);
    gpsh_json_list(&json, "transports");
    for (int i = 0; gpsh_transports[i]; i++)
        gpsh_json_text(&json, NULL, gpsh_transports[i]->name);
    gpsh_json_end(&json);
    gpsh_json_list(&json, "settings");
    for (int row = 0; gpsh_setting_row(row, &text); row++)
        add_setting(&json, &settings, row, &text);
    gpsh_json_end(&json);
    add_compat(&json);
    gpsh_json_end(&json);
    gpsh_settings_clear(&settings);
    return 0;
}

static int print_settings(void)
{
    struct gpsh_settings settings;
    struct gpsh_setting_text text;
    if (gpsh_settings_read(environ, &settings)) {
        gpsh_cli_say("info", "%s", gpushmem_last_error());
        return 1;
    }
    struct gpsh_table table = {.columns = 5};
    gpsh_table_add_words(&table, "setting|value|origin|allowed|meaning");
    for (int row = 0; gpsh_setting_row(row, &text); row++) {
        char value[256], range[256];
        gpsh_setting_value(&settings, row, value, sizeof value);
        gpsh_table_add(&table, "%s", text.name);
        gpsh_table_add(&table, "%s", *value ? value : "-");
        gpsh_table_add(&table, is_set(text.name) ? "environment" : "default");
        gpsh_table_add(&table, "%s", allowed(&text, range, sizeof range));
        gpsh_table_add(&table, "%s", text.help);
    }
    printf("team scratch  %" PRIu64 "M of symmetric memory for each PE, beside its heap\n\n",
           (gpsh_heap_reserved(&settings) + (1 << 20) - 1) >> 20);
    gpsh_table_print(&table);
    gpsh_settings_clear(&settings);
    return 0;
}

static int print_markdown(void)
{
    struct gpsh_setting_text t;
    char text[256];
    puts("# Settings\n\n"
         "Environment variables, read by `gpushmem_init` on every PE. `gpushmem info` prints the "
         "values in force. A malformed\n"
         "or out-of-range value makes init fail with a sentence that names it; an unknown "
         "`GPUSHMEM_*` is warned about. Sizes\n"
         "take `K`, `M`, `G`, `T`; booleans take `0`, `no`, `off`, `false`, `1`, `yes`, `on`, "
         "`true`; lists are separated by\n"
         "commas. This file is the output of `gpushmem info --settings-markdown`; a test keeps it "
         "current.\n\n"
         "| setting | default | allowed | meaning |\n|---|---|---|---|");
    for (int row = 0; gpsh_setting_row(row, &t); row++)
        printf("| `%s` | %s%s%s | %s | %s |\n", t.name, *t.standard ? "`" : "", t.standard,
               *t.standard ? "`" : "", allowed(&t, text, sizeof text), t.help);
    return 0;
}

static int print_compat(void)
{
    struct gpsh_nvshmem_variable v;
    struct gpsh_table table = {.columns = 4};
    gpsh_table_add_words(&table, "variable|way|setting|meaning");
    for (int row = 0; compat_row(row, &v); row++) {
        gpsh_table_add(&table, "%s", v.name);
        gpsh_table_add(&table, "%s", v.way);
        gpsh_table_add(&table, "%s", *v.setting ? v.setting : "-");
        gpsh_table_add(&table, "%s", v.help);
    }
    puts("Variables that programs of NVSHMEM and OpenSHMEM obey. A GPUSHMEM_* variable that is set "
         "has precedence.");
    gpsh_table_print(&table);
    return 0;
}

int gpsh_cmd_info(int argc, char **argv)
{
    bool peers = false, markdown = false, collectives = false, compat = false, json = false;
    const struct gpsh_option options[] = {
        {0, "peers", NULL,
         "under a launcher: which GPU and NICs each PE has, whether GPUDirect is on, and\n"
         "how each PE reaches each other one; for example\n"
         "gpushmem run -n 2 gpushmem info --peers",
         .flag = &peers},
        {0, "collectives", NULL,
         "how collectives of streams are carried out, by operation, bytes and team",
         .flag = &collectives},
        {0, "compat", NULL, "what becomes of NVSHMEM's and OpenSHMEM's environment variables",
         .flag = &compat},
        {0, "json", NULL, "versions, transports, settings, and what --compat prints, as JSON",
         .flag = &json},
        {0, "settings-markdown", NULL, "the settings as docs/settings.md", .flag = &markdown},
        {0},
    };
    const struct gpsh_command_line line = {
        "gpushmem info",
        "[--peers | --collectives | --compat | --json | --settings-markdown]\n"
        "Prints version, build, transports, devices and every "
        "setting with its value and where the value comes from.",
        .options = options};
    int status, operand = gpsh_options_parse(&line, argc, argv, &status);
    if (operand < 0)
        return status;
    if (operand < argc || peers + markdown + collectives + compat + json > 1) {
        gpsh_options_complain(&line, "'%s' is one argument too many; see gpushmem info --help",
                              argv[argc - 1]);
        return GPSH_OPTIONS_EXIT_USAGE;
    }
    if (peers)
        return gpsh_cli_print_peers();
    if (collectives)
        return gpsh_cli_print_collectives();
    if (compat)
        return print_compat();
    if (markdown)
        return print_markdown();
    if (json)
        return print_json();
    print_build();
    gpsh_cli_print_devices();
    return print_settings();
}
