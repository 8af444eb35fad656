// SPDX-License-Identifier: BSD-3-Clause
#define _POSIX_C_SOURCE 200809L // strtok_r
#include "memory/memory_limit.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint64_t limit_read(const char *path)
{
    FILE *file = fopen(path, "re");
    uint64_t value = UINT64_MAX;
    if (!file)
        return value;
    if (fscanf(file, "%" SCNu64, &value) != 1)
        value = UINT64_MAX; // "max": no limit
    fclose(file);
    return value;
}

// A limit holds for everything below: the group's own, its parent's, up to the root. In a container
// the group's path may be one of the outside that is not mounted here, but the root is.
static uint64_t limit_upwards(const char *mount, const char *controller, char *group,
                              const char *file)
{
    char path[PATH_MAX];
    uint64_t least = UINT64_MAX;
    for (;;) {
        snprintf(path, sizeof(path), "%s%s%s/%s", mount, controller, group, file);
        uint64_t limit = limit_read(path);
        least = limit < least ? limit : least;
        char *last = strrchr(group, '/');
        if (!last)
            return least;
        *last = '\0';
    }
}

static bool controllers_have_memory(char *controllers)
{
    for (char *rest, *word = strtok_r(controllers, ",", &rest); word;
         word = strtok_r(NULL, ",", &rest)) {
        if (strcmp(word, "memory") == 0)
            return true;
    }
    return false;
}

// A line of /proc/self/cgroup: "4:memory:/path" of version 1, "0::/path" of version 2.
static uint64_t limit_of_line(char *line, const char *mount)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return UINT64_MAX;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    char twin[PATH_MAX];
    snprintf(twin, sizeof(twin), "%s", group);
    if (controllers_have_memory(controllers + 1))
        return limit_upwards(mount, "/memory", group, "memory.limit_in_bytes");
    if (controllers[1])
        return UINT64_MAX;
    uint64_t alone = limit_upwards(mount, "", group, "memory.max");
    uint64_t beside_version_1 = limit_upwards(mount, "/unified", twin, "memory.max");
    return alone < beside_version_1 ? alone : beside_version_1;
}

uint64_t gpsh_memory_limit_of_groups(const char *membership, const char *mount)
{
    char line[PATH_MAX];
    uint64_t least = UINT64_MAX;
    FILE *groups = fopen(membership, "re");
    while (groups && fgets(line, sizeof(line), groups)) {
        uint64_t limit = limit_of_line(line, mount);
        least = limit < least ? limit : least;
    }
    if (groups)
        fclose(groups);
    return least;
}

uint64_t gpsh_memory_limit(void)
{
    uint64_t physical = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t group = gpsh_memory_limit_of_groups("/proc/self/cgroup", "/sys/fs/cgroup");
    return group < physical ? group : physical;
}
