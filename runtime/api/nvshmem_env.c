// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // environ
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "api/compat.h"
#include "api/failed_calls.h"
#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "gpushmem/compat/non_abi/nvshmem_version.h"
#include "gpushmem/impl/team_layout.h"

enum way { WAY_TAKEN, WAY_SIZE, WAY_TEAMS, WAY_WORDS, WAY_OTHER, WAY_NONE, WAY_TOLD };

struct variable {
    const char *name;
    enum way way;
    const char *setting, *help;
};

static const struct variable variables[] = {
#define GPSH_NVSHMEM_VARIABLE(NAME, WAY, SETTING, HELP)                                            \
    {"NVSHMEM_" #NAME, WAY_##WAY, SETTING, HELP},
#include "api/nvshmem_env.def"
#undef GPSH_NVSHMEM_VARIABLE
};
enum { VARIABLES = sizeof variables / sizeof variables[0] };

static const char prefix[] = "NVSHMEM_";
enum { PREFIX = sizeof prefix - 1 };

// What values of a variable become. "" as result: nothing is set. "*" stands for all others, and
// "*" as result for the value.
static const struct {
    const char *name, *value, *result;
} words[] = {
    {"HEAP_KIND", "DEVICE", "device"},
    {"HEAP_KIND", "VIDMEM", "device"},
    {"HEAP_KIND", "SYSMEM", "host"},
    {"DEBUG", "VERSION", "warn"},
    {"DEBUG", "WARN", "warn"},
    {"DEBUG", "ABORT", "error"},
    {"DEBUG", "INFO", "info"},
    {"DEBUG", "TRACE", "trace"},
    {"DISABLE_P2P", "0", ""},
    {"DISABLE_P2P", "false", ""},
    {"DISABLE_P2P", "*", "0"},
    {"DISABLE_CUDA_VMM", "0", ""},
    {"DISABLE_CUDA_VMM", "false", ""},
    {"DISABLE_CUDA_VMM", "*", "ipc"},
    {"IB_DISABLE_DMABUF", "0", ""},
    {"IB_DISABLE_DMABUF", "false", ""},
    {"IB_DISABLE_DMABUF", "*", "off"},
    {"REMOTE_TRANSPORT", "none", "p2p"},
    {"REMOTE_TRANSPORT", "ibrc", ""},
    {"REMOTE_TRANSPORT", "ibgda", ""},
    {"REMOTE_TRANSPORT", "ibdevx", ""},
    {"HCA_LIST", "*", "*"},
    {"BOOTSTRAP_UID_SOCK_IFNAME", "*", "*"},
    {"ENABLE_ERROR_CHECKS", "0", ""},
    {"ENABLE_ERROR_CHECKS", "false", ""},
    {"ENABLE_ERROR_CHECKS", "*", "1"},
};

static int set(const struct variable *v, const char *value)
{
    return gpsh_setting_alias(v->setting, value, v->name);
}

// Told once a process.
static void tell(const char *name, const char *value, const char *why)
{
    char sentence[400];
    snprintf(sentence, sizeof sentence, "%s=%s has no effect: %s", name, value, why);
    if (gpsh_failure_is_new("nvshmem", sentence))
        GPSH_LOG(WARN, "nvshmem", "%s", sentence);
}

// The variable counts what the program makes; the setting counts the predefined teams, too.
static int take_teams(const struct variable *v, const char *text)
{
    enum { PREDEFINED = GPUSHMEM_TEAM_PREDEFINED, MOST = GPUSHMEM_TEAM_SLOTS - PREDEFINED };
    char *end, value[32];
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < 0)
        return gpsh_fail(GPUSHMEM_ERR_SETTING,
                         "%s=%s is no number of teams; write how many the program has at a time, "
                         "like 32",
                         v->name, text);
    if (n > MOST)
        tell(v->name, text, "250 teams at a time are the most that there can be");
    snprintf(value, sizeof value, "%ld", PREDEFINED + (n < MOST ? n : MOST));
    return set(v, value);
}

