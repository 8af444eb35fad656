// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // environ, strverscmp
#include "doctor/host.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/config.h"
#include "core/log.h"

enum { ENVIRONMENT_BYTES = 1 << 20, VARIABLES_MOST = 1 << 14 };

static void path_make(const struct gpsh_host *host, char *path, const char *format, va_list args)
{
    int used = snprintf(path, PATH_MAX, "%s/", host->root);
    if (used > 0 && used < PATH_MAX)
        vsnprintf(path + used, (size_t)(PATH_MAX - used), format, args);
}

#define PATH_OF(path, host, format)                                                                \
    char path[PATH_MAX] = "";                                                                      \
    do {                                                                                           \
        va_list path_args;                                                                         \
        va_start(path_args, format);                                                               \
        path_make(host, path, format, path_args);                                                  \
        va_end(path_args);                                                                         \
    } while (0)

// A file of /sys may be a device that never ends, or a pipe that somebody planted: neither is
// waited for.
static int file_read(const char *path, char *data, size_t bytes)
{
    size_t used = 0;
    ssize_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    while (used < bytes && (n = read(fd, data + used, bytes - used)) > 0)
        used += (size_t)n;
    int error = n < 0 ? errno : 0;
    close(fd);
    return error ? -error : (int)used;
}

int gpsh_host_read_raw(const struct gpsh_host *host, void *data, size_t bytes, const char *format,
                       ...)
{
    PATH_OF(path, host, format);
    return file_read(path, data, bytes);
}

static int text_read(const char *path, char *text, size_t bytes)
{
    int n = file_read(path, text, bytes - 1);
    text[n < 0 ? 0 : n] = '\0';
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        text[--n] = '\0';
    return n;
}

int gpsh_host_read(const struct gpsh_host *host, char *text, size_t bytes, const char *format, ...)
{
    PATH_OF(path, host, format);
    return text_read(path, text, bytes);
}

int gpsh_host_number(const struct gpsh_host *host, long long *number, const char *format, ...)
{
    char text[64], *end;
    PATH_OF(path, host, format);
    int n = text_read(path, text, sizeof text);
    if (n < 0)
        return n;
    errno = 0;
    long long value = strtoll(text, &end, 0);
    if (end == text || errno || (*end && !isspace((unsigned char)*end)))
        return -EINVAL;
    *number = value;
    return 0;
}

int gpsh_host_access(const struct gpsh_host *host, int mode, const char *format, ...)
{
    PATH_OF(path, host, format);
    return access(path, mode) ? -errno : 0;
}

int gpsh_host_link(const struct gpsh_host *host, char *target, size_t bytes, const char *format,
                   ...)
{
    PATH_OF(path, host, format);
    ssize_t n = readlink(path, target, bytes - 1);
    target[n < 0 ? 0 : n] = '\0';
    return n < 0 ? -errno : 0;
}

static int names_order(const void *a, const void *b)
{
    return strverscmp(a, b);
}

int gpsh_host_list(const struct gpsh_host *host, struct gpsh_names *names, const char *format, ...)
{
    PATH_OF(path, host, format);
    DIR *folder = opendir(path);
    names->n = 0;
    if (!folder)
        return -errno;
    for (struct dirent *entry; (entry = readdir(folder)) && names->n < GPSH_HOST_NAMES;) {
        size_t length = strlen(entry->d_name);
        if (entry->d_name[0] != '.' && length < GPSH_HOST_NAME_BYTES)
            memcpy(names->name[names->n++], entry->d_name, length + 1);
    }
    closedir(folder);
    qsort(names->name, (size_t)names->n, sizeof names->name[0], names_order);
    return 0;
}

// One by one: machines with NVSwitches have thousands of processes of the kernel alone.
bool gpsh_host_runs(const struct gpsh_host *host, const char *name)
{
    char path[PATH_MAX], comm[32];
    snprintf(path, sizeof path, "%s/proc", host->root);
    DIR *folder = opendir(path);
    bool runs = false;
    for (struct dirent *entry; folder && !runs && (entry = readdir(folder));)
        runs = isdigit((unsigned char)entry->d_name[0]) &&
               gpsh_host_read(host, comm, sizeof comm, "proc/%s/comm", entry->d_name) > 0 &&
               !strncmp(comm, name, 15);
    if (folder)
        closedir(folder);
    return runs;
}

bool gpsh_host_variable(const struct gpsh_host *host, const char *name, char *value, size_t bytes)
{
    const char *text = gpsh_settings_variable(gpsh_host_environment(host), name);
    snprintf(value, bytes, "%s", text ? text : "");
    return text != NULL;
}

char *const *gpsh_host_environment(const struct gpsh_host *host)
{
    static char *variables[VARIABLES_MOST + 1], all[ENVIRONMENT_BYTES];
    if (host->live)
        return environ;
    int bytes = gpsh_host_read_raw(host, all, sizeof all - 1, "proc/self/environ"), n = 0;
    all[bytes < 0 ? 0 : bytes] = '\0';
    for (char *at = all; at < all + bytes && n < VARIABLES_MOST; at += strlen(at) + 1)
        variables[n++] = at;
    variables[n] = NULL;
    return variables;
}

// ---- The process and what it runs in ----

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

// What was given, read once; nothing where that cannot be read, which the check "settings" tells.
static const struct gpsh_settings_given *given_of(const struct gpsh_host *host)
{
    static struct gpsh_settings_given given;
    static bool tried;
    enum gpsh_log_level level = gpsh_log_threshold;
    gpsh_log_threshold = GPSH_LOG_ERROR; // that check warns as well
    if (!tried && gpsh_settings_gather(gpsh_host_environment(host), host->root, false, &given))
        gpsh_settings_given_clear(&given);
    gpsh_log_threshold = level;
    tried = true;
    return &given;
}

const char *gpsh_environment_setting(const struct gpsh_host *host, const char *name, char *value,
                                     size_t bytes)
{
    if (gpsh_host_variable(host, name, value, bytes) && value[0])
        return value;
    int i = gpsh_setting_find(name, strlen(name));
    const char *text = i < GPSH_SETTINGS ? given_of(host)->row[i].text : NULL;
    snprintf(value, bytes, "%s", text ? text : "");
    return value;
}

long long gpsh_environment_heap(const struct gpsh_host *host)
{
    char text[64];
    uint64_t bytes;
    gpsh_environment_setting(host, "GPUSHMEM_HEAP_SIZE", text, sizeof text);
    if (!text[0] || gpsh_parse_size(text, &bytes) || bytes > INT64_MAX)
        return 256 << 20;
    return bytes;
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

bool gpsh_host_library(const struct gpsh_host *host, const char *name, char *target, size_t bytes)
{
    static const char *const folders[] = {
        "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib",
        "lib/x86_64-linux-gnu",     "usr/local/nvidia/lib64"};
    target[0] = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (!gpsh_host_link(host, target, bytes, "%s/%s", folders[i], name) ||
            !gpsh_host_access(host, 0, "%s/%s", folders[i], name))
            return true;
    return false;
}

bool gpsh_host_field(const struct gpsh_host *host, const char *path, const char *name, char *value,
                     size_t bytes)
{
    char text[8192];
    const char *at =
        gpsh_host_read(host, text, sizeof text, "%s", path) > 0 ? strstr(text, name) : NULL;
    if (!at)
        return false;
    at += strlen(name);
    at += strspn(at, " \t:");
    snprintf(value, bytes, "%.*s", (int)strcspn(at, " \t\n"), at);
    return value[0] != '\0';
}
