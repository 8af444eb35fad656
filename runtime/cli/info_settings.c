// SPDX-License-Identifier: BSD-3-Clause
#include "info_settings.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/nvshmem_env.h"
#include "api/shmem_env.h"
#include "core/printable.h"
#include "gpushmem/gpushmem.h"
#include "memory/team_scratch.h"
#include "page.h"
#include "say.h"
#include "table.h"

enum { VALUE_BYTES = GPSH_SETTINGS_PATH_BYTES, RANGE_BYTES = 256 };

int gpsh_info_settings_read(enum gpsh_info_for whose, struct gpsh_settings *settings)
{
    int status = whose == GPSH_FOR_NVSHMEM     ? gpsh_nvshmem_take_environment()
                 : whose == GPSH_FOR_OPENSHMEM ? gpsh_shmem_take_environment()
                                               : 0;
    if (!status)
        status = gpsh_settings_read_process("GPUSHMEM_", settings);
    if (status)
        gpsh_cli_say("info", "%s", gpushmem_last_error());
    return status ? 1 : 0;
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

// ---- Files and origins ----

// "~/..." where that is meant.
static const char *path_shown(const char *path, char *out, size_t bytes)
{
    const char *home = getenv("HOME");
    size_t length = home ? strlen(home) : 0;
    bool below = length > 1 && !strncmp(path, home, length) && path[length] == '/';
    snprintf(out, bytes, "%s%s", below ? "~" : "", below ? path + length : path);
    return out;
}

static void origin_print(const struct gpsh_setting_origin *origin, char *out, size_t bytes)
{
    char path[GPSH_SETTINGS_PATH_BYTES];
    switch (origin->source) {
    case GPSH_FROM_DEFAULT: snprintf(out, bytes, "default"); break;
    case GPSH_FROM_ENVIRONMENT: snprintf(out, bytes, "environment"); break;
    case GPSH_FROM_ALIAS: snprintf(out, bytes, "%s", origin->name); break;
    case GPSH_FROM_FILE:
        snprintf(out, bytes, "%s:%d", path_shown(origin->name, path, sizeof path), origin->line);
        break;
    }
}

static void print_files(void)
{
    struct gpsh_settings_file file;
    char path[GPSH_SETTINGS_PATH_BYTES];
    bool any = false;
    for (int i = 0; gpsh_settings_file(i, &file); i++) {
        if (file.owner == GPSH_FILE_OF_NOBODY)
            continue;
        any = true;
        path_shown(file.path, path, sizeof path);
        if (file.state == GPSH_FILE_READ)
            gpsh_page_field("settings file", "%s: %d setting%s", path, file.settings,
                            file.settings == 1 ? "" : "s");
        else
            gpsh_page_field("settings file", "%s: %s", path,
                            file.state == GPSH_FILE_ABSENT ? "there is none"
                                                           : "another user's, ignored");
    }
    if (!any)
        gpsh_page_field("settings file", "none is read: GPUSHMEM_SETTINGS_FILE=none");
}

static void add_files(struct gpsh_json *json)
{
    static const char *const owners[] = {[GPSH_FILE_OF_NOBODY] = NULL,
                                         [GPSH_FILE_NAMED] = "named",
                                         [GPSH_FILE_OF_USER] = "user",
                                         [GPSH_FILE_OF_SYSTEM] = "system"};
    static const char *const states[] = {[GPSH_FILE_ABSENT] = "absent",
                                         [GPSH_FILE_READ] = "read",
                                         [GPSH_FILE_PASSED_OVER] = "ignored"};
    struct gpsh_settings_file file;
    gpsh_json_list(json, "settings_files");
    for (int i = 0; gpsh_settings_file(i, &file); i++) {
        if (file.owner == GPSH_FILE_OF_NOBODY)
            continue;
        gpsh_json_object(json, NULL);
        gpsh_json_text(json, "path", file.path);
        gpsh_json_text(json, "whose", owners[file.owner]);
        gpsh_json_text(json, "state", states[file.state]);
        gpsh_json_integer(json, "settings", file.settings);
        gpsh_json_end(json);
    }
    gpsh_json_end(json);
}

static void add_origin(struct gpsh_json *json, const struct gpsh_setting_origin *origin)
{
    bool variable = origin->source == GPSH_FROM_ENVIRONMENT || origin->source == GPSH_FROM_ALIAS;
    bool file = origin->source == GPSH_FROM_FILE;
    gpsh_json_text(json, "variable", variable ? origin->name : NULL);
    gpsh_json_text(json, "file", file ? origin->name : NULL);
    if (file)
        gpsh_json_integer(json, "line", origin->line);
    else
        gpsh_json_text(json, "line", NULL);
}

static void add_setting(struct gpsh_json *json, const struct gpsh_settings *settings, int row,
                        const struct gpsh_setting_text *text)
{
    static const char *const sources[] = {[GPSH_FROM_DEFAULT] = "default",
                                          [GPSH_FROM_ENVIRONMENT] = "environment",
                                          [GPSH_FROM_ALIAS] = "alias",
                                          [GPSH_FROM_FILE] = "file"};
    char value[VALUE_BYTES], range[RANGE_BYTES];
    struct gpsh_setting_origin origin;
    gpsh_setting_value(settings, row, value, sizeof value);
    gpsh_setting_origin(row, &origin);
    gpsh_json_object(json, NULL);
    gpsh_json_text(json, "name", text->name);
    gpsh_json_text(json, "value", value);
    gpsh_json_text(json, "origin", sources[origin.source]);
    gpsh_json_text(json, "default", text->standard);
    gpsh_json_text(json, "kind", text->kind);
    gpsh_json_text(json, "allowed", allowed(text, range, sizeof range));
    gpsh_json_text(json, "meaning", text->help);
    add_origin(json, &origin);
    gpsh_json_end(json);
}

void gpsh_info_settings_add(struct gpsh_json *json, const struct gpsh_settings *settings)
{
    struct gpsh_setting_text text;
    add_files(json);
    gpsh_json_list(json, "settings");
    for (int row = 0; gpsh_setting_row(row, &text); row++)
        add_setting(json, settings, row, &text);
    gpsh_json_end(json);
}

// A setting in words, as far as a person wants to know them.
struct shown {
    struct gpsh_setting_text text;
    bool given;
    char value[VALUE_BYTES], range[RANGE_BYTES], from[GPSH_SETTINGS_PATH_BYTES + 16];
};

static bool show(const struct gpsh_settings *settings, int row, struct shown *out)
{
    struct gpsh_setting_origin origin;
    if (!gpsh_setting_row(row, &out->text))
        return false;
    gpsh_setting_value(settings, row, out->value, sizeof out->value);
    if (!out->value[0])
        snprintf(out->value, sizeof out->value, "-");
    gpsh_setting_origin(row, &origin);
    out->given = origin.source != GPSH_FROM_DEFAULT;
    origin_print(&origin, out->from, sizeof out->from);
    allowed(&out->text, out->range, sizeof out->range);
    gpsh_printable(out->value, sizeof out->value);
    gpsh_printable(out->from, sizeof out->from);
    return true;
}

static void print_table(const struct gpsh_settings *settings)
{
    struct gpsh_table table = {.columns = 5};
    struct shown shown;
    gpsh_table_add_words(&table, "setting|value|origin|allowed|meaning");
    for (int row = 0; show(settings, row, &shown); row++) {
        gpsh_table_add(&table, "%s", shown.text.name);
        gpsh_table_add(&table, "%s", shown.value);
        gpsh_table_add(&table, "%s", shown.from);
        gpsh_table_add(&table, "%s", shown.range);
        gpsh_table_add(&table, "%s", shown.text.help);
    }
    gpsh_table_print(&table);
}

// For terminals that have no room for the table.
static void print_list(const struct gpsh_settings *settings)
{
    enum { INDENT = 4 };
    struct shown shown;
    for (int row = 0; show(settings, row, &shown); row++) {
        char line[sizeof shown.from + RANGE_BYTES + 32];
        snprintf(line, sizeof line, "origin: %s; allowed: %s", shown.from, shown.range);
        printf("%s%s = %s%s\n%*s", shown.given ? gpsh_page_colour(GPSH_BOLD) : "", shown.text.name,
               shown.value, shown.given ? gpsh_page_colour(GPSH_PLAIN) : "", INDENT, "");
        gpsh_page_wrap(line, INDENT, INDENT);
        printf("%*s", INDENT, "");
        gpsh_page_wrap(shown.text.help, INDENT, INDENT);
    }
}

void gpsh_info_settings_print(const struct gpsh_settings *settings)
{
    enum { TABLE_COLUMNS = 200 }; // four columns, and room to read the last one
    int columns = gpsh_page_columns();
    print_files();
    gpsh_page_field("team scratch", "%" PRIu64 "M of symmetric memory for each PE, beside its heap",
                    (gpsh_heap_reserved(settings) + (1 << 20) - 1) >> 20);
    putchar('\n');
    if (columns && columns < TABLE_COLUMNS)
        print_list(settings);
    else
        print_table(settings);
}

// ---- The table as a document ----

void gpsh_info_settings_markdown(void)
{
    struct gpsh_setting_text t;
    char text[RANGE_BYTES];
    puts("# Settings\n\n"
         "`gpushmem_init` reads the settings on every PE; `gpushmem info` prints the values in "
         "force, and where each comes from.\n"
         "Sizes take `K`, `M`, `G`, `T`; booleans take `0`, `no`, `off`, `false`, `1`, `yes`, "
         "`on`, `true`; lists are separated by\n"
         "commas. A malformed or out-of-range value makes init fail with a sentence that names it; "
         "an unknown name is warned about.\n"
         "This file is the output of `gpushmem info --settings-markdown`; a test keeps it "
         "current.\n\n"
         "The first of these that has a value for a setting has the say:\n\n"
         "1. the environment variable of that name, unless it is empty;\n"
         "2. in programs of NVSHMEM and OpenSHMEM their variables ([compat.md](compat.md));\n"
         "3. the user's settings file: `$XDG_CONFIG_HOME/gpushmem/settings.conf`, where that is "
         "not set\n"
         "   `~/.config/gpushmem/settings.conf`, or in its place the file that "
         "`GPUSHMEM_SETTINGS_FILE` names;\n"
         "4. the system's: `/etc/gpushmem/settings.conf`;\n"
         "5. the default.\n\n"
         "A settings file has a setting a line; `gpushmem info --settings-file` prints one with "
         "all of them as comments:\n\n"
         "    # of this cluster\n"
         "    GPUSHMEM_VERBS_GID_INDEX = 3\n"
         "    GPUSHMEM_HEAP_SIZE = 2G          # a comment follows a blank\n\n"
         "Values are written without quotes. One that is left empty is the default, also where a "
         "file of lower rank has another.\n"
         "A line that is no setting, a setting that is there twice, and a file that is there and "
         "cannot be read make init fail;\n"
         "only the file that is named must be there. `GPUSHMEM_SETTINGS_FILE=none` reads none. "
         "Each PE reads the files of its own\n"
         "node: what must be alike on all PEs is compared. Which files are trusted: "
         "[security.md](security.md).\n\n"
         "| setting | default | allowed | meaning |\n|---|---|---|---|");
    for (int row = 0; gpsh_setting_row(row, &t); row++)
        printf("| `%s` | %s%s%s | %s | %s |\n", t.name, *t.standard ? "`" : "", t.standard,
               *t.standard ? "`" : "", allowed(&t, text, sizeof text), t.help);
}

static void print_comment(const char *text)
{
    enum { MOST = 96 };
    int used = printf("#");
    for (; *text; text += strspn(text, " ")) {
        int word = (int)strcspn(text, " ");
        if (used + 1 + word > MOST)
            used = printf("\n#") - 1;
        used += printf(" %.*s", word, text);
        text += word;
    }
    putchar('\n');
}

void gpsh_info_settings_file(void)
{
    struct gpsh_setting_text t;
    char text[RANGE_BYTES];
    puts("# Settings of gpushmem, a line each: NAME = VALUE. The values below are the defaults.\n"
         "# This is a user's file as ~/.config/gpushmem/settings.conf, one for all users of a "
         "machine as\n"
         "# /etc/gpushmem/settings.conf, and anywhere else if GPUSHMEM_SETTINGS_FILE names it. "
         "Environment\n"
         "# variables of the same names have precedence.");
    for (int row = 0; gpsh_setting_row(row, &t); row++) {
        if (!strcmp(t.name, GPSH_SETTINGS_FILE))
            continue;
        putchar('\n');
        print_comment(t.help);
        print_comment(allowed(&t, text, sizeof text));
        printf("#%s =%s%s\n", t.name, *t.standard ? " " : "", t.standard);
    }
}
