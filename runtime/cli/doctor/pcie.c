// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // setenv
// Checks of what lies between GPUs and NICs.
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/topology.h"
#include "doctor/check.h"
#include "gpushmem/gpushmem.h"

// ---- Distance ----

static enum gpsh_distance nearest_nic(const struct gpsh_topology *topology, const char *gpu,
                                      const struct gpsh_pcis *nics, const char **nearest)
{
    enum gpsh_distance best = GPSH_DISTANCE_UNKNOWN;
    for (int i = 0; i < nics->n; i++) {
        enum gpsh_distance d = gpsh_topology_between(topology, gpu, nics->device[i].address);
        if (d < best) {
            best = d;
            *nearest = nics->device[i].address;
        }
    }
    return best;
}

// The path that is looked at, and then the first pipe or device that was found.
static char obstacle[PATH_MAX];

static bool obstacle_below(size_t length, int level);

// `name` in the folder whose path is the first `length` bytes. Processes of a real /proc are left
// out: hwloc does not look at them, and they have pipes.
static bool obstacle_at(size_t length, const char *name, int level)
{
    struct stat found;
    int more = snprintf(obstacle + length, sizeof obstacle - length, "/%s", name);
    bool process = level == 1 && !name[strspn(name, "0123456789")];
    if ((size_t)more >= sizeof obstacle - length || lstat(obstacle, &found))
        return false;
    if (S_ISDIR(found.st_mode))
        return !process && obstacle_below(length + (size_t)more, level + 1);
    if (S_ISLNK(found.st_mode) && stat(obstacle, &found))
        return false;
    return S_ISFIFO(found.st_mode) || S_ISCHR(found.st_mode);
}

static bool obstacle_below(size_t length, int level)
{
    DIR *folder = opendir(obstacle);
    bool found = false;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));)
        found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                obstacle_at(length, entry->d_name, level);
    if (folder)
        closedir(folder);
    return found;
}

// What hwloc would wait for in a copied tree, for ever: it opens files as if all were plain. NULL:
// nothing.
static const char *obstacle_find(const struct gpsh_host *host)
{
    static const char *const folders[] = {"sys", "proc", "run/hwloc", "run/udev/data"};
    size_t length = strlen(host->root);
    if (length >= sizeof obstacle)
        return NULL;
    memcpy(obstacle, host->root, length + 1);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (obstacle_at(length, folders[i], 0))
            return obstacle;
    return NULL;
}

// hwloc reads a copied /sys if it is told so by its own variable.
static int topology_open(const struct gpsh_host *host, struct gpsh_topology **topology)
{
    if (!host->live)
        setenv("HWLOC_FSROOT", host->root, 1);
    int status = gpsh_topology_open(NULL, topology);
    if (!host->live)
        unsetenv("HWLOC_FSROOT");
    return status;
}

GPSH_CHECK_FUNCTION(distance)
{
    struct gpsh_topology *topology;
    const char *pipe = host->live ? NULL : obstacle_find(host);
    if (pipe) {
        gpsh_found(finding, GPSH_CANNOT_TELL,
                   "%s is a pipe or a device, and hwloc would wait for it: a copy of /sys and "
                   "/proc has plain files only",
                   pipe);
        return;
    }
    if (topology_open(host, &topology)) {
        gpsh_found(finding, GPSH_CANNOT_TELL, "%s", gpushmem_last_error());
        return;
    }
    for (int i = 0; i < host->gpus.n; i++) {
        const char *gpu = host->gpus.device[i].address, *nic = "";
        enum gpsh_distance d = nearest_nic(topology, gpu, &host->nics, &nic);
        if (d == GPSH_DISTANCE_UNKNOWN)
            gpsh_found(finding, GPSH_CANNOT_TELL, "hwloc does not see GPU %s or the NICs", gpu);
        else
            gpsh_found(finding, d == GPSH_DISTANCE_SYS ? GPSH_PROBLEM : GPSH_OK,
                       "GPU %s: the nearest NIC, %s, is at %s", gpu, nic, gpsh_distance_name(d));
    }
    gpsh_topology_close(topology);
}

