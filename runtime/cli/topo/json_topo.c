// SPDX-License-Identifier: BSD-3-Clause
#include "json.h"
#include "topo/topo.h"

static void device_write(struct gpsh_json *json, const struct gpsh_topo_device *device)
{
    gpsh_json_text(json, "pci", device->pci[0] ? device->pci : NULL);
    gpsh_json_text(json, "cpus", device->cpus[0] ? device->cpus : NULL);
    gpsh_json_text(json, "numa", device->nodes[0] ? device->nodes : NULL);
}

static void choice_write(struct gpsh_json *json, const struct gpsh_topo_view *view, int gpu)
{
    const struct gpsh_topo *topo = &view->machine;
    gpsh_json_list(json, "uses");
    for (int i = 0; i < view->choices[gpu].n; i++) {
        char name[GPSH_TOPO_NAME_BYTES + 16];
        gpsh_topo_port_name(&topo->ports[view->choices[gpu].ports[i]], name, sizeof name);
        gpsh_json_text(json, NULL, name);
    }
    gpsh_json_end(json);
    gpsh_json_text(json, "why", view->choices[gpu].why);
}

// To every device, by the names that the lists have.
static void distances_write(struct gpsh_json *json, const struct gpsh_topo *topo, int from)
{
    gpsh_json_object(json, "to");
    for (int to = 0; to < topo->n_gpus + topo->n_ports; to++) {
        char name[GPSH_TOPO_NAME_BYTES + 16], word[16];
        int port = to - topo->n_gpus;
        if (port < 0)
            snprintf(name, sizeof name, "GPU%d", to);
        else
            gpsh_topo_port_name(&topo->ports[port], name, sizeof name);
        gpsh_topo_between(topo, from, to, word, sizeof word);
        gpsh_json_text(json, name, word);
    }
    gpsh_json_end(json);
}

static void port_write(struct gpsh_json *json, const struct gpsh_topo *topo, int i)
{
    const struct gpsh_topo_port *port = &topo->ports[i];
    gpsh_json_object(json, NULL);
    gpsh_json_text(json, "device", port->device.name);
    gpsh_json_integer(json, "port", port->number);
    gpsh_json_text(json, "link", port->ethernet ? "RoCE" : "InfiniBand");
    if (port->rate)
        gpsh_json_number(json, "rate_gbps", port->rate / 1000.0);
    else
        gpsh_json_text(json, "rate_gbps", NULL);
    gpsh_json_text(json, "why_not", port->why_not[0] ? port->why_not : NULL);
    device_write(json, &port->device);
    distances_write(json, topo, topo->n_gpus + i);
    gpsh_json_end(json);
}

void gpsh_topo_print_json(const struct gpsh_topo_view *view)
{
    const struct gpsh_topo *topo = &view->machine;
    struct gpsh_json json = {.out = stdout};
    gpsh_json_object(&json, NULL);
    gpsh_json_text(&json, "file", topo->file);
    gpsh_json_list(&json, "gpus");
    for (int i = 0; i < topo->n_gpus; i++) {
        gpsh_json_object(&json, NULL);
        gpsh_json_integer(&json, "gpu", i);
        gpsh_json_text(&json, "name", topo->gpus[i].device.name);
        device_write(&json, &topo->gpus[i].device);
        distances_write(&json, topo, i);
        choice_write(&json, view, i);
        gpsh_json_end(&json);
    }
    gpsh_json_end(&json);
    gpsh_json_list(&json, "ports");
    for (int i = 0; i < topo->n_ports; i++)
        port_write(&json, topo, i);
    gpsh_json_end(&json);
    gpsh_json_end(&json);
}
