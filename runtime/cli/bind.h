// SPDX-License-Identifier: BSD-3-Clause
// Which processors a PE is pinned to with --bind.
#ifndef GPSH_BIND_H
#define GPSH_BIND_H

#include <sched.h>
#include <stddef.h>

enum gpsh_bind {
    GPSH_BIND_NONE,
    GPSH_BIND_SHARE,
    GPSH_BIND_CORE,
    GPSH_BIND_NUMA,
    GPSH_BIND_SOCKET,
    GPSH_BIND_UNSET, // as SHARE where there are two cores for each PE
};

// One set per PE, malloc'ed, from the processors that this process may use (its affinity mask and
// control group):
//  - SHARE: the cores are divided among the PEs, neighbours each. No two PEs begin
//    on one core, and a PE's threads have room where there are more cores than PEs. More PEs than
//    cores are not pinned: each set is empty.
//  - CORE: `cores` whole cores each, neighbours, all hardware threads of a core. As many PEs as
//    there is room for get cores of their own, spread over the machine; if there are more PEs, they
//    share in turn.
//  - NUMA, SOCKET: the processors of a NUMA node or a socket; consecutive PEs share one.
// NULL after a message.
cpu_set_t *gpsh_bind_plan(enum gpsh_bind to, int cores, int n_pes);

// The same of the processors `mine`, whose cores, nodes and sockets the folder `sysfs` (as /sys)
// tells: 0, or -1 after a message.
int gpsh_bind_fill(const char *sysfs, const cpu_set_t *mine, enum gpsh_bind to, int cores,
                   int n_pes, cpu_set_t *plan);

// "0-3,8", cut where it does not fit.
void gpsh_bind_print(const cpu_set_t *cpus, char *text, size_t bytes);

#endif
