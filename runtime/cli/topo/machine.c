// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // setenv, strnlen, strverscmp
#include <ctype.h>
#include <hwloc.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "core/error.h"
#include "core/nic_choice.h"
#include "core/topology.h"
#include "gpu/gpu_driver.h"
#include "gpushmem/gpushmem.h"
#include "probe.h"
#include "say.h"
#include "topo/topo.h"

// ---- A file that is tried first ----

enum { LOADED = 0, REFUSED = 3 };

static int file_load(const void *xml_file)
{
    struct gpsh_topology *topology;
    const struct rlimit none = {.rlim_cur = 0};
    setrlimit(RLIMIT_CORE, &none);
    setenv("HWLOC_HIDE_ERRORS", "1", 1);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    return gpsh_topology_open(xml_file, &topology) ? REFUSED : LOADED;
}

// The first line that says something: hwloc frames what it prints with asterisks.
static void words_warn(const char *xml_file, char *words)
{
    for (char *line = strtok(words, "\n"); line; line = strtok(NULL, "\n")) {
        line += strspn(line, "* ");
        if (!isalpha((unsigned char)*line))
            continue;
        gpsh_cli_say("topo", "%s may be shown wrongly: %s", xml_file, line);
        return;
    }
}

// A recorded machine that somebody edited, or that was cut and joined, can end the process that
// hwloc loads it in. So a process of its own loads it first; what hwloc printed there about a file
// that it takes all the same becomes one warning. There are no threads yet.
static int file_try(const char *xml_file)
{
    struct gpsh_probe probe;
    int error = gpsh_probe_run(&probe, file_load, xml_file, 0);
    if (error)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "cannot start a process: %s", strerror(error));
    if (WIFEXITED(probe.status) && WEXITSTATUS(probe.status) == REFUSED)
        return 0; // whoever loads it next is told why, and says so
    if (probe.status)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                         "hwloc cannot load the topology of %s: it dies of it, so the file is "
                         "damaged; record it anew with lstopo",
                         xml_file);
    words_warn(xml_file, probe.words);
    return 0;
}

enum {
    VENDOR_NVIDIA = 0x10de,
    VENDOR_MELLANOX = 0x15b3,
    CLASS_DISPLAY = 0x03,
    CLASS_ETHERNET = 0x0200,
    CLASS_INFINIBAND = 0x0207,
};

static void text_copy(char *to, size_t bytes, const char *text)
{
    size_t length = text ? strnlen(text, bytes - 1) : 0;
    if (length)
        memcpy(to, text, length);
    to[length] = '\0';
}

void gpsh_topo_pci(const struct hwloc_pcidev_attr_s *pci, char text[GPSH_TOPO_PCI_BYTES])
{
    snprintf(text, GPSH_TOPO_PCI_BYTES, "%04x:%02x:%02x.%x", pci->domain, pci->bus, pci->dev,
             pci->func);
}

// ---- What is near a device ----

// NUMA nodes that have no processors of their own are the memory of GPUs.
static void nodes_print(hwloc_topology_t hwloc, hwloc_const_bitmap_t nodeset, char *text,
                        size_t bytes)
{
    hwloc_bitmap_t nodes = hwloc_bitmap_dup(nodeset);
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, o));)
        if (hwloc_bitmap_iszero(o->cpuset) || (o->subtype && !strcmp(o->subtype, "GPUMemory")))
            hwloc_bitmap_clr(nodes, o->os_index);
    hwloc_bitmap_list_snprintf(text, bytes, nodes);
    hwloc_bitmap_free(nodes);
}

static void place_fill(const struct gpsh_topo *topo, struct gpsh_topo_device *device)
{
    hwloc_topology_t hwloc = gpsh_topology_hwloc(topo->topology);
    hwloc_obj_t pci = device->pci[0] ? hwloc_get_pcidev_by_busidstring(hwloc, device->pci) : NULL;
    hwloc_obj_t home = pci ? hwloc_get_non_io_ancestor_obj(hwloc, pci) : NULL;
    if (!home)
        return;
    hwloc_bitmap_list_snprintf(device->cpus, sizeof device->cpus, home->cpuset);
    nodes_print(hwloc, home->nodeset, device->nodes, sizeof device->nodes);
}

// ---- GPUs ----

int gpsh_cli_gpus(void)
{
    int n = 0;
    if (gpsh_gpu_load_driver())
        return 0;
    if (gpsh_cu.device_count(&n) || n == 0)
        gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED, "the CUDA driver finds no GPU");
    return n;
}

static struct gpsh_topo_device *gpu_add(struct gpsh_topo *topo)
{
    return topo->n_gpus < GPSH_TOPO_GPUS ? &topo->gpus[topo->n_gpus++].device : NULL;
}

