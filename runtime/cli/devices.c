// SPDX-License-Identifier: BSD-3-Clause

#include <ctype.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "core/error.h"
#include "core/nic_choice.h"
#include "core/topology.h"
#include "gpu/gpu_driver.h"
#include "gpushmem/gpushmem.h"
#include "page.h"
#include "table.h"

enum { MOST_GPUS = 16, PCI_BYTES = 32 };
_Static_assert(MOST_GPUS + 6 <= GPSH_TABLE_COLUMNS, "a column for each GPU");

struct machine {
    struct gpsh_topology *topology; // NULL if hwloc cannot tell
    int n_gpus;
    char gpu_pci[MOST_GPUS][PCI_BYTES];
};

int gpsh_cli_gpus(void)
{
    int n = 0;
    if (gpsh_gpu_load_driver())
        return 0;
    if (gpsh_cu.device_count(&n) || n == 0)
        gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED, "the CUDA driver finds no GPU");
    return n;
}

static bool read_number(const char *pci, const char *file, int *value)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", pci, file);
    FILE *in = fopen(path, "re");
    bool good = in && fscanf(in, "%d", value) == 1;
    if (in)
        fclose(in);
    return good;
}

// "x16", or "x8 of x16" in a slot, or behind a bad contact, that gives less than the device could
// take.
static void add_lanes(struct gpsh_table *table, const char *pci)
{
    int now, most;
    if (!pci[0] || !read_number(pci, "current_link_width", &now) || now < 1 || now > 32)
        gpsh_table_add(table, "-");
    else if (read_number(pci, "max_link_width", &most) && most > now && most <= 32)
        gpsh_table_add(table, "x%d of x%d", now, most);
    else
        gpsh_table_add(table, "x%d", now);
}

static bool has_peer_memory(void)
{
    return !access("/sys/module/nvidia_peermem", F_OK) || !access("/sys/module/nv_peer_mem", F_OK);
}

static void add_gpudirect(struct gpsh_table *table, gpsh_cu_device device)
{
    int dmabuf = 0;
    gpsh_cu.device_attribute(&dmabuf, GPSH_CU_ATTRIBUTE_DMA_BUF, device);
    bool peer_memory = has_peer_memory();
    gpsh_table_add(table, "%s%s%s", dmabuf ? "dma-buf" : "", dmabuf && peer_memory ? ", " : "",
                   peer_memory ? "nvidia-peermem"
                   : dmabuf    ? ""
                               : "none: staged");
}

static void print_gpus(struct machine *machine)
{
    struct gpsh_table table = {.columns = 5};
    int n = gpsh_cli_gpus();
    if (!n) {
        gpsh_page_field("GPUs", "none (%s); kernels run on CPU threads", gpushmem_last_error());
        return;
    }
    printf("CUDA driver   %d.%d\n\n", gpsh_gpu_driver_version() / 1000,
           gpsh_gpu_driver_version() % 1000 / 10);
    gpsh_table_add_words(&table, "GPU|name|PCI address|lanes|GPUDirect by");
    for (int i = 0; i < n && i < MOST_GPUS; i++) {
        char name[96] = "unknown", *pci = machine->gpu_pci[i];
        gpsh_cu_device device;
        machine->n_gpus = i + 1;
        if (gpsh_cu.device_get(&device, i))
            continue;
        gpsh_cu.device_name(name, sizeof name, device);
        if (gpsh_cu.device_pci(pci, PCI_BYTES, device))
            pci[0] = '\0';
        for (char *c = pci; *c; c++) // as in sysfs
            *c = (char)tolower((unsigned char)*c);
        gpsh_table_add(&table, "%d", i);
        gpsh_table_add(&table, "%s", name);
        gpsh_table_add(&table, "%s", pci);
        add_lanes(&table, pci);
        add_gpudirect(&table, device);
    }
    gpsh_table_print(&table);
}

static double rate_gbps(const struct ibv_port_attr *port)
{
    return gpsh_nic_rate(port->active_speed, port->active_width) / 1000.0;
}

static const char *state_word(enum ibv_port_state state)
{
    switch (state) {
    case IBV_PORT_ACTIVE: return "active";
    case IBV_PORT_DOWN: return "down";
    case IBV_PORT_INIT: return "no subnet manager yet";
    case IBV_PORT_ARMED: return "armed";
    default: return "unknown";
    }
}

static void add_port(struct gpsh_table *table, const struct machine *machine,
                     struct ibv_context *context, int number)
{
    struct ibv_port_attr port;
    char pci[PCI_BYTES];
    if (ibv_query_port(context, (uint8_t)number, &port))
        return;
    gpsh_topology_pci_of(context->device->ibdev_path, pci, sizeof pci);
    gpsh_table_add(table, "%s:%d", ibv_get_device_name(context->device), number);
    gpsh_table_add(table, "%s", port.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand");
    gpsh_table_add(table, "%s", state_word(port.state));
    gpsh_table_add(table, rate_gbps(&port) > 0 ? "%g Gb/s" : "-", rate_gbps(&port));
    gpsh_table_add(table, "%s", pci[0] ? pci : "-");
    add_lanes(table, pci);
    for (int i = 0; i < machine->n_gpus; i++)
        gpsh_table_add(table, "%s",
                       machine->topology ? gpsh_distance_name(gpsh_topology_between(
                                               machine->topology, machine->gpu_pci[i], pci))
                                         : "?");
}

static void add_ports(struct gpsh_table *table, const struct machine *machine,
                      struct ibv_device *device)
{
    struct ibv_device_attr attr;
    struct ibv_context *context = ibv_open_device(device);
    if (!context) {
        gpsh_table_add(table, "%s", ibv_get_device_name(device));
        gpsh_table_add(table, "cannot be opened: may this user open /dev/infiniband/uverbs*?");
        while (table->n % table->columns)
            gpsh_table_add(table, "%s", "");
        return;
    }
    int ports = ibv_query_device(context, &attr) ? 0 : attr.phys_port_cnt;
    for (int number = 1; number <= ports; number++)
        add_port(table, machine, context, number);
    ibv_close_device(context);
}

static void print_ports(struct machine *machine)
{
    int n = 0;
    struct ibv_device **devices = ibv_get_device_list(&n);
    struct gpsh_table table = {.columns = 6 + machine->n_gpus};
    if (!devices || !n) {
        printf("RDMA devices  none\n");
    } else {
        printf("\n");
        gpsh_table_add_words(&table, "RDMA port|link|state|rate|PCI address|lanes");
        for (int i = 0; i < machine->n_gpus; i++)
            gpsh_table_add(&table, "GPU %d", i);
        for (int i = 0; i < n; i++)
            add_ports(&table, machine, devices[i]);
        gpsh_table_print(&table);
    }
    if (machine->n_gpus && n)
        printf("\nBetween port and GPU: PIX a PCIe switch, PXB several, PHB a host bridge, NODE "
               "bridges of one NUMA node, SYS\n"
               "the link between sockets. What a job makes of them:\n"
               "GPUSHMEM_TRANSPORTS=verbs gpushmem run -n 2 gpushmem info --peers\n");
    if (devices)
        ibv_free_device_list(devices);
}

void gpsh_cli_print_devices(void)
{
    struct machine machine = {.topology = NULL};
    if (gpsh_topology_open(NULL, &machine.topology))
        machine.topology = NULL;
    print_gpus(&machine);
    print_ports(&machine);
    gpsh_topology_close(machine.topology);
}
