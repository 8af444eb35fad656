// SPDX-License-Identifier: BSD-3-Clause
#include "doctor/environment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/config.h"
#include "core/log.h"
#include "core/setting_rows.h"

const char *gpsh_environment_container(const struct gpsh_host *host)
{
    char text[4096];
    if (!gpsh_host_access(host, 0, ".dockerenv"))
        return "docker";
    if (!gpsh_host_access(host, 0, "run/.containerenv"))
        return "podman";
    if (gpsh_host_variable(host, "APPTAINER_CONTAINER", text, sizeof text) ||
        gpsh_host_variable(host, "SINGULARITY_CONTAINER", text, sizeof text))
        return "apptainer";
    if (gpsh_host_variable(host, "KUBERNETES_SERVICE_HOST", text, sizeof text))
        return "kubernetes";
    if (gpsh_host_read(host, text, sizeof text, "proc/1/cgroup") > 0 &&
        (strstr(text, "/docker") || strstr(text, "kubepods") || strstr(text, "/lxc/")))
        return "a container";
    return NULL;
}

// The settings files, read once; NULL where they cannot be read, which the check "settings" tells.
static const struct gpsh_settings_files *files_of(const struct gpsh_host *host)
{
    static struct gpsh_settings_files *files;
    static bool tried;
    enum gpsh_log_level level = gpsh_log_threshold;
    gpsh_log_threshold = GPSH_LOG_ERROR; // that check warns as well
    if (!tried && gpsh_settings_files_read(gpsh_host_environment(host), host->root, &files))
        files = NULL;
    gpsh_log_threshold = level;
    tried = true;
    return files;
}

const char *gpsh_environment_setting(const struct gpsh_host *host, const char *name, char *value,
                                     size_t bytes)
{
    if (gpsh_host_variable(host, name, value, bytes) && value[0])
        return value;
    int i = gpsh_setting_find(name, strlen(name));
    const struct gpsh_settings_files *files = files_of(host);
    const char *text = files && i < GPSH_SETTINGS ? files->row[i].value : NULL;
    snprintf(value, bytes, "%s", text ? text : "");
    return value;
}

int64_t gpsh_environment_heap(const struct gpsh_host *host)
{
    char text[64];
    uint64_t bytes;
    gpsh_environment_setting(host, "GPUSHMEM_HEAP_SIZE", text, sizeof text);
    if (!text[0] || gpsh_parse_size(text, &bytes) || bytes > INT64_MAX)
        return 256 << 20;
    return (int64_t)bytes;
}

// Version 2 has one line "0::/path", version 1 one for each controller: "9:memory:/path".
static bool group_find(const char *lines, const char *controller, char *path, size_t bytes)
{
    for (const char *line = lines; *line;) {
        size_t length = strcspn(line, "\n");
        const char *words = memchr(line, ':', length);
        const char *at = words ? memchr(words + 1, ':', length - (size_t)(words + 1 - line)) : NULL;
        if (at) {
            size_t name = (size_t)(at - words - 1);
            if (strlen(controller) == name && !memcmp(words + 1, controller, name)) {
                snprintf(path, bytes, "%.*s", (int)(line + length - at - 1), at + 1);
                return true;
            }
        }
        line += length + (line[length] == '\n');
    }
    return false;
}

int gpsh_environment_cgroup(const struct gpsh_host *host, const char *file, char *text,
                            size_t bytes)
{
    char lines[4096], path[512] = "";
    int status = gpsh_host_read(host, lines, sizeof lines, "proc/self/cgroup");
    if (status < 0)
        return status;
    if (!group_find(lines, "", path, sizeof path))
        return -ENOENT;
    // In a container the path may be the host's, and the group is mounted at the top.
    status = gpsh_host_read(host, text, bytes, "sys/fs/cgroup%s/%s", path, file);
    return status < 0 ? gpsh_host_read(host, text, bytes, "sys/fs/cgroup/%s", file) : status;
}

bool gpsh_environment_field(const char *text, const char *name, char *value, size_t bytes)
{
    const char *at = strstr(text, name);
    if (!at)
        return false;
    at += strlen(name);
    at += strspn(at, " \t:");
    snprintf(value, bytes, "%.*s", (int)strcspn(at, " \t\n"), at);
    return value[0] != '\0';
}
