// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // dladdr
// `gpushmem info`: what this build is, what the machine has, every setting; with --peers how each
// PE is reached.
#include <dlfcn.h>
#include <hwloc.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <pmix.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/compat.h"
#include "commands.h"
#include "core/text.h"
#include "gpushmem/gpushmem.h"
#include "info_settings.h"
#include "json.h"
#include "options.h"
#include "page.h"
#include "table.h"
#include "transport/transport.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

// ---- Versions of the libraries that this process has loaded ----

enum { VERSION_BYTES = 256 };

static void pmix_version(char *text)
{
    snprintf(text, VERSION_BYTES, "%s", PMIx_Get_version());
}

// All that hwloc tells: the release that last added to its interface, perhaps an older one.
static void hwloc_version(char *text)
{
    unsigned version = hwloc_get_api_version();
    snprintf(text, VERSION_BYTES, "API %u.%u.%u", version >> 16, version >> 8 & 0xff,
             version & 0xff);
}

// libibverbs has no call that tells its version, but the name of its file has it.
static void verbs_version(char *text)
{
    static const char mark[] = "libibverbs.so.";
    Dl_info info;
    char path[PATH_MAX];
    struct ibv_device **(*inside)(int *) = ibv_get_device_list;
    void *address;
    memcpy(&address, &inside, sizeof address); // C has no conversion for it
    bool known = dladdr(address, &info) && info.dli_fname && realpath(info.dli_fname, path);
    const char *name = known ? strstr(path, mark) : NULL;
    snprintf(text, VERSION_BYTES, "%.*s", VERSION_BYTES - 1,
             name ? name + strlen(mark) : "unknown");
}

static const struct {
    const char *name, *key; // for readers, in JSON
    void (*version)(char *text);
} libraries[] = {{"PMIx", "pmix", pmix_version},
                 {"hwloc", "hwloc", hwloc_version},
                 {"libibverbs", "libibverbs", verbs_version}};
enum { N_LIBRARIES = sizeof libraries / sizeof *libraries };

// ---- The build ----

static const struct {
    unsigned cap;
    const char *word;
} abilities[] = {
    {GPSH_CAP_MAPPED, "maps heaps of its node"},
    {GPSH_CAP_REMOTE_NODE, "reaches other nodes"},
    {GPSH_CAP_NIC_ATOMICS, "atomics by a NIC that has them"},
};
enum { N_ABILITIES = sizeof abilities / sizeof *abilities };

// "verbs (reaches other nodes, atomics by a NIC that has them)"
static void transport_add(struct gpsh_text *text, const struct gpsh_transport_ops *ops)
{
    const char *between = " (";
    gpsh_text_add(text, "%s%s", text->used ? " " : "", ops->name);
    for (int i = 0; i < N_ABILITIES; i++)
        if (ops->caps & abilities[i].cap) {
            gpsh_text_add(text, "%s%s", between, abilities[i].word);
            between = ", ";
        }
    gpsh_text_add(text, "%s", *between == ',' ? ")" : "");
}

static void print_build(void)
{
    char names[512] = "", version[VERSION_BYTES];
    struct gpsh_text text = {names, sizeof names, 0};
    gpsh_page_field("gpushmem", "%s", gpushmem_version_string());
    gpsh_page_field("compiler", "%s", COMPILER);
    for (int i = 0; i < N_LIBRARIES; i++) {
        libraries[i].version(version);
        gpsh_page_field(libraries[i].name, "%s", version);
    }
    for (int i = 0; gpsh_transports[i]; i++)
        transport_add(&text, gpsh_transports[i]);
    if (GPSH_TRANSPORTS_SKIPPED[0])
        gpsh_text_add(&text, "; not %s", GPSH_TRANSPORTS_SKIPPED);
    gpsh_page_field("transports", "%s", names);
}

static void add_libraries(struct gpsh_json *json)
{
    char version[VERSION_BYTES];
    gpsh_json_object(json, "libraries");
    for (int i = 0; i < N_LIBRARIES; i++) {
        libraries[i].version(version);
        gpsh_json_text(json, libraries[i].key, version);
    }
    gpsh_json_end(json);
}

// NVSHMEM's variables, and then OpenSHMEM's.
static bool compat_row(int row, struct gpsh_compat_variable *out)
{
    int first = 0;
    while (first <= row && gpsh_nvshmem_variable(first, out))
        first++;
    return first > row || gpsh_shmem_variable(row - first, out);
}

