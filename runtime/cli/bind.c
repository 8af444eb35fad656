// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // cpu_set_t
#include "bind.h"

#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/text.h"
#include "say.h"

// hwloc leaves out what the control group does not allow; the affinity mask (taskset, a batch
// system) is left to us.
static int topology_load_usable(hwloc_topology_t topology)
{
    if (hwloc_topology_load(topology) < 0)
        return -1;
    hwloc_bitmap_t mine = hwloc_bitmap_alloc();
    int failed = !mine || hwloc_get_cpubind(topology, mine, HWLOC_CPUBIND_PROCESS) < 0 ||
                 hwloc_topology_restrict(topology, mine, 0) < 0;
    hwloc_bitmap_free(mine);
    return failed ? -1 : 0;
}

// The place of a PE among `n` places.
static int place_of(int pe, int n_pes, int n, enum gpsh_bind to)
{
    bool in_turn = n_pes > n && to == GPSH_BIND_CORE;
    return in_turn ? pe % n : (int)((int64_t)pe * n / n_pes);
}

// The objects of a type that have processors: memory alone may be a NUMA node, too. At most `room`.
static int objects_find(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_obj_t *objects,
                        int room)
{
    int n = 0;
    for (hwloc_obj_t o = NULL; n < room && (o = hwloc_get_next_obj_by_type(topology, type, o));) {
        if (!hwloc_bitmap_iszero(o->cpuset))
            objects[n++] = o;
    }
    return n;
}

static int cpus_unite(hwloc_topology_t topology, const hwloc_obj_t *objects, int n, cpu_set_t *cpus)
{
    hwloc_bitmap_t all = hwloc_bitmap_alloc();
    for (int i = 0; all && i < n; i++)
        hwloc_bitmap_or(all, all, objects[i]->cpuset);
    int status =
        all ? hwloc_cpuset_to_glibc_sched_affinity(topology, all, cpus, sizeof(*cpus)) : -1;
    hwloc_bitmap_free(all);
    return status;
}

static int plan_make(hwloc_topology_t topology, enum gpsh_bind to, int cores, int n_pes,
                     cpu_set_t *plan)
{
    static const struct {
        hwloc_obj_type_t type;
        const char *name;
    } units[] = {[GPSH_BIND_CORE] = {HWLOC_OBJ_CORE, "core"},
                 [GPSH_BIND_NUMA] = {HWLOC_OBJ_NUMANODE, "NUMA node"},
                 [GPSH_BIND_SOCKET] = {HWLOC_OBJ_PACKAGE, "socket"}};
    static hwloc_obj_t objects[CPU_SETSIZE];
    int each = to == GPSH_BIND_CORE ? cores : 1;
    int n = objects_find(topology, units[to].type, objects, CPU_SETSIZE);
    if (n < each) {
        gpsh_cli_say("run", "--bind: a PE needs %d %s%s, and this process may use %d", each,
                     units[to].name, each == 1 ? "" : "s", n);
        return -1;
    }
    for (int pe = 0; pe < n_pes; pe++) {
        int first = place_of(pe, n_pes, n / each, to) * each;
        if (cpus_unite(topology, &objects[first], each, &plan[pe]) < 0) {
            gpsh_cli_say("run", "hwloc cannot tell the processors of %s %d", units[to].name, first);
            return -1;
        }
    }
    return 0;
}

// ---- Shares ----
//
// Every job is bound so by default: reading two small files for each core takes microseconds, and
// hwloc's topology tens of milliseconds.

struct core {
    int package;
    cpu_set_t cpus;
};

// What a file below `sysfs` says about a CPU, without the end of the line. False: there is none.
static bool cpu_fact(const char *sysfs, int cpu, const char *name, char *text, size_t bytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/topology/%s", sysfs, cpu, name);
    FILE *file = fopen(path, "re");
    bool found = file && fgets(text, (int)bytes, file);
    if (file)
        fclose(file);
    return found;
}

// Adds those of "0-1,8" that are in `mine`.
static void cpus_add(const char *list, const cpu_set_t *mine, cpu_set_t *cpus)
{
    for (char *end; *list; list = *end == ',' ? end + 1 : "") {
        long first = strtol(list, &end, 10), last = first;
        if (end == list)
            return;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, mine))
                CPU_SET(cpu, cpus);
    }
}

// The cores of `mine` by packages; at most CPU_SETSIZE.
static int cores_find(const char *sysfs, const cpu_set_t *mine, struct core *cores)
{
    cpu_set_t seen;
    int n = 0;
    CPU_ZERO(&seen);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        char siblings[1024], package[32];
        if (!CPU_ISSET(cpu, mine) || CPU_ISSET(cpu, &seen))
            continue;
        struct core core = {0};
        CPU_SET(cpu, &core.cpus);
        if (cpu_fact(sysfs, cpu, "thread_siblings_list", siblings, sizeof siblings))
            cpus_add(siblings, mine, &core.cpus);
        if (cpu_fact(sysfs, cpu, "physical_package_id", package, sizeof package))
            core.package = atoi(package);
        CPU_OR(&seen, &seen, &core.cpus);
        int at = n++;
        for (; at > 0 && cores[at - 1].package > core.package; at--)
            cores[at] = cores[at - 1];
        cores[at] = core;
    }
    return n;
}

int gpsh_bind_shares(const char *sysfs, const cpu_set_t *mine, int n_pes, int least,
                     cpu_set_t *plan)
{
    struct core *cores = calloc(CPU_SETSIZE, sizeof *cores);
    int64_t n = cores ? cores_find(sysfs, mine, cores) : 0;
    bool enough = n >= (int64_t)least * n_pes;
    for (int pe = 0; pe < n_pes; pe++) {
        CPU_ZERO(&plan[pe]);
        for (int64_t i = n * pe / n_pes; enough && i < n * (pe + 1) / n_pes; i++)
            CPU_OR(&plan[pe], &plan[pe], &cores[i].cpus);
    }
    free(cores);
    return enough;
}

// A PE has more threads than one, which do not meet on a core unless somebody has asked for it.
enum { LEAST_CORES = 2 };

static cpu_set_t *plan_by_shares(int n_pes, int least)
{
    cpu_set_t mine, *plan = calloc((size_t)n_pes, sizeof *plan);
    if (!plan)
        gpsh_cli_say("run", "out of memory for the binding of %d PEs", n_pes);
    else if (sched_getaffinity(0, sizeof mine, &mine) == 0)
        (void)gpsh_bind_shares("/sys", &mine, n_pes, least, plan);
    return plan;
}

cpu_set_t *gpsh_bind_plan(enum gpsh_bind to, int cores, int n_pes)
{
    if (to == GPSH_BIND_SHARE || to == GPSH_BIND_UNSET)
        return plan_by_shares(n_pes, to == GPSH_BIND_SHARE ? 1 : LEAST_CORES);
    hwloc_topology_t topology;
    cpu_set_t *plan = calloc((size_t)n_pes, sizeof(*plan));
    if (!plan || hwloc_topology_init(&topology) < 0) {
        gpsh_cli_say("run", "out of memory for the binding of %d PEs", n_pes);
        free(plan);
        return NULL;
    }
    int status = topology_load_usable(topology);
    if (status < 0)
        gpsh_cli_say("run", "hwloc cannot read the processors of this machine; leave out --bind");
    else
        status = plan_make(topology, to, cores, n_pes, plan);
    hwloc_topology_destroy(topology);
    if (status == 0)
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
