// SPDX-License-Identifier: BSD-3-Clause
#include "info_settings.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/compat.h"
#include "core/printable.h"
#include "gpushmem/gpushmem.h"
#include "memory/team_scratch.h"
#include "page.h"
#include "say.h"
#include "table.h"

enum { VALUE_BYTES = 4096, RANGE_BYTES = 256, COMMENT = 96 };

int gpsh_info_settings_read(enum gpsh_info_for whose, struct gpsh_settings *settings)
{
    int status = whose == GPSH_FOR_NVSHMEM     ? gpsh_nvshmem_take_environment()
                 : whose == GPSH_FOR_OPENSHMEM ? gpsh_shmem_take_environment()
                                               : 0;
    if (!status)
        status = gpsh_settings_read_process("GPUSHMEM_", settings);
    return status ? gpsh_cli_fail("info") : 0;
}

static const char *allowed(const struct gpsh_setting *row, char *text, size_t bytes)
{
    bool size = row->kind == GPSH_KIND_SIZE;
    size_t used = 0;
    if (size || row->kind == GPSH_KIND_INT)
        snprintf(text, bytes, "%" PRId64 " to %" PRId64 "%s", row->low, row->high,
                 size ? " bytes" : "");
    else
        snprintf(text, bytes, "%s", row->kind == GPSH_KIND_BOOL ? "0 or 1" : "text");
    // "|" would end a Markdown cell
    for (const char *c = row->choices; *c && used + 4 < bytes; c++)
        used += (size_t)snprintf(text + used, bytes - used, *c == '|' ? ", " : "%c", *c);
    return text;
}

// The i-th row that is shown, those first that a user should know; NULL past the last.
static const struct gpsh_setting *row_shown(int i)
{
    for (int level = GPSH_LEVEL_MAIN; level <= GPSH_LEVEL_EXPERT; level++)
        for (int row = 0; row < GPSH_SETTINGS; row++)
            if ((int)gpsh_setting_rows[row].level == level && i-- == 0)
                return &gpsh_setting_rows[row];
    return NULL;
}

// ---- Files and origins ----

static const struct {
    const char *json, *text;
} states[] = {[GPSH_FILE_ABSENT] = {"absent", "there is none"},
              [GPSH_FILE_READ] = {"read", ""},
              [GPSH_FILE_PASSED_OVER] = {"ignored", "another user's, ignored"}};

// "~/..." where that is meant.
static const char *path_shown(const char *path, char *out, size_t bytes)
{
    const char *home = getenv("HOME");
    size_t length = home ? strlen(home) : 0;
    bool below = length > 1 && !strncmp(path, home, length) && path[length] == '/';
    snprintf(out, bytes, "%s%s", below ? "~" : "", below ? path + length : path);
    return out;
}

