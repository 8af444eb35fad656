// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // sched_getaffinity, CPU_COUNT
#include "progress/cores.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/config.h"
#include "job/job.h"

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
