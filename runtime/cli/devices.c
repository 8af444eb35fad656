// SPDX-License-Identifier: BSD-3-Clause
// What `gpushmem info` says of the machine: what `gpushmem topo` has read of it.
#include <infiniband/verbs.h>
#include <stdio.h>
#include <unistd.h>

#include "commands.h"
#include "doctor/host.h"
#include "gpu/gpu_driver.h"
#include "gpushmem/gpushmem.h"
#include "page.h"
#include "table.h"
#include "topo/topo.h"

enum { MOST_GPUS = 16, PORT_COLUMNS = 6 };
_Static_assert(MOST_GPUS + PORT_COLUMNS <= GPSH_TABLE_COLUMNS, "a column for each GPU");

// "x16", or "x8 of x16" in a slot, or behind a bad contact, that gives less than the device could
// take.
static void add_lanes(struct gpsh_table *table, const char *pci)
{
    static const struct gpsh_host here = {.root = "", .live = true};
    long long now, most;
    if (!pci[0] ||
        gpsh_host_number(&here, &now, "sys/bus/pci/devices/%s/current_link_width", pci) ||
        now < 1 || now > 32)
        gpsh_table_add(table, "-");
    else if (!gpsh_host_number(&here, &most, "sys/bus/pci/devices/%s/max_link_width", pci) &&
             most > now && most <= 32)
        gpsh_table_add(table, "x%d of x%d", (int)now, (int)most);
    else
        gpsh_table_add(table, "x%d", (int)now);
}

static void add_gpudirect(struct gpsh_table *table, int gpu)
{
    int dmabuf = 0;
    gpsh_cu_device device;
    bool peer_memory =
        !access("/sys/module/nvidia_peermem", F_OK) || !access("/sys/module/nv_peer_mem", F_OK);
    if (!gpsh_cu.device_get(&device, gpu))
        gpsh_cu.device_attribute(&dmabuf, GPSH_CU_ATTRIBUTE_DMA_BUF, device);
    gpsh_table_add(table, "%s%s%s", dmabuf ? "dma-buf" : "", dmabuf && peer_memory ? ", " : "",
                   peer_memory ? "nvidia-peermem"
                   : dmabuf    ? ""
                               : "none: staged");
}

static void print_gpus(const struct gpsh_topo *topo, int n)
{
    struct gpsh_table table = {.columns = 5};
    if (!n) {
        gpsh_page_field("GPUs", "none (%s); kernels run on CPU threads", gpushmem_last_error());
        return;
    }
    printf("CUDA driver   %d.%d\n\n", gpsh_gpu_driver_version() / 1000,
           gpsh_gpu_driver_version() % 1000 / 10);
    gpsh_table_add_words(&table, "GPU|name|PCI address|lanes|GPUDirect by");
    for (int i = 0; i < n; i++) {
        const struct gpsh_topo_device *gpu = &topo->gpus[i].device;
        gpsh_table_add(&table, "%d", i);
        gpsh_table_add(&table, "%s", gpu->name[0] ? gpu->name : "unknown");
        gpsh_table_add(&table, "%s", gpu->pci);
        add_lanes(&table, gpu->pci);
        add_gpudirect(&table, i);
    }
    gpsh_table_print(&table);
}

static void add_port(struct gpsh_table *table, const struct gpsh_topo *topo, int number, int n_gpus)
{
    static const char *const states[] = {[IBV_PORT_DOWN] = "down",
                                         [IBV_PORT_INIT] = "no subnet manager yet",
                                         [IBV_PORT_ARMED] = "armed",
                                         [IBV_PORT_ACTIVE] = "active"};
    const struct gpsh_topo_port *port = &topo->ports[number];
    const char *pci = port->device.pci;
    if (!port->state) {
        gpsh_table_add(table, "%s", port->device.name);
        gpsh_table_add(table, "cannot be opened: may this user open /dev/infiniband/uverbs*?");
        while (table->n % table->columns)
            gpsh_table_add(table, "%s", "");
        return;
    }
    gpsh_table_add(table, "%s:%d", port->device.name, port->number);
    gpsh_table_add(table, "%s", port->ethernet ? "RoCE" : "InfiniBand");
    gpsh_table_add(table, "%s", port->state <= IBV_PORT_ACTIVE ? states[port->state] : "unknown");
    gpsh_table_add(table, port->rate > 0 ? "%g Gb/s" : "-", port->rate / 1000.0);
    gpsh_table_add(table, "%s", pci[0] ? pci : "-");
    add_lanes(table, pci);
    for (int i = 0; i < n_gpus; i++) {
        char word[16] = "?";
        if (topo->topology)
            gpsh_topo_between(topo, i, topo->n_gpus + number, word, sizeof word);
        gpsh_table_add(table, "%s", word);
    }
}

static void print_ports(const struct gpsh_topo *topo, int n_gpus)
{
    struct gpsh_table table = {.columns = PORT_COLUMNS + n_gpus};
    if (!topo->n_ports) {
        printf("RDMA devices  none\n");
        return;
    }
    printf("\n");
    gpsh_table_add_words(&table, "RDMA port|link|state|rate|PCI address|lanes");
    for (int i = 0; i < n_gpus; i++)
        gpsh_table_add(&table, "GPU %d", i);
    for (int i = 0; i < topo->n_ports; i++)
        add_port(&table, topo, i, n_gpus);
    gpsh_table_print(&table);
    if (n_gpus)
        printf("\nBetween port and GPU: PIX a PCIe switch, PXB several, PHB a host bridge, NODE "
               "bridges of one NUMA node, SYS\n"
               "the link between sockets. What a job makes of them:\n"
               "GPUSHMEM_TRANSPORTS=verbs gpushmem run -n 2 gpushmem info --peers\n");
}

void gpsh_cli_print_devices(void)
{
    static struct gpsh_topo topo;
    gpsh_topo_ask(&topo);
    if (gpsh_topology_open(NULL, &topo.topology))
        topo.topology = NULL;
    int n_gpus = gpsh_cli_gpus();
    n_gpus = n_gpus < MOST_GPUS ? n_gpus : MOST_GPUS;
    print_gpus(&topo, n_gpus);
    print_ports(&topo, n_gpus);
    gpsh_topo_clear(&topo);
}
