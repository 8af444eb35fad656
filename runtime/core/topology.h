// SPDX-License-Identifier: BSD-3-Clause
// How near PCI devices are to each other and to processors, from hwloc: which NIC belongs to which
// GPU.
#ifndef GPSH_TOPOLOGY_H
#define GPSH_TOPOLOGY_H

#include <stddef.h>

// What lies between two devices, nearest first. The words are those of nvidia-smi's matrix.
enum gpsh_distance {
    GPSH_DISTANCE_PIX,  // one PCIe switch at most
    GPSH_DISTANCE_PXB,  // several switches, no host bridge
    GPSH_DISTANCE_PHB,  // the same host bridge
    GPSH_DISTANCE_NODE, // host bridges of one NUMA node
    GPSH_DISTANCE_SYS,  // the link between sockets
    GPSH_DISTANCE_UNKNOWN,
};

struct gpsh_topology;

// Loads this machine's topology, or the one in an XML file that `lstopo FILE.xml` wrote.
// GPUSHMEM_ERR_SYSTEM with a sentence if hwloc cannot.
int gpsh_topology_open(const char *xml_file, struct gpsh_topology **out);
void gpsh_topology_close(struct gpsh_topology *topology);

// hwloc's own, for what walks over all of it. It belongs to `topology`.
struct hwloc_topology *gpsh_topology_hwloc(const struct gpsh_topology *topology);

// Between two PCI addresses like "0000:3b:00.0". UNKNOWN if one is not on this machine (or NULL).
enum gpsh_distance gpsh_topology_between(const struct gpsh_topology *topology, const char *pci,
                                         const char *other_pci);

// From processor `cpu` (number of the operating system): NODE if the device hangs on its NUMA node,
// else SYS.
enum gpsh_distance gpsh_topology_from_cpu(const struct gpsh_topology *topology, int cpu,
                                          const char *pci);

// PCI address of the device whose folder in sysfs this is (/sys/class/infiniband/mlx5_0); "" for a
// software device.
void gpsh_topology_pci_of(const char *sysfs_folder, char *pci, size_t bytes);

const char *gpsh_distance_name(enum gpsh_distance distance);

#endif
