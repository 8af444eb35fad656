// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // cpu_set_t
#include "bind.h"

#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <stdint.h>
#include <stdlib.h>

#include "say.h"

static int core_of(int pe, int n_pes, int n_cores)
{
    return n_pes > n_cores ? pe % n_cores : (int)((int64_t)pe * n_cores / n_pes);
}

// hwloc shows only what this process may use, as long as it is not asked for disallowed resources.
static int assign(hwloc_topology_t topology, cpu_set_t *sets, int n_pes)
{
    int n_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    if (n_cores <= 0)
        return -1;
    for (int pe = 0; pe < n_pes; pe++) {
        hwloc_obj_t core =
            hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, (unsigned)core_of(pe, n_pes, n_cores));
        if (hwloc_cpuset_to_glibc_sched_affinity(topology, core->cpuset, &sets[pe],
                                                 sizeof(sets[pe])) < 0)
            return -1;
    }
    return 0;
}

cpu_set_t *gpsh_bind_cores(int n_pes)
{
    hwloc_topology_t topology;
    cpu_set_t *sets = calloc((size_t)n_pes, sizeof(*sets));
    if (!sets || hwloc_topology_init(&topology) < 0)
        goto err_free_sets;
    if (hwloc_topology_load(topology) < 0 || assign(topology, sets, n_pes) < 0)
        goto err_destroy_topology;
    hwloc_topology_destroy(topology);
    return sets;

err_destroy_topology:
    hwloc_topology_destroy(topology);
err_free_sets:
    free(sets);
    gpsh_cli_say("run", "hwloc finds no processor cores here; leave out --bind core");
    return NULL;
}
