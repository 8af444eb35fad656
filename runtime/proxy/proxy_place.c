// SPDX-License-Identifier: BSD-3-Clause
// Where a proxy thread runs: on the CPU that GPUSHMEM_PROXY_CPUS names for it, else on the CPUs
// near its GPU, so that rings and doorbells are not reached across the link between sockets.
#define _GNU_SOURCE // CPU sets
#include <sched.h>

#include "core/log.h"
#include "core/number_list.h"
#include "proxy/proxy.h"

static void place_near(const char *near_file)
{
    cpu_set_t near, allowed;
    CPU_ZERO(&near);
    if (!near_file || !gpsh_number_list_read(near_file, &near) ||
        pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed))
        return;
    CPU_AND(&near, &near, &allowed);
    if (CPU_COUNT(&near) && !CPU_EQUAL(&near, &allowed) &&
        !pthread_setaffinity_np(pthread_self(), sizeof near, &near))
        GPSH_LOG(DEBUG, "proxy", "a proxy thread runs on the %d CPUs near the GPU that it may use",
                 CPU_COUNT(&near));
}

void gpsh_proxy_place(const struct gpsh_proxy_thread *thread)
{
    if (thread->cpu < 0) {
        place_near(thread->proxy->env.near_cpus_file);
        return;
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(thread->cpu, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set))
        GPSH_LOG(WARN, "proxy",
                 "a proxy thread cannot run on CPU %d: the CPU is offline, or this process may not "
                 "use it; see GPUSHMEM_PROXY_CPUS",
                 thread->cpu);
}