// In the order of the CUDA driver, by which PEs of a node get their GPUs.
static void gpus_ask_driver(struct gpsh_topo *topo)
{
    int n = gpsh_cli_gpus();
    for (int i = 0; i < n; i++) {
        gpsh_cu_device number;
        struct gpsh_topo_device *device = gpu_add(topo);
        if (!device || gpsh_cu.device_get(&number, i))
            continue;
        gpsh_cu.device_name(device->name, sizeof device->name, number);
        if (gpsh_cu.device_pci(device->pci, sizeof device->pci, number))
            device->pci[0] = '\0';
        for (char *c = device->pci; *c; c++) // as in sysfs
            *c = (char)tolower((unsigned char)*c);
    }
}

static void gpus_find(struct gpsh_topo *topo)
{
    hwloc_topology_t hwloc = gpsh_topology_hwloc(topo->topology);
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_pcidev(hwloc, o));) {
        const struct hwloc_pcidev_attr_s *pci = &o->attr->pcidev;
        if (pci->vendor_id != VENDOR_NVIDIA || pci->class_id >> 8 != CLASS_DISPLAY)
            continue;
        struct gpsh_topo_device *device = gpu_add(topo);
        if (!device)
            return;
        gpsh_topo_pci(pci, device->pci);
        text_copy(device->name, sizeof device->name, hwloc_obj_get_info_by_name(o, "PCIDevice"));
    }
}

// ---- Ports ----

static struct gpsh_topo_port *port_add(struct gpsh_topo *topo)
{
    return topo->n_ports < GPSH_TOPO_PORTS ? &topo->ports[topo->n_ports++] : NULL;
}

// Of this network namespace; none, and packets cannot leave by a RoCE port.
static bool port_has_address(struct ibv_context *context, int number,
                             const struct ibv_port_attr *attr)
{
    char name[IF_NAMESIZE];
    struct ibv_gid_entry entry;
    for (int i = 0; i < attr->gid_tbl_len; i++)
        if (!ibv_query_gid_ex(context, (uint32_t)number, (uint32_t)i, &entry, 0) &&
            (entry.gid.global.subnet_prefix || entry.gid.global.interface_id) &&
            (!entry.ndev_ifindex || if_indextoname(entry.ndev_ifindex, name)))
            return true;
    return false;
}

static void port_take(struct gpsh_topo_port *port, struct ibv_context *context,
                      const struct ibv_port_attr *attr)
{
    port->rate = gpsh_nic_rate(attr->active_speed, attr->active_width);
    port->ethernet = attr->link_layer == IBV_LINK_LAYER_ETHERNET;
    port->state = (int)attr->state;
    if (attr->state != IBV_PORT_ACTIVE)
        snprintf(port->why_not, sizeof port->why_not, "is %s", ibv_port_state_str(attr->state));
    else if (port->ethernet && !port_has_address(context, port->number, attr))
        text_copy(port->why_not, sizeof port->why_not, "has no RoCE GID (gpushmem doctor gid)");
}

static void ports_of_device(struct gpsh_topo *topo, struct ibv_device *device)
{
    struct ibv_device_attr attr;
    struct gpsh_topo_port port = {.number = 1};
    struct ibv_context *context = ibv_open_device(device);
    text_copy(port.device.name, sizeof port.device.name, ibv_get_device_name(device));
    gpsh_topology_pci_of(device->ibdev_path, port.device.pci, sizeof port.device.pci);
    int n = context && !ibv_query_device(context, &attr) ? attr.phys_port_cnt : 0;
    for (int i = 0; i < (n ? n : 1); i++) {
        struct ibv_port_attr port_attr;
        struct gpsh_topo_port *added = port_add(topo);
        if (!added)
            break;
        *added = port;
        added->number = i + 1;
        if (n && !ibv_query_port(context, (uint8_t)(i + 1), &port_attr))
            port_take(added, context, &port_attr);
        else
            text_copy(added->why_not, sizeof added->why_not, "cannot be opened by this user");
    }
    if (context)
        ibv_close_device(context);
}

static void ports_ask_verbs(struct gpsh_topo *topo)
{
    int n = 0;
    struct ibv_device **devices = ibv_get_device_list(&n);
    for (int i = 0; devices && i < n; i++)
        ports_of_device(topo, devices[i]);
    if (devices)
        ibv_free_device_list(devices);
}

// hwloc records "Port1State" and no rate. To add one: hwloc-annotate in.xml out.xml
// os:mlx5_0 info Port1Rate "400 Gb/s"
static const char *port_info(hwloc_obj_t device, int number, const char *what)
{
    char name[32];
    snprintf(name, sizeof name, "Port%d%s", number, what);
    return hwloc_obj_get_info_by_name(device, name);
}

static void port_take_recorded(struct gpsh_topo_port *port, hwloc_obj_t device, bool has_driver)
{
    const char *state = device ? port_info(device, port->number, "State") : NULL;
    const char *rate = device ? port_info(device, port->number, "Rate") : NULL;
    double gbps = rate ? strtod(rate, NULL) : 0;
    port->rate = gbps > 0 && gbps < 100000 ? (int)(gbps * 1000) : 0;
    if (state && atoi(state) != IBV_PORT_ACTIVE)
        text_copy(port->why_not, sizeof port->why_not, "is not active");
    if (!has_driver)
        text_copy(port->why_not, sizeof port->why_not, "is no verbs device");
}