// Names of devices and interfaces, without what marks them as exact; lists of what is not to be
// taken (^) have no equivalent.
static int take_names(const struct variable *v, const char *value)
{
    if (*value != '^')
        return set(v, value + (*value == '='));
    tell(v->name, value, "name what is to be taken, not what is not");
    return 0;
}

static int take_word(const struct variable *v, const char *value)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].name, v->name + PREFIX) != 0 ||
            (*words[i].value != '*' && strcasecmp(words[i].value, value) != 0))
            continue;
        if (*words[i].result == '*')
            return take_names(v, value);
        return *words[i].result ? set(v, words[i].result) : 0;
    }
    tell(v->name, value, v->help);
    return 0;
}

static int take(const struct variable *v, const char *value)
{
    switch (v->way) {
    case WAY_TAKEN: return set(v, value);
    case WAY_SIZE: return gpsh_compat_heap_size(v->name, value);
    case WAY_TEAMS: return take_teams(v, value);
    case WAY_WORDS: return take_word(v, value);
    case WAY_TOLD: tell(v->name, value, v->help); return 0;
    case WAY_OTHER:
    case WAY_NONE: return 0;
    }
    return 0;
}

static const struct variable *find(const char *name)
{
    for (int i = 0; i < VARIABLES; i++)
        if (strcmp(variables[i].name, name) == 0)
            return &variables[i];
    return NULL;
}

static int take_one(const char *entry)
{
    char name[64];
    const char *equals = strchr(entry, '=');
    size_t length = equals ? (size_t)(equals - entry) : 0;
    if (!equals || !equals[1] || length >= sizeof name)
        return 0;
    snprintf(name, sizeof name, "%.*s", (int)length, entry);
    const struct variable *v = find(name);
    if (v)
        return take(v, equals + 1);
    tell(name, equals + 1, "it is not known here; `gpushmem info --compat` lists what is");
    return 0;
}

int gpsh_nvshmem_take_environment(void)
{
    int status = 0;
    gpsh_setting_aliases_begin();
    for (char **entry = environ; entry && *entry && !status; entry++)
        if (strncmp(*entry, prefix, PREFIX) == 0)
            status = take_one(*entry);
    gpsh_setting_aliases_end();
    return status;
}

bool gpsh_nvshmem_variable(int row, struct gpsh_compat_variable *out)
{
    static const char *const ways[] = {"as it is", "size", "translated",           "translated",
                                       "obeyed",   "-",    "none, which is logged"};
    if (row < 0 || row >= VARIABLES)
        return false;
    const struct variable *v = &variables[row];
    bool hook = strstr(v->setting, "_TEST_") != NULL; // of no documentation
    *out = (struct gpsh_compat_variable){v->name, ways[v->way], hook ? "" : v->setting, v->help};
    return true;
}

static bool asked(const char *name)
{
    const char *value = getenv(name);
    return value && *value && strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0;
}

void gpsh_nvshmem_print_asked(void)
{
    if (asked("NVSHMEM_VERSION"))
        puts(NVSHMEM_VENDOR_STRING);
    struct gpsh_compat_variable v;
    for (int row = 0; asked("NVSHMEM_INFO") && gpsh_nvshmem_variable(row, &v); row++)
        printf("%-34s %s%s%s\n", v.name, v.setting, *v.setting ? ": " : "", v.help);
    fflush(stdout);
}

enum gpsh_nvshmem_bootstrap gpsh_nvshmem_asked_bootstrap(void)
{
    const char *value = getenv("NVSHMEM_BOOTSTRAP");
    if (value && strcasecmp(value, "MPI") == 0)
        return GPSH_NVSHMEM_BY_MPI;
    if (value && strcasecmp(value, "SHMEM") == 0)
        return GPSH_NVSHMEM_BY_SHMEM;
    return GPSH_NVSHMEM_BY_LAUNCHER;
}
