// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // dladdr
#include "libraries.h"

#include <dlfcn.h>
#include <hwloc.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void pmix_version(char *text)
{
    snprintf(text, GPSH_LIBRARY_TEXT, "%s", PMIx_Get_version());
}

// All that hwloc tells: the release that last added to its interface, perhaps an older one.
static void hwloc_version(char *text)
{
    unsigned version = hwloc_get_api_version();
    snprintf(text, GPSH_LIBRARY_TEXT, "API %u.%u.%u", version >> 16, version >> 8 & 0xff,
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
    snprintf(text, GPSH_LIBRARY_TEXT, "%.*s", GPSH_LIBRARY_TEXT - 1,
             name ? name + strlen(mark) : "unknown");
}

bool gpsh_library_row(int row, struct gpsh_library *out)
{
    static const struct {
        const char *name, *key;
        void (*version)(char *text);
    } rows[] = {{"PMIx", "pmix", pmix_version},
                {"hwloc", "hwloc", hwloc_version},
                {"libibverbs", "libibverbs", verbs_version}};
    if (row < 0 || row >= (int)(sizeof rows / sizeof rows[0]))
        return false;
    *out = (struct gpsh_library){.name = rows[row].name, .key = rows[row].key};
    rows[row].version(out->version);
    return true;
}