static void ports_of_pci(struct gpsh_topo *topo, hwloc_obj_t pci, hwloc_obj_t os_device,
                         bool has_driver)
{
    int n = 1;
    while (os_device && n < 8 && port_info(os_device, n + 1, "State"))
        n++;
    for (int number = 1; number <= n; number++) {
        struct gpsh_topo_port *port = port_add(topo);
        if (!port)
            return;
        port->number = os_device ? number : 0;
        port->ethernet = pci->attr->pcidev.class_id == CLASS_ETHERNET;
        gpsh_topo_pci(&pci->attr->pcidev, port->device.pci);
        text_copy(port->device.name, sizeof port->device.name,
                  os_device ? os_device->name : port->device.pci);
        port_take_recorded(port, os_device, has_driver);
    }
}

static hwloc_obj_t verbs_child(hwloc_obj_t pci)
{
    for (hwloc_obj_t o = pci->io_first_child; o; o = o->next_sibling)
        if (o->type == HWLOC_OBJ_OS_DEVICE && o->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
            return o;
    return NULL;
}

static bool is_nic(const struct hwloc_pcidev_attr_s *pci)
{
    return pci->class_id == CLASS_INFINIBAND ||
           (pci->class_id == CLASS_ETHERNET && pci->vendor_id == VENDOR_MELLANOX);
}

static int ports_order(const void *a, const void *b)
{
    const struct gpsh_topo_port *x = a, *y = b;
    int by_name = strverscmp(x->device.name, y->device.name);
    return by_name ? by_name : x->number - y->number;
}

// NICs that have a verbs device; without any, those that could have one.
static void ports_find(struct gpsh_topo *topo)
{
    hwloc_topology_t hwloc = gpsh_topology_hwloc(topo->topology);
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_pcidev(hwloc, o));)
        if (verbs_child(o))
            ports_of_pci(topo, o, verbs_child(o), true);
    qsort(topo->ports, (size_t)topo->n_ports, sizeof topo->ports[0], ports_order);
    if (topo->n_ports)
        return;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_pcidev(hwloc, o));)
        if (is_nic(&o->attr->pcidev))
            ports_of_pci(topo, o, NULL, topo->file != NULL);
}

// ---- All of it ----

void gpsh_topo_ask(struct gpsh_topo *topo)
{
    gpus_ask_driver(topo);
    ports_ask_verbs(topo);
}

int gpsh_topo_read(const char *xml_file, struct gpsh_topo *topo)
{
    *topo = (struct gpsh_topo){.file = xml_file};
    int status = xml_file ? file_try(xml_file) : 0;
    if (!status)
        status = gpsh_topology_open(xml_file, &topo->topology);
    if (status)
        return status;
    if (!xml_file)
        gpsh_topo_ask(topo);
    if (!topo->n_gpus) {
        topo->without_driver = !xml_file;
        gpus_find(topo);
    }
    if (!topo->n_ports)
        ports_find(topo);
    for (int i = 0; i < topo->n_gpus; i++)
        place_fill(topo, &topo->gpus[i].device);
    for (int i = 0; i < topo->n_ports; i++)
        place_fill(topo, &topo->ports[i].device);
    return 0;
}

void gpsh_topo_clear(struct gpsh_topo *topo)
{
    gpsh_topology_close(topo->topology);
    topo->topology = NULL;
}

void gpsh_topo_port_name(const struct gpsh_topo_port *port, char *name, size_t bytes)
{
    if (port->number)
        snprintf(name, bytes, "%s:%d", port->device.name, port->number);
    else
        snprintf(name, bytes, "%s", port->device.name);
}

bool gpsh_topo_port_repeats(const struct gpsh_topo *topo, int port)
{
    return port > 0 && !strcmp(topo->ports[port].device.name, topo->ports[port - 1].device.name);
}

const struct gpsh_topo_device *gpsh_topo_device(const struct gpsh_topo *topo, int number)
{
    return number < topo->n_gpus ? &topo->gpus[number].device
                                 : &topo->ports[number - topo->n_gpus].device;
}

void gpsh_topo_between(const struct gpsh_topo *topo, int a, int b, char *word, size_t bytes)
{
    bool gpus = a < topo->n_gpus && b < topo->n_gpus;
    if (a == b)
        snprintf(word, bytes, "X");
    else if (gpus && topo->nvlinks[a][b])
        snprintf(word, bytes, "NV%d", topo->nvlinks[a][b]);
    else
        snprintf(
            word, bytes, "%s",
            gpsh_distance_name(gpsh_topology_between(topo->topology, gpsh_topo_device(topo, a)->pci,
                                                     gpsh_topo_device(topo, b)->pci)));
}
