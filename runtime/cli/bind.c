// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // cpu_set_t
#include "bind.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/number_list.h"
#include "core/text.h"
#include "say.h"

// ---- The machine, as files of /sys tell it ----
//
// Most jobs are bound: three small files for each core are read in microseconds, which a library's
// model of the whole machine takes tens of milliseconds to make.

enum { PATH_BYTES = 256 };

// A core, or cores of one node or socket.
struct part {
    int package, node, first; // of its processors
    cpu_set_t cpus;
};

static int package_of(const char *sysfs, int cpu)
{
    char path[PATH_BYTES];
    int package = 0;
    snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/topology/physical_package_id", sysfs,
             cpu);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%d", &package) != 1)
        package = 0;
    if (file)
        fclose(file);
    return package;
}

// Where none is told, all are of one.
static void nodes_find(const char *sysfs, struct part *cores, int n)
{
    char path[PATH_BYTES];
    cpu_set_t nodes, cpus;
    CPU_ZERO(&nodes);
    snprintf(path, sizeof path, "%s/devices/system/node/has_cpu", sysfs);
    gpsh_number_list_read(path, &nodes);
    for (int node = 0; node < CPU_SETSIZE; node++) {
        CPU_ZERO(&cpus);
        snprintf(path, sizeof path, "%s/devices/system/node/node%d/cpulist", sysfs, node);
        if (!CPU_ISSET(node, &nodes) || !gpsh_number_list_read(path, &cpus))
            continue;
        for (int i = 0; i < n; i++)
            cores[i].node = CPU_ISSET(cores[i].first, &cpus) ? node : cores[i].node;
    }
}

// By sockets, and there by NUMA nodes: neighbours follow each other.
static int by_place(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    int by_package = x->package - y->package, by_node = x->node - y->node;
    return by_package ? by_package : by_node ? by_node : x->first - y->first;
}

// The cores of `mine`; at most CPU_SETSIZE.
static int cores_find(const char *sysfs, const cpu_set_t *mine, struct part *cores)
{
    char path[PATH_BYTES];
    cpu_set_t seen;
    int n = 0;
    CPU_ZERO(&seen);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, mine) || CPU_ISSET(cpu, &seen))
            continue;
        struct part *core = &cores[n++];
        *core = (struct part){.package = package_of(sysfs, cpu), .first = cpu};
        snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 sysfs, cpu);
        gpsh_number_list_read(path, &core->cpus);
        CPU_SET(cpu, &core->cpus);
        CPU_AND(&core->cpus, &core->cpus, mine);
        CPU_OR(&seen, &seen, &core->cpus);
    }
    nodes_find(sysfs, cores, n);
    qsort(cores, (size_t)n, sizeof *cores, by_place);
    return n;
}

// Makes whole nodes or sockets of the cores. How many there are.
static int parts_join(struct part *parts, int n, enum gpsh_bind to)
{
    int joined = 0;
    for (int i = 0; i < n; i++) {
        struct part *last = &parts[joined - (joined > 0)];
        bool same = joined && (to == GPSH_BIND_NUMA     ? last->node == parts[i].node
                               : to == GPSH_BIND_SOCKET ? last->package == parts[i].package
                                                        : false);
        if (same)
            CPU_OR(&last->cpus, &last->cpus, &parts[i].cpus);
        else
            parts[joined++] = parts[i];
    }
    return joined;
}

// ---- Plans ----

// Of `n` cores divided among all.
static void plan_shares(const struct part *cores, int64_t n, int n_pes, cpu_set_t *plan)
{
    for (int pe = 0; pe < n_pes; pe++)
        for (int64_t i = n * pe / n_pes; i < n * (pe + 1) / n_pes; i++)
            CPU_OR(&plan[pe], &plan[pe], &cores[i].cpus);
}

// `each` parts of n for each PE: of its own if there are enough, else cores in turn.
static void plan_parts(const struct part *parts, int n, int each, bool in_turn, int n_pes,
                       cpu_set_t *plan)
{
    int64_t places = n / each;
    for (int pe = 0; pe < n_pes; pe++) {
        int64_t place = in_turn && n_pes > places ? pe % places : pe * places / n_pes;
        for (int i = 0; i < each; i++)
            CPU_OR(&plan[pe], &plan[pe], &parts[place * each + i].cpus);
    }
}

// A PE has more threads than one, which do not meet on a core unless somebody has asked for it.
enum { LEAST_CORES = 2 };

int gpsh_bind_fill(const char *sysfs, const cpu_set_t *mine, enum gpsh_bind to, int cores,
                   int n_pes, cpu_set_t *plan)
{
    static const char *const names[] = {
        [GPSH_BIND_CORE] = "core", [GPSH_BIND_NUMA] = "NUMA node", [GPSH_BIND_SOCKET] = "socket"};
    static struct part parts[CPU_SETSIZE];
    int n = parts_join(parts, cores_find(sysfs, mine, parts), to);
    memset(plan, 0, (size_t)n_pes * sizeof *plan);
    if (to == GPSH_BIND_SHARE || to == GPSH_BIND_UNSET) {
        if (n >= (int64_t)n_pes * (to == GPSH_BIND_SHARE ? 1 : LEAST_CORES))
            plan_shares(parts, n, n_pes, plan);
        return 0;
    }
    int each = to == GPSH_BIND_CORE ? cores : 1;
    if (n < each) {
        gpsh_cli_say("run", "--bind: a PE needs %d %s%s, and this process may use %d", each,
                     names[to], each == 1 ? "" : "s", n);
        return -1;
    }
    plan_parts(parts, n, each, to == GPSH_BIND_CORE, n_pes, plan);
    return 0;
}

cpu_set_t *gpsh_bind_plan(enum gpsh_bind to, int cores, int n_pes)
{
    cpu_set_t mine, *plan = calloc((size_t)n_pes, sizeof *plan);
    if (!plan)
        gpsh_cli_say("run", "out of memory for the binding of %d PEs", n_pes);
    else if (sched_getaffinity(0, sizeof mine, &mine) < 0) // more than 1024 processors
        gpsh_cli_say("run", "PEs cannot be pinned here (%s); --bind none says nothing",
                     strerror(errno));
    else if (gpsh_bind_fill("/sys", &mine, to, cores, n_pes, plan) == 0)
        return plan;
    free(plan);
    return NULL;
}

static bool has_cpu(const void *cpus, int cpu)
{
    return CPU_ISSET(cpu, (const cpu_set_t *)cpus);
}

void gpsh_bind_print(const cpu_set_t *cpus, char *text, size_t bytes)
{
    struct gpsh_text t = {text, bytes, 0};
    text[0] = '\0';
    gpsh_text_add_ranges(&t, CPU_SETSIZE, has_cpu, cpus);
}