// ---- Access control services ----

enum { EXTENDED_ACS = 0x0d, ACS_CONTROL = 6, ACS_REDIRECT = 1 << 2 | 1 << 3 };

static void bridge_check(const struct gpsh_host *host, struct gpsh_finding *finding,
                         const char *bridge)
{
    unsigned char config[GPSH_PCI_CONFIG];
    int bytes = gpsh_pci_config(host, bridge, config);
    int at = bytes < 0 ? -1 : gpsh_pci_extended(config, bytes, EXTENDED_ACS);
    if (at < 0)
        gpsh_found(finding, GPSH_CANNOT_TELL, "the registers of bridge %s may not be read", bridge);
    else if (at && config[at + ACS_CONTROL] & ACS_REDIRECT) {
        gpsh_found(finding, GPSH_PROBLEM, "bridge %s redirects to the root complex", bridge);
        gpsh_mend(finding,
                  "sudo setpci -s %s ECAP_ACS+6.w=0000 (for every bridge named; or ACS off in "
                  "the firmware setup)",
                  bridge);
    } else
        gpsh_found(finding, GPSH_OK, "bridge %s does not redirect", bridge);
}

// Bridges of two paths below what they have in common. Only a switch has a choice: without a
// common bridge everything goes through the root complex anyway.
static int bridges_between(const struct gpsh_host *host, struct gpsh_finding *finding)
{
    static char a[GPSH_PCI_PATH][GPSH_PCI_BYTES], b[GPSH_PCI_PATH][GPSH_PCI_BYTES];
    static struct gpsh_pcis seen;
    seen.n = 0;
    for (int g = 0; g < host->gpus.n; g++)
        for (int n = 0; n < host->nics.n; n++) {
            int na = gpsh_pci_path(host, host->gpus.device[g].address, a), common = 0;
            int nb = gpsh_pci_path(host, host->nics.device[n].address, b);
            while (common < na && common < nb && !strcmp(a[common], b[common]))
                common++;
            for (int i = common; common && i < (na > nb ? na : nb) - 1; i++)
                for (int side = 0; side < 2; side++) {
                    const char *bridge = side ? b[i] : a[i];
                    bool known = i >= (side ? nb : na) - 1;
                    for (int k = 0; k < seen.n; k++)
                        known |= !strcmp(seen.device[k].address, bridge);
                    if (known || seen.n == GPSH_PCI_MOST)
                        continue;
                    memcpy(seen.device[seen.n++].address, bridge, GPSH_PCI_BYTES);
                    bridge_check(host, finding, bridge);
                }
        }
    return seen.n;
}

GPSH_CHECK_FUNCTION(acs)
{
    if (!bridges_between(host, finding))
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "no GPU shares a PCIe switch with a NIC");
}

// ---- IOMMU ----

GPSH_CHECK_FUNCTION(iommu)
{
    const char *pci = item->pci;
    char target[256], type[32];
    if (gpsh_host_link(host, target, sizeof target, "sys/bus/pci/devices/%s/iommu_group", pci)) {
        gpsh_found(finding, GPSH_OK, "%s is behind none", pci);
        return;
    }
    const char *group = strrchr(target, '/') ? strrchr(target, '/') + 1 : target;
    if (gpsh_host_read(host, type, sizeof type, "sys/kernel/iommu_groups/%.32s/type", group) <= 0)
        gpsh_found(finding, GPSH_CANNOT_TELL, "the mode of IOMMU group %.32s cannot be read",
                   group);
    else if (!strcmp(type, "identity"))
        gpsh_found(finding, GPSH_OK, "%s is passed through", pci);
    else
        gpsh_found(finding, GPSH_PROBLEM, "%s is behind an IOMMU that translates (%s)", pci, type);
}

