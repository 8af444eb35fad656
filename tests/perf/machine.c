// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // scandir, getloadavg
#include "machine.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { LINE = 256 };

// The value of a line "key : value" of a file in /proc; false if there is none.
static bool read_value(const char *path, const char *key, char *value)
{
    char line[LINE];
    bool found = false;
    FILE *in = fopen(path, "re");
    while (in && !found && fgets(line, sizeof line, in)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)) != 0)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(value, PERF_MACHINE_TEXT, "%.*s", PERF_MACHINE_TEXT - 1, colon);
        found = true;
    }
    if (in)
        fclose(in);
    return found;
}

static int is_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

// The names in a folder, in order; *n is 0 if there is none.
static struct dirent **list(const char *folder, int *n)
{
    struct dirent **names = NULL;
    *n = scandir(folder, &names, is_name, alphasort);
    *n = *n < 0 ? 0 : *n;
    return names;
}

static void list_free(struct dirent **names, int n)
{
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

// Machines have GPUs of one kind: the first one's model counts for all.
static void read_gpus(struct perf_machine *m)
{
    static const char folder[] = "/proc/driver/nvidia/gpus";
    int n;
    struct dirent **names = list(folder, &n);
    char path[LINE + sizeof folder + 16], model[PERF_MACHINE_TEXT] = "unknown";
    if (n) {
        snprintf(path, sizeof path, "%s/%s/information", folder, names[0]->d_name);
        read_value(path, "Model", model);
        snprintf(m->gpus, sizeof m->gpus, "%d x %.100s", n, model);
        FILE *in = fopen("/sys/module/nvidia/version", "re");
        if (!in || fscanf(in, "%100s", m->gpu_driver) != 1)
            strcpy(m->gpu_driver, "unknown");
        if (in)
            fclose(in);
    }
    list_free(names, n);
}

static void read_nics(struct perf_machine *m)
{
    int n;
    size_t used = 0;
    struct dirent **names = list("/sys/class/infiniband", &n);
    for (int i = 0; i < n && used < sizeof m->nics; i++)
        used += (size_t)snprintf(m->nics + used, sizeof m->nics - used, "%s%s", i ? ", " : "",
                                 names[i]->d_name);
    list_free(names, n);
}

void perf_machine_read(struct perf_machine *m)
{
    struct utsname name;
    *m = (struct perf_machine){.cpu = "unknown",
                               .system = "unknown",
                               .gpus = "none",
                               .gpu_driver = "none",
                               .nics = "none"};
    m->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    m->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    read_value("/proc/cpuinfo", "model name", m->cpu);
    if (uname(&name) == 0)
        snprintf(m->system, sizeof m->system, "%.40s %.80s %.20s", name.sysname, name.release,
                 name.machine);
    if (getloadavg(&m->load, 1) != 1)
        m->load = 0;
    read_gpus(m);
    read_nics(m);
}
