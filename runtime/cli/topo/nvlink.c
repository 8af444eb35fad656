// SPDX-License-Identifier: BSD-3-Clause
// NVML's names and values: "NVML API Reference Guide", NVIDIA. hwloc's: <hwloc/distances.h>.

#include <dlfcn.h>
#include <hwloc.h>
#include <hwloc/distances.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "topo/topo.h"

// Links of each GPU: to other GPUs, and to switches. Any two GPUs with links to switches reach each
// other through them.
struct links {
    int direct[GPSH_TOPO_GPUS][GPSH_TOPO_GPUS];
    int by_switch[GPSH_TOPO_GPUS];
};

static void links_store(const struct links *links, struct gpsh_topo *topo)
{
    for (int a = 0; a < topo->n_gpus; a++)
        for (int b = 0; b < topo->n_gpus; b++) {
            int switched = links->by_switch[a] < links->by_switch[b] ? links->by_switch[a]
                                                                     : links->by_switch[b];
            int n = links->direct[a][b] ? links->direct[a][b] : switched;
            topo->nvlinks[a][b] = (uint8_t)(a == b ? 0 : n < 255 ? n : 255);
        }
}

static int gpu_at(const struct gpsh_topo *topo, const char *pci)
{
    // NVML writes eight digits of the domain, sysfs four
    if (strlen(pci) > 12)
        pci += strlen(pci) - 12;
    for (int i = 0; i < topo->n_gpus; i++)
        if (!strcasecmp(topo->gpus[i].device.pci, pci))
            return i;
    return -1;
}

// ---- This machine ----

enum { MOST_LINKS = 36, NVML_ENABLED = 1, NVML_REMOTE_SWITCH = 2 };

struct nvml_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

static struct {
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_pci)(const char *pci, void **device);
    int (*link_state)(void *device, unsigned link, int *active);
    int (*link_remote)(void *device, unsigned link, struct nvml_pci *pci);
    int (*link_remote_type)(void *device, unsigned link, int *type); // from driver 470 on
} nvml;

static int nvml_load(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    const struct {
        void **function;
        const char *name;
    } names[] = {{(void **)&nvml.init, "nvmlInit_v2"},
                 {(void **)&nvml.shutdown, "nvmlShutdown"},
                 {(void **)&nvml.by_pci, "nvmlDeviceGetHandleByPciBusId_v2"},
                 {(void **)&nvml.link_state, "nvmlDeviceGetNvLinkState"},
                 {(void **)&nvml.link_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2"},
                 {(void **)&nvml.link_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType"}};
    for (size_t i = 0; library && i < sizeof names / sizeof *names; i++)
        if (!(*names[i].function = dlsym(library, names[i].name)))
            library = NULL;
    return library && !nvml.init() ? 0 : -1;
}

static void nvml_links_of(const struct gpsh_topo *topo, int gpu, struct links *links)
{
    void *device;
    if (nvml.by_pci(topo->gpus[gpu].device.pci, &device))
        return;
    for (unsigned link = 0; link < MOST_LINKS; link++) {
        int active = 0, type = 0, other;
        struct nvml_pci pci = {.bus_id = ""};
        if (nvml.link_state(device, link, &active) || active != NVML_ENABLED)
            continue;
        if (!nvml.link_remote_type(device, link, &type) && type == NVML_REMOTE_SWITCH)
            links->by_switch[gpu]++;
        else if (!nvml.link_remote(device, link, &pci) && (other = gpu_at(topo, pci.bus_id)) >= 0)
            links->direct[gpu][other]++;
    }
}

static void nvml_read(const struct gpsh_topo *topo, struct links *links)
{
    if (nvml_load())
        return;
    for (int i = 0; i < topo->n_gpus; i++)
        nvml_links_of(topo, i, links);
    nvml.shutdown();
}

// ---- A recorded one ----

// hwloc records MB/s, 25,000 for each link, 20,000 on the first generation.
static int links_in(hwloc_uint64_t bandwidth)
{
    hwloc_uint64_t each = bandwidth % 25000 == 0 ? 25000 : 20000;
    return bandwidth / each < 255 ? (int)(bandwidth / each) : 255;
}

static int gpu_of_object(const struct gpsh_topo *topo, hwloc_obj_t object)
{
    char pci[GPSH_TOPO_PCI_BYTES];
    while (object && object->type != HWLOC_OBJ_PCI_DEVICE)
        object = object->parent;
    if (!object)
        return -1;
    gpsh_topo_pci(&object->attr->pcidev, pci);
    return gpu_at(topo, pci);
}

static void matrix_read(const struct gpsh_topo *topo, const struct hwloc_distances_s *matrix,
                        struct links *links)
{
    for (unsigned row = 0; row < matrix->nbobjs; row++) {
        int gpu = gpu_of_object(topo, matrix->objs[row]);
        for (unsigned column = 0; gpu >= 0 && column < matrix->nbobjs; column++) {
            int n = links_in(matrix->values[row * matrix->nbobjs + column]);
            int other = gpu_of_object(topo, matrix->objs[column]);
            if (row == column)
                continue;
            if (other >= 0)
                links->direct[gpu][other] = n;
            else
                links->by_switch[gpu] += n;
        }
    }
}

static void recorded_read(const struct gpsh_topo *topo, struct links *links)
{
    hwloc_topology_t hwloc = gpsh_topology_hwloc(topo->topology);
    struct hwloc_distances_s *matrix;
    unsigned n = 1;
    if (hwloc_distances_get_by_name(hwloc, "NVLinkBandwidth", &n, &matrix, 0) || !n)
        return;
    matrix_read(topo, matrix, links);
    hwloc_distances_release(hwloc, matrix);
}

void gpsh_nvlinks_read(struct gpsh_topo *topo)
{
    static struct links links;
    if (topo->n_gpus < 2)
        return;
    if (topo->file)
        recorded_read(topo, &links);
    else
        nvml_read(topo, &links);
    links_store(&links, topo);
}