static void print_files(void)
{
    char path[VALUE_BYTES];
    bool any = false;
    for (int i = 0; i < GPSH_SETTINGS_FILES; i++) {
        const struct gpsh_settings_file *file = gpsh_settings_file(i);
        if (!file->path)
            continue;
        any = true;
        path_shown(file->path, path, sizeof path);
        if (file->state == GPSH_FILE_READ)
            gpsh_page_field("settings file", "%s: %d setting%s", path, file->settings,
                            file->settings == 1 ? "" : "s");
        else
            gpsh_page_field("settings file", "%s: %s", path, states[file->state].text);
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
    gpsh_json_list(json, "settings_files");
    for (int i = 0; i < GPSH_SETTINGS_FILES; i++) {
        const struct gpsh_settings_file *file = gpsh_settings_file(i);
        if (!file->path)
            continue;
        gpsh_json_object(json, NULL);
        gpsh_json_text(json, "path", file->path);
        gpsh_json_text(json, "whose", owners[file->owner]);
        gpsh_json_text(json, "state", states[file->state].json);
        gpsh_json_integer(json, "settings", file->settings);
        gpsh_json_end(json);
    }
    gpsh_json_end(json);
}

static void add_setting(struct gpsh_json *json, const struct gpsh_settings *settings,
                        const struct gpsh_setting *row)
{
    static const char *const sources[] = {[GPSH_FROM_DEFAULT] = "default",
                                          [GPSH_FROM_ENVIRONMENT] = "environment",
                                          [GPSH_FROM_ALIAS] = "alias",
                                          [GPSH_FROM_FILE] = "file"};
    static const char *const kinds[] = {"integer", "size", "boolean", "text", "choice", "list"};
    static const char *const levels[] = {"main", "expert"};
    char value[VALUE_BYTES], range[RANGE_BYTES];
    int number = (int)(row - gpsh_setting_rows);
    const struct gpsh_setting_given *origin = gpsh_setting_origin(number);
    bool file = origin->source == GPSH_FROM_FILE;
    gpsh_setting_value(settings, number, value, sizeof value);
    gpsh_json_object(json, NULL);
    gpsh_json_text(json, "name", row->name);
    gpsh_json_text(json, "value", value);
    gpsh_json_text(json, "origin", sources[origin->source]);
    gpsh_json_text(json, "default", row->standard);
    gpsh_json_text(json, "kind", kinds[row->kind]);
    gpsh_json_text(json, "allowed", allowed(row, range, sizeof range));
    gpsh_json_text(json, "meaning", row->help);
    gpsh_json_text(json, "variable", file ? NULL : origin->from);
    gpsh_json_text(json, "file", file ? origin->from : NULL);
    if (file)
        gpsh_json_integer(json, "line", origin->line);
    else
        gpsh_json_text(json, "line", NULL);
    gpsh_json_text(json, "level", levels[row->level]);
    gpsh_json_end(json);
}

void gpsh_info_settings_add(struct gpsh_json *json, const struct gpsh_settings *settings)
{
    const struct gpsh_setting *row;
    add_files(json);
    gpsh_json_list(json, "settings");
    for (int i = 0; (row = row_shown(i)); i++)
        add_setting(json, settings, row);
    gpsh_json_end(json);
}

// A setting in words, as far as a person wants to know them.
struct shown {
    const struct gpsh_setting *row;
    bool given, first_of_experts;
    char value[VALUE_BYTES], range[RANGE_BYTES], from[VALUE_BYTES + 16];
};

static bool show(const struct gpsh_settings *settings, int i, struct shown *out)
{
    out->row = row_shown(i);
    if (!out->row)
        return false;
    int row = (int)(out->row - gpsh_setting_rows);
    const struct gpsh_setting_given *origin = gpsh_setting_origin(row);
    char path[VALUE_BYTES];
    gpsh_setting_value(settings, row, out->value, sizeof out->value);
    if (!out->value[0])
        snprintf(out->value, sizeof out->value, "-");
    out->given = origin->source != GPSH_FROM_DEFAULT;
    out->first_of_experts = i && out->row->level != row_shown(i - 1)->level;
    if (origin->source == GPSH_FROM_FILE)
        snprintf(out->from, sizeof out->from, "%s:%d", path_shown(origin->from, path, sizeof path),
                 origin->line);
    else
        snprintf(out->from, sizeof out->from, "%s",
                 origin->source == GPSH_FROM_DEFAULT       ? "default"
                 : origin->source == GPSH_FROM_ENVIRONMENT ? "environment"
                                                           : origin->from);
    allowed(out->row, out->range, sizeof out->range);
    gpsh_printable(out->value, sizeof out->value);
    gpsh_printable(out->from, sizeof out->from);
    return true;
}

// What a meaning says first, which is what the setting is; cut between words where that is long.
static void shorten(const char *meaning, char *text, size_t bytes)
{
    size_t n = 0;
    while (meaning[n] && !(strchr(".;:", meaning[n]) && (!meaning[n + 1] || meaning[n + 1] == ' ')))
        n++;
    if (n < bytes) {
        snprintf(text, bytes, "%.*s", (int)n, meaning);
        return;
    }
    for (n = bytes - 4; n > 0 && meaning[n] != ' ';)
        n--;
    snprintf(text, bytes, "%.*s...", (int)n, meaning);
}

// What a user should know, and whatever somebody has set.
static void print_short(const struct gpsh_settings *settings)
{
    enum { MEANING = 64 };
    struct gpsh_table table = {.columns = 4};
    struct shown shown;
    int left_out = 0;
    gpsh_table_add_words(&table, "setting|value|origin|meaning");
    for (int i = 0; show(settings, i, &shown); i++) {
        char meaning[MEANING];
        if (shown.row->level != GPSH_LEVEL_MAIN && !shown.given) {
            left_out++;
            continue;
        }
        shorten(shown.row->help, meaning, sizeof meaning);
        gpsh_table_add(&table, "%s", shown.row->name);
        gpsh_table_add(&table, "%s", shown.value);
        gpsh_table_add(&table, "%s", shown.from);
        gpsh_table_add(&table, "%s", meaning);
    }
    gpsh_table_print(&table);
    char more[160];
    snprintf(more, sizeof more,
             "%d more settings have their defaults; `gpushmem info --long` prints all of them and "
             "what they mean.",
             left_out);
    putchar('\n');
    gpsh_page_help(stdout, more, 0, 0);
}

static void print_long(const struct gpsh_settings *settings)
{
    enum { INDENT = 4 };
    struct shown shown;
    for (int i = 0; show(settings, i, &shown); i++) {
        char line[sizeof shown.from + RANGE_BYTES + 32];
        if (shown.first_of_experts)
            puts("\nFor experts:\n");
        snprintf(line, sizeof line, "origin: %s; allowed: %s", shown.from, shown.range);
        printf("%s%s = %s%s\n%*s", shown.given ? gpsh_page_colour(GPSH_BOLD) : "", shown.row->name,
               shown.value, shown.given ? gpsh_page_colour(GPSH_PLAIN) : "", INDENT, "");
        gpsh_page_help(stdout, line, INDENT, INDENT);
        printf("%*s", INDENT, "");
        gpsh_page_help(stdout, shown.row->help, INDENT, INDENT);
    }
}

void gpsh_info_settings_print(const struct gpsh_settings *settings, bool all)
{
    print_files();
    gpsh_page_field("team scratch", "%" PRIu64 "M of symmetric memory for each PE, beside its heap",
                    (gpsh_heap_reserved(settings) + (1 << 20) - 1) >> 20);
    putchar('\n');
    (all ? print_long : print_short)(settings);
}

// ---- The table as a document ----

void gpsh_info_settings_markdown(void)
{
    static const char columns[] = "| setting | default | allowed | meaning |\n|---|---|---|---|";
    const struct gpsh_setting *row;
    char text[RANGE_BYTES];
    puts("# Settings\n\n"
         "`gpushmem_init` reads the settings on every PE. `gpushmem info` prints their values, and "
         "where each comes from.\n"
         "Sizes take `K`, `M`, `G`, `T`; booleans take `0`, `no`, `off`, `false`, `1`, `yes`, "
         "`on`, `true`; lists are separated by\n"
         "commas. If a value is malformed or out of range, init fails with a sentence that names "
         "it; an unknown name is a warning.\n"
         "This file is the output of `gpushmem info --settings-markdown`; a test keeps it "
         "current.\n\n"
         "A value is taken from the first of these that has one:\n\n"
         "1. the environment variable of that name, unless it is empty;\n"
         "2. in programs of NVSHMEM and OpenSHMEM their variables ([compat.md](compat.md));\n"
         "3. the file that `GPUSHMEM_SETTINGS_FILE` names, else the user's: "
         "`$XDG_CONFIG_HOME/gpushmem/settings.conf`,\n"
         "   or `~/.config/gpushmem/settings.conf` where that variable is not set;\n"
         "4. the system's file: `/etc/gpushmem/settings.conf`;\n"
         "5. the default.\n\n"
         "A settings file has one setting in each line. `gpushmem info --settings-file` prints one "
         "to begin with:\n\n"
         "    # of this cluster\n"
         "    GPUSHMEM_VERBS_GID_INDEX = 3\n"
         "    GPUSHMEM_HEAP_SIZE = 2G          # a comment follows a blank\n\n"
         "Values have no quotes. An empty one means the default, even if the system's file has "
         "another value. Init fails if a line is\n"
         "no setting, if a setting is there twice, or if a file cannot be read. A file that does "
         "not exist is an error only if it was\n"
         "named. `GPUSHMEM_SETTINGS_FILE=none` reads no file. Each PE reads the files of its own "
         "node, and init compares what has\n"
         "to be the same on all PEs. Which files are trusted: [security.md](security.md).\n\n"
         "## To know\n");
    puts(columns);
    for (int i = 0; (row = row_shown(i)); i++) {
        if (i && row->level != row_shown(i - 1)->level)
            printf("\n## For experts\n\n%s\n", columns);
        printf("| `%s` | %s%s%s | %s | %s |\n", row->name, *row->standard ? "`" : "", row->standard,
               *row->standard ? "`" : "", allowed(row, text, sizeof text), row->help);
    }
}

void gpsh_info_settings_file(void)
{
    const struct gpsh_setting *row;
    char text[RANGE_BYTES];
    puts("# Settings of gpushmem, a line each: NAME = VALUE. The values below are the defaults.\n"
         "# This is a user's file as ~/.config/gpushmem/settings.conf, one for all users of a "
         "machine as\n"
         "# /etc/gpushmem/settings.conf, and anywhere else if GPUSHMEM_SETTINGS_FILE names it. "
         "Environment\n"
         "# variables of the same names have precedence.");
    for (int i = 0; (row = row_shown(i)); i++) {
        if (!strcmp(row->name, GPSH_SETTINGS_FILE))
            continue;
        putchar('\n');
        gpsh_page_document(COMMENT, "#", row->help);
        gpsh_page_document(COMMENT, "#", allowed(row, text, sizeof text));
        printf("#%s =%s%s\n", row->name, *row->standard ? " " : "", row->standard);
    }
}
