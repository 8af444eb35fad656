// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // sched_getaffinity, sched_getcpu, CPU_COUNT
#include "progress/cores.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/config.h"
#include "job/job.h"
#include "memory/heap.h"

static bool mask_holds(const cpu_set_t *mask, const cpu_set_t *part)
{
    cpu_set_t both;
    CPU_AND(&both, mask, part);
    return CPU_EQUAL(&both, part);
}

// Masks are usually equal, or each within another one's (cores of a socket): then there is a core
// for each PE exactly if no mask, and not all together, hold more PEs than CPUs.
bool gpsh_cores_are_few(const void *of_pes, int n)
{
    const cpu_set_t *masks = of_pes;
    cpu_set_t all;
    CPU_ZERO(&all);
    bool few = false;
    for (int i = 0; i < n && !few; i++) {
        int confined = 0;
        for (int j = 0; j < n; j++)
            confined += mask_holds(&masks[i], &masks[j]);
        few = confined > CPU_COUNT(&masks[i]);
        CPU_OR(&all, &all, &masks[i]);
    }
    return few || n > CPU_COUNT(&all);
}

static bool mask_read(int pid, cpu_set_t *mask)
{
    return sched_getaffinity(pid, sizeof *mask, mask) == 0;
}

// A PE whose process is not visible here is taken to have this one's CPUs.
static bool node_is_crowded(void)
{
    const struct gpsh_bootstrap *boot = gpsh_job()->boot;
    size_t n = (size_t)boot->node_n_pes;
    bool crowded = boot->node_n_pes > sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t own, *masks = crowded ? NULL : calloc(n, sizeof *masks);
    if (masks && mask_read(0, &own)) { // it cannot be read where there are more than 1024 CPUs
        for (size_t i = 0; i < n; i++) {
            int pid = gpsh_job()->peers[boot->node_pes[i]].pid;
            if (pid <= 0 || !mask_read(pid, &masks[i]))
                masks[i] = own;
        }
        crowded = gpsh_cores_are_few(masks, boot->node_n_pes);
    }
    free(masks);
    return crowded;
}

bool gpsh_cores_are_shared(void)
{
    if (gpsh_settings()->wait != GPSH_WAITS_AUTO)
        return gpsh_settings()->wait == GPSH_WAITS_YIELD;
    return node_is_crowded();
}

// ---- Leaving a processor that another PE is on ----

static _Thread_local bool is_first_thread;

// Of the PEs of this node whose words are mapped: where they were seen. Returns whether one before
// this PE was on `cpu`.
static bool others_on(int cpu, cpu_set_t *taken)
{
    const struct gpsh_bootstrap *boot = gpsh_job()->boot;
    bool shared = false;
    CPU_ZERO(taken);
    for (int i = 0; i < boot->node_n_pes; i++) {
        int pe = boot->node_pes[i];
        const struct gpsh_control *theirs =
            (const struct gpsh_control *)(void *)gpsh_heap()->mapped[GPSH_CONTROL][pe];
        int on = theirs && pe != gpsh_job()->my_pe
                     ? atomic_load_explicit(&theirs->cpu, memory_order_relaxed) - 1
                     : -1;
        if (on >= 0 && on < CPU_SETSIZE)
            CPU_SET(on, taken);
        shared |= on == cpu && pe < gpsh_job()->my_pe;
    }
    return shared;
}

static void show_cpu(int cpu)
{
    atomic_store_explicit(&gpsh_heap()->control->cpu, cpu + 1, memory_order_relaxed);
}

// Binding the thread to one processor moves it there at once, and then it may go on as before.
static void move_to_free(const cpu_set_t *taken)
{
    cpu_set_t mine, target;
    if (!mask_read(0, &mine))
        return;
    int cpu = 0;
    while (cpu < CPU_SETSIZE && (!CPU_ISSET(cpu, &mine) || CPU_ISSET(cpu, taken)))
        cpu++;
    if (cpu == CPU_SETSIZE)
        return;
    CPU_ZERO(&target);
    CPU_SET(cpu, &target);
    if (sched_setaffinity(0, sizeof target, &target) == 0)
        show_cpu(cpu);
    (void)sched_setaffinity(0, sizeof mine, &mine);
}

void gpsh_cores_part(void)
{
    cpu_set_t taken;
    int cpu = is_first_thread ? sched_getcpu() : -1;
    if (cpu < 0)
        return;
    show_cpu(cpu);
    if (others_on(cpu, &taken))
        move_to_free(&taken);
}

// Where there are many PEs for each processor none would be free; and to look at all others costs
// a page fault each: of 700 PEs on two cores a quarter of the time that init took.
void gpsh_cores_begin(void)
{
    int n = gpsh_job()->boot->node_n_pes;
    is_first_thread = n > 1 && n <= 16 * sysconf(_SC_NPROCESSORS_ONLN);
    gpsh_cores_part();
}
