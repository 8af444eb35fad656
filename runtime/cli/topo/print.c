// SPDX-License-Identifier: BSD-3-Clause
// The machine as text: a matrix like that of nvidia-smi, the ports, and what each GPU uses.
#include <string.h>

#include "core/text.h"
#include "json.h"
#include "page.h"
#include "table.h"
#include "topo/topo.h"

enum { MOST_ROWS = GPSH_TOPO_GPUS + GPSH_TOPO_PORTS, HEAD = 12, GAP = 2 };

// The rows and columns of the matrix: devices, each once.
struct axis {
    int n;
    int device[MOST_ROWS];
    char name[MOST_ROWS][GPSH_TOPO_NAME_BYTES];
    int width[MOST_ROWS];
};

static void axis_add(struct axis *axis, int device, const char *name)
{
    int length = (int)strlen(name);
    axis->device[axis->n] = device;
    snprintf(axis->name[axis->n], sizeof axis->name[0], "%s", name);
    axis->width[axis->n++] = length < 4 ? 4 : length;
}

static void axis_fill(const struct gpsh_topo *topo, struct axis *axis)
{
    char name[16];
    for (int i = 0; i < topo->n_gpus; i++) {
        snprintf(name, sizeof name, "GPU%d", i);
        axis_add(axis, i, name);
    }
    for (int i = 0; i < topo->n_ports; i++)
        if (!gpsh_topo_port_repeats(topo, i))
            axis_add(axis, topo->n_gpus + i, topo->ports[i].device.name);
}

static enum gpsh_colour colour_of(const char *word)
{
    if (!strncmp(word, "NV", 2) || !strcmp(word, "PIX"))
        return GPSH_GREEN;
    if (!strcmp(word, "PXB") || !strcmp(word, "PHB"))
        return GPSH_BLUE;
    return !strcmp(word, "NODE") ? GPSH_YELLOW : !strcmp(word, "SYS") ? GPSH_RED : GPSH_DIM;
}

static int head_width(const struct axis *axis)
{
    int width = 0;
    for (int i = 0; i < axis->n; i++)
        width = axis->width[i] > width ? axis->width[i] : width;
    return width;
}

// Columns from `first` on that fit beside the row's name; at least one.
static int columns_fitting(const struct axis *axis, int first)
{
    int room = gpsh_page_columns(), used = head_width(axis), n = 0;
    while (first + n < axis->n &&
           (!room || n == 0 || used + GAP + axis->width[first + n] <= room)) {
        used += GAP + axis->width[first + n];
        n++;
    }
    return n;
}

static void row_print(const struct gpsh_topo *topo, const struct axis *axis, int row, int first,
                      int n)
{
    printf("%-*s", head_width(axis), axis->name[row]);
    for (int column = first; column < first + n; column++) {
        char word[16];
        gpsh_topo_between(topo, axis->device[row], axis->device[column], word, sizeof word);
        // No spaces at the end of a line.
        int pad = column + 1 < first + n ? axis->width[column] - (int)strlen(word) : 0;
        printf("%*s%s%s%s%*s", GAP, "", gpsh_page_colour(colour_of(word)), word,
               gpsh_page_colour(GPSH_PLAIN), pad, "");
    }
    putchar('\n');
}

static void matrix_print(const struct gpsh_topo *topo)
{
    static struct axis axis;
    axis.n = 0;
    axis_fill(topo, &axis);
    for (int first = 0, n; first < axis.n; first += n) {
        n = columns_fitting(&axis, first);
        printf("%s%*s", first ? "\n" : "", head_width(&axis), "");
        for (int i = first; i < first + n; i++)
            printf("%*s%-*s", GAP, "", i + 1 < first + n ? axis.width[i] : 0, axis.name[i]);
        putchar('\n');
        for (int row = 0; row < axis.n; row++)
            row_print(topo, &axis, row, first, n);
    }
}

static const char *or_dash(const char *text)
{
    return text[0] ? text : "-";
}

static void place_add(struct gpsh_table *table, const struct gpsh_topo_device *device)
{
    gpsh_table_add_words(table, or_dash(device->pci));
    gpsh_table_add_words(table, or_dash(device->nodes));
    gpsh_table_add_words(table, or_dash(device->cpus));
}

static void devices_print(const struct gpsh_topo *topo)
{
    struct gpsh_table table = {.columns = 5};
    gpsh_table_add_words(&table, "device|PCI address|NUMA|CPUs|what it is");
    for (int i = 0; i < topo->n_gpus; i++) {
        const struct gpsh_topo_device *d = &topo->gpus[i].device;
        gpsh_table_add(&table, "GPU%d", i);
        place_add(&table, d);
        gpsh_table_add(&table, "%s", d->name[0] ? d->name : "NVIDIA GPU");
    }
    for (int i = 0; i < topo->n_ports; i++) {
        const struct gpsh_topo_port *port = &topo->ports[i];
        char name[GPSH_TOPO_NAME_BYTES + 16];
        gpsh_topo_port_name(port, name, sizeof name);
        gpsh_table_add(&table, "%s", name);
        place_add(&table, &port->device);
        char rate[32] = "rate not recorded";
        if (port->rate)
            snprintf(rate, sizeof rate, "%g Gb/s", port->rate / 1000.0);
        gpsh_table_add(&table, "%s, %s%s%s", port->ethernet ? "RoCE" : "InfiniBand", rate,
                       port->why_not[0] ? ", " : "", port->why_not);
    }
    gpsh_table_print(&table);
}

static void choice_print(const struct gpsh_topo_view *view, int gpu)
{
    const struct gpsh_topo *topo = &view->machine;
    const struct gpsh_topo_choice *choice = &view->choices[gpu];
    char line[1024];
    struct gpsh_text t = {line, sizeof line, 0};
    gpsh_text_add(&t, "GPU%d:", gpu);
    for (int i = 0; i < choice->n; i++) {
        char word[16], name[GPSH_TOPO_NAME_BYTES + 16];
        gpsh_topo_port_name(&topo->ports[choice->ports[i]], name, sizeof name);
        gpsh_topo_between(topo, gpu, topo->n_gpus + choice->ports[i], word, sizeof word);
        gpsh_text_add(&t, "%s %s (%s)", i ? "," : "", name, word);
    }
    gpsh_text_add(&t, "%s: %s", choice->n ? "" : " none", choice->why);
    gpsh_page_wrap(line, 0, 4);
}

void gpsh_topo_print(const struct gpsh_topo_view *view)
{
    const struct gpsh_topo *topo = &view->machine;
    if (!topo->n_gpus && !topo->n_ports) {
        gpsh_page_wrap(topo->file ? "No GPU and no RDMA NIC is recorded there."
                                  : "This machine has no NVIDIA GPU and no RDMA NIC that can be "
                                    "seen from here; kernels run on CPU threads.",
                       0, 0);
        return;
    }
    matrix_print(topo);
    putchar('\n');
    devices_print(topo);
    if (topo->without_driver && topo->n_gpus)
        gpsh_page_wrap("GPUs are in the order of their PCI addresses: no CUDA driver answers.", 0,
                       0);
    if (topo->n_gpus)
        puts("\nNICs that the PE of a GPU uses:");
    for (int i = 0; i < topo->n_gpus; i++)
        choice_print(view, i);
    putchar('\n');
    gpsh_page_wrap(
        "NV#: so many NVLinks. PIX: one PCIe switch at most. PXB: several switches. PHB: "
        "a host bridge. NODE: bridges of one NUMA node. SYS: the link between sockets.",
        0, 0);
}

// ---- JSON ----

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