static void add_compat(struct gpsh_json *json)
{
    struct gpsh_compat_variable v;
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

static void add_transports(struct gpsh_json *json)
{
    gpsh_json_list(json, "transports");
    for (int i = 0; gpsh_transports[i]; i++)
        gpsh_json_text(json, NULL, gpsh_transports[i]->name);
    gpsh_json_end(json);
    gpsh_json_object(json, "capabilities");
    for (int i = 0; gpsh_transports[i]; i++) {
        gpsh_json_list(json, gpsh_transports[i]->name);
        for (int k = 0; k < N_ABILITIES; k++)
            if (gpsh_transports[i]->caps & abilities[k].cap)
                gpsh_json_text(json, NULL, abilities[k].word);
        gpsh_json_end(json);
    }
    gpsh_json_end(json);
}

static int print_json(enum gpsh_info_for whose)
{
    struct gpsh_json json = {.out = stdout};
    struct gpsh_settings settings;
    int status = gpsh_info_settings_read(whose, &settings);
    if (status)
        return status;
    gpsh_json_object(&json, NULL);
    gpsh_json_text(&json, "version", gpushmem_version_string());
    gpsh_json_text(&json, "compiler", COMPILER);
    add_libraries(&json);
    add_transports(&json);
    gpsh_info_settings_add(&json, &settings);
    add_compat(&json);
    gpsh_json_end(&json);
    gpsh_settings_clear(&settings);
    return 0;
}

// Variables of other libraries that are set, and have no say in what was printed.
static void print_passed_over(enum gpsh_info_for whose)
{
    static const char *const words[] = {NULL, "nvshmem", "openshmem"};
    struct gpsh_compat_variable v;
    bool told[3] = {false};
    for (int row = 0; compat_row(row, &v); row++) {
        int of = v.name[0] == 'N' ? GPSH_FOR_NVSHMEM : GPSH_FOR_OPENSHMEM;
        const char *value = *v.setting ? getenv(v.name) : NULL;
        if (!value || !*value || of == (int)whose || told[of])
            continue;
        told[of] = true;
        putchar('\n');
        gpsh_page_field(v.name, "is set, which `gpushmem info --as %s` takes into account",
                        words[of]);
    }
}

static int print_settings(enum gpsh_info_for whose, bool all)
{
    struct gpsh_settings settings;
    int status = gpsh_info_settings_read(whose, &settings);
    if (status)
        return status;
    gpsh_info_settings_print(&settings, all);
    print_passed_over(whose);
    gpsh_settings_clear(&settings);
    return 0;
}

// Four columns want a wide terminal. On one of usual width there are two, whose last one is broken
// between words.
static struct gpsh_table compat_table(void)
{
    int terminal = gpsh_page_columns();
    bool two = terminal >= 72 && terminal < 120;
    struct gpsh_compat_variable v;
    struct gpsh_table table = {.columns = two ? 2 : 4};
    gpsh_table_add_words(&table,
                         two ? "variable|way; setting; meaning" : "variable|way|setting|meaning");
    for (int row = 0; compat_row(row, &v); row++) {
        const char *setting = *v.setting ? v.setting : "-";
        gpsh_table_add(&table, "%s", v.name);
        if (two) {
            gpsh_table_add(&table, "%s; %s; %s", v.way, setting, v.help);
            continue;
        }
        gpsh_table_add(&table, "%s", v.way);
        gpsh_table_add(&table, "%s", setting);
        gpsh_table_add(&table, "%s", v.help);
    }
    return table;
}

static int print_compat(void)
{
    struct gpsh_table table = compat_table();
    gpsh_page_paragraph(
        "Variables that programs of NVSHMEM and OpenSHMEM obey. A GPUSHMEM_* variable "
        "that is set has precedence.");
    gpsh_table_print(&table);
    return 0;
}

int gpsh_cmd_info(int argc, char **argv)
{
    bool peers = false, markdown = false, collectives = false, providers = false, compat = false,
         json = false, file = false, all = false, cflags = false, libs = false;
    unsigned whose = GPSH_FOR_GPUSHMEM;
    const struct gpsh_option options[] = {
        {0, "as", GPSH_INFO_FOR_WORDS,
         "whose programs to show the settings of: those of NVSHMEM and OpenSHMEM "
         "obey variables of their own, too",
         .word = &whose},
        {'l', "long", NULL, "every setting, and all that is to be said about it", .flag = &all},
        {0, "peers", NULL,
         "under a launcher: which GPU and NICs each PE has, whether GPUDirect is on, and "
         "how each PE reaches each other one; for example\n"
         "gpushmem run -n 2 gpushmem info --peers",
         .flag = &peers},
        {0, "collectives", NULL,
         "how collectives of streams are carried out, by operation, bytes and team",
         .flag = &collectives},
        {0, "providers", NULL,
         "which of libfabric's providers this host has, and what the transport ofi makes of them",
         .flag = &providers},
        {0, "compat", NULL, "what becomes of NVSHMEM's and OpenSHMEM's environment variables",
         .flag = &compat},
        {0, "json", NULL,
         "versions, transports, settings, and what --compat prints, as JSON; with --peers "
         "what that prints",
         .flag = &json},
        {0, "cflags", NULL,
         "what a compiler needs to find the headers; with --libs to link, too:\n"
         "gcc ring.c $(gpushmem info --cflags --libs)",
         .flag = &cflags},
        {0, "libs", NULL, "what a linker needs", .flag = &libs},
        {0, "settings-file", NULL, "a settings file to begin with: every setting as a comment",
         .flag = &file},
        {0, "settings-markdown", NULL, "the settings as docs/settings.md", .flag = &markdown},
        {0},
    };
    const struct gpsh_command_line line = {
        "gpushmem info",
        "[--as WHOSE] [--long | --json] | --peers [--json] | --collectives | --providers | "
        "--compat | "
        "[--cflags] [--libs] | --settings-file\n"
        "Prints version, build, transports, devices, and the settings with their values and where "
        "those come from.",
        .options = options};
    int status, operand = gpsh_options_parse(&line, argc, argv, &status);
    if (operand < 0)
        return status;
    if (operand < argc || peers + markdown + collectives + providers + compat + file + all +
                                  (cflags || libs) + (json && !peers) >
                              1) {
        gpsh_options_complain(&line, "'%s' is one argument too many; see gpushmem info --help",
                              argv[argc - 1]);
        return GPSH_OPTIONS_EXIT_USAGE;
    }
    if (cflags || libs)
        return gpsh_cli_print_flags(cflags, libs);
    if (peers)
        return gpsh_cli_print_peers(json);
    if (collectives)
        return gpsh_cli_print_collectives();
    if (providers)
        return gpsh_cli_print_providers();
    if (compat)
        return print_compat();
    if (json)
        return print_json((enum gpsh_info_for)whose);
    if (markdown || file) {
        (file ? gpsh_info_settings_file : gpsh_info_settings_markdown)();
        return 0;
    }
    print_build();
    gpsh_cli_print_devices();
    return print_settings((enum gpsh_info_for)whose, all);
}