// ---- Relaxed ordering ----

enum { CAPABILITY_EXPRESS = 0x10, EXPRESS_CONTROL = 8, RELAXED = 1 << 4 };

GPSH_CHECK_FUNCTION(relaxed)
{
    const char *pci = item->pci;
    unsigned char config[GPSH_PCI_CONFIG];
    int bytes = gpsh_pci_config(host, pci, config);
    int at = bytes < 0 ? -1 : gpsh_pci_capability(config, bytes, CAPABILITY_EXPRESS);
    if (!gpsh_host_access(host, 0, "sys/bus/pci/devices/%s/physfn", pci))
        gpsh_found(finding, GPSH_CANNOT_TELL, "NIC %s is a virtual function: its host decides",
                   pci);
    else if (at < 0)
        gpsh_found(finding, GPSH_CANNOT_TELL, "the registers of NIC %s may not be read", pci);
    else if (!at)
        gpsh_found(finding, GPSH_CANNOT_TELL, "NIC %s has no registers of PCI Express", pci);
    else if (config[at + EXPRESS_CONTROL] & RELAXED)
        gpsh_found(finding, GPSH_OK, "NIC %s may", pci);
    else {
        gpsh_found(finding, GPSH_PROBLEM, "NIC %s may not reorder its writes", pci);
        gpsh_mend(finding,
                  "sudo setpci -s %s CAP_EXP+8.w=0010:0010; for good: mlxconfig -d %s set "
                  "PCI_WR_ORDERING=1",
                  pci, pci);
    }
}

// ---- Links ----

struct link {
    long long lanes, most_lanes;
    double speed, most_speed; // GT/s
};

// A link that is down or virtual says 255 lanes, or none, or "Unknown".
static bool link_read(const struct gpsh_host *host, const char *pci, struct link *link)
{
    char now[64], most[64];
    if (gpsh_host_number(host, &link->lanes, "sys/bus/pci/devices/%s/current_link_width", pci) ||
        gpsh_host_number(host, &link->most_lanes, "sys/bus/pci/devices/%s/max_link_width", pci) ||
        gpsh_host_read(host, now, sizeof now, "sys/bus/pci/devices/%s/current_link_speed", pci) <
            0 ||
        gpsh_host_read(host, most, sizeof most, "sys/bus/pci/devices/%s/max_link_speed", pci) < 0)
        return false;
    link->speed = strtod(now, NULL);
    link->most_speed = strtod(most, NULL);
    return link->lanes > 0 && link->lanes <= 32 && link->most_lanes <= 32 && link->speed > 0 &&
           link->most_speed > 0;
}

GPSH_CHECK_FUNCTION(link)
{
    const char *pci = item->pci;
    bool gpu = item->gpu;
    struct link link;
    const char *kind = gpu ? "GPU" : "NIC";
    if (!link_read(host, pci, &link))
        gpsh_found(finding, GPSH_CANNOT_TELL, "the link of %s %s does not tell", kind, pci);
    else if (link.lanes < link.most_lanes)
        gpsh_found(finding, GPSH_PROBLEM, "%s %s has x%d of x%d lanes", kind, pci, (int)link.lanes,
                   (int)link.most_lanes);
    else if (link.speed < link.most_speed && gpu)
        gpsh_found(finding, GPSH_CANNOT_TELL,
                   "GPU %s runs its lanes at %g of %g GT/s, as an idle one may", pci, link.speed,
                   link.most_speed);
    else if (link.speed < link.most_speed)
        gpsh_found(finding, GPSH_PROBLEM, "NIC %s runs its lanes at %g of %g GT/s", pci, link.speed,
                   link.most_speed);
    else
        gpsh_found(finding, GPSH_OK, "%s %s x%d at %g GT/s", kind, pci, (int)link.lanes,
                   link.speed);
}
