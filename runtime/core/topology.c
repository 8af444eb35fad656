// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // readlink
#include "core/topology.h"

#include <errno.h>
#include <hwloc.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

struct gpsh_topology {
    hwloc_topology_t hwloc;
};

static int load(hwloc_topology_t hwloc, const char *xml_file)
{
    if (xml_file && hwloc_topology_set_xml(hwloc, xml_file))
        return -1;
    // PCI devices are found in sysfs without a plugin. The plugins would load libpciaccess, which
    // leaks, and the drivers of every GPU maker, which is slow; an unknown name is no error to us.
    static const char *const plugins[] = {"pci", "opencl", "cuda",     "nvml",
                                          "gl",  "rsmi",   "levelzero"};
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++)
        hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, plugins[i]);
    hwloc_topology_set_io_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    // A recorded machine's NVLinks may lead to switches, which hwloc does not count as important.
    if (xml_file)
        hwloc_topology_set_type_filter(hwloc, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL);
    // Caches and cores say nothing about distance here, and take time to find.
    hwloc_topology_set_cache_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_NONE);
    return hwloc_topology_load(hwloc);
}

int gpsh_topology_open(const char *xml_file, struct gpsh_topology **out)
{
    struct gpsh_topology *topology = malloc(sizeof *topology);
    if (!topology)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the machine's topology");
    if (hwloc_topology_init(&topology->hwloc)) {
        free(topology);
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "hwloc cannot be initialised (%s)", strerror(errno));
    }
    if (load(topology->hwloc, xml_file)) {
        int error = errno;
        gpsh_topology_close(topology);
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "hwloc cannot load the topology of %s (%s); %s",
                         xml_file ? xml_file : "this machine", strerror(error),
                         xml_file ? "`lstopo FILE.xml` records one" : "does lstopo work here?");
    }
    *out = topology;
    return 0;
}

void gpsh_topology_close(struct gpsh_topology *topology)
{
    if (!topology)
        return;
    hwloc_topology_destroy(topology->hwloc);
    free(topology);
}

struct hwloc_topology *gpsh_topology_hwloc(const struct gpsh_topology *topology)
{
    return topology->hwloc;
}

static hwloc_obj_t find(const struct gpsh_topology *topology, const char *pci)
{
    return pci ? hwloc_get_pcidev_by_busidstring(topology->hwloc, pci) : NULL;
}

static int is_bridge(hwloc_obj_t object, hwloc_obj_bridge_type_t upstream)
{
    return object->type == HWLOC_OBJ_BRIDGE && object->attr->bridge.upstream_type == upstream;
}

static int is_above(hwloc_obj_t above, hwloc_obj_t object)
{
    while (object && object != above)
        object = object->parent;
    return object != NULL;
}

// Bridges strictly between a device and an ancestor of it.
static int bridges_below(hwloc_obj_t ancestor, hwloc_obj_t device)
{
    int n = 0;
    for (hwloc_obj_t o = device->parent; o != ancestor; o = o->parent)
        n++;
    return n;
}

enum gpsh_distance gpsh_topology_between(const struct gpsh_topology *topology, const char *pci,
                                         const char *other_pci)
{
    hwloc_obj_t a = find(topology, pci), b = find(topology, other_pci);
    if (!a || !b)
        return GPSH_DISTANCE_UNKNOWN;
    if (a == b)
        return GPSH_DISTANCE_PIX;
    hwloc_obj_t common = a->parent;
    while (!is_above(common, b))
        common = common->parent;
    // A switch is one upstream bridge with a downstream bridge for each
    // port: one bridge below the common one.
    if (is_bridge(common, HWLOC_OBJ_BRIDGE_PCI))
        return bridges_below(common, a) <= 1 && bridges_below(common, b) <= 1 ? GPSH_DISTANCE_PIX
                                                                              : GPSH_DISTANCE_PXB;
    if (is_bridge(common, HWLOC_OBJ_BRIDGE_HOST))
        return GPSH_DISTANCE_PHB;
    hwloc_obj_t a_home = hwloc_get_non_io_ancestor_obj(topology->hwloc, a);
    hwloc_obj_t b_home = hwloc_get_non_io_ancestor_obj(topology->hwloc, b);
    if (!a_home->nodeset || !b_home->nodeset)
        return GPSH_DISTANCE_UNKNOWN; // a group whose processors are all offline has none
    return hwloc_bitmap_intersects(a_home->nodeset, b_home->nodeset) ? GPSH_DISTANCE_NODE
                                                                     : GPSH_DISTANCE_SYS;
}

enum gpsh_distance gpsh_topology_from_cpu(const struct gpsh_topology *topology, int cpu,
                                          const char *pci)
{
    hwloc_obj_t device = find(topology, pci);
    if (!device || cpu < 0)
        return GPSH_DISTANCE_UNKNOWN;
    hwloc_obj_t home = hwloc_get_non_io_ancestor_obj(topology->hwloc, device);
    return hwloc_bitmap_isset(home->cpuset, (unsigned)cpu) ? GPSH_DISTANCE_NODE : GPSH_DISTANCE_SYS;
}

void gpsh_topology_pci_of(const char *sysfs_folder, char *pci, size_t bytes)
{
    char link[PATH_MAX], target[PATH_MAX];
    snprintf(link, sizeof link, "%s/device", sysfs_folder);
    ssize_t length = readlink(link, target, sizeof target - 1);
    pci[0] = '\0';
    if (length < 0)
        return;
    target[length] = '\0';
    const char *last = strrchr(target, '/');
    const char *name = last ? last + 1 : target;
    if (strlen(name) < bytes)
        memcpy(pci, name, strlen(name) + 1);
}

const char *gpsh_distance_name(enum gpsh_distance distance)
{
    static const char *const names[] = {"PIX", "PXB", "PHB", "NODE", "SYS", "?"};
    return names[distance <= GPSH_DISTANCE_UNKNOWN ? distance : GPSH_DISTANCE_UNKNOWN];
}
