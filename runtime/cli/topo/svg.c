// SPDX-License-Identifier: BSD-3-Clause
// The machine as boxes in boxes, and these as SVG 1.1, without scripts and fonts of its own.
#include <hwloc.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "svg_text.h"
#include "topo/topo.h"

// A machine as boxes in boxes: the smaller the box that holds two devices, the nearer they are.

enum { GPSH_SCENE_BOXES = 512, GPSH_SCENE_INSIDE = 64 };

enum gpsh_box_kind {
    GPSH_BOX_MACHINE,
    GPSH_BOX_SOCKET,
    GPSH_BOX_HOST_BRIDGE,
    GPSH_BOX_SWITCH,
    GPSH_BOX_GPU,
    GPSH_BOX_NIC,
};

struct gpsh_box {
    enum gpsh_box_kind kind;
    char title[GPSH_TOPO_NAME_BYTES], text[192];
    int device;  // number of gpsh_topo_device; of GPUs and NICs
    int bridges; // above it without a box of their own
    int n;
    struct gpsh_box *inside[GPSH_SCENE_INSIDE];
    double x, y, width, height;
};

struct gpsh_scene {
    int n;
    struct gpsh_box boxes[GPSH_SCENE_BOXES]; // the first one is the machine
};

// ---- Boxes ----

static struct gpsh_box *box_new(struct gpsh_scene *scene, enum gpsh_box_kind kind)
{
    if (scene->n == GPSH_SCENE_BOXES)
        return NULL;
    struct gpsh_box *box = &scene->boxes[scene->n++];
    *box = (struct gpsh_box){.kind = kind, .device = -1};
    return box;
}

static void box_put(struct gpsh_box *box, struct gpsh_box *inside)
{
    if (inside && box->n < GPSH_SCENE_INSIDE)
        box->inside[box->n++] = inside;
}

static struct gpsh_box *device_box(const struct gpsh_topo *topo, struct gpsh_scene *scene,
                                   int device)
{
    bool gpu = device < topo->n_gpus;
    const char *name = gpsh_topo_device(topo, device)->name;
    const struct gpsh_topo_port *port = gpu ? NULL : &topo->ports[device - topo->n_gpus];
    struct gpsh_box *box = box_new(scene, gpu ? GPSH_BOX_GPU : GPSH_BOX_NIC);
    if (!box)
        return NULL;
    box->device = device;
    snprintf(box->title, sizeof box->title, "%s", name);
    if (gpu) {
        snprintf(box->title, sizeof box->title, "GPU%d", device);
        snprintf(box->text, sizeof box->text, "%s", name[0] ? name : topo->gpus[device].device.pci);
    } else if (port->why_not[0])
        snprintf(box->text, sizeof box->text, "%s", port->why_not);
    else if (port->rate)
        snprintf(box->text, sizeof box->text, "%g Gb/s %s", port->rate / 1000.0,
                 port->ethernet ? "RoCE" : "IB");
    else
        snprintf(box->text, sizeof box->text, "%s", port->ethernet ? "RoCE" : "InfiniBand");
    return box;
}

// Of a PCI device; NULL if it is none of ours.
static struct gpsh_box *pci_box(const struct gpsh_topo *topo, struct gpsh_scene *scene,
                                hwloc_obj_t object)
{
    char pci[GPSH_TOPO_PCI_BYTES];
    gpsh_topo_pci(&object->attr->pcidev, pci);
    for (int i = 0; i < topo->n_gpus + topo->n_ports; i++)
        if (!strcmp(gpsh_topo_device(topo, i)->pci, pci))
            return device_box(topo, scene, i);
    return NULL;
}

static struct gpsh_box *switch_new(struct gpsh_scene *scene, bool host)
{
    struct gpsh_box *box = box_new(scene, host ? GPSH_BOX_HOST_BRIDGE : GPSH_BOX_SWITCH);
    if (box)
        snprintf(box->title, sizeof box->title, host ? "host bridge" : "PCIe switch");
    return box;
}

// A device below a switch of its own is farther from its neighbours than these from each other.
static struct gpsh_box *farther_box(struct gpsh_scene *scene, struct gpsh_box *device)
{
    struct gpsh_box *box =
        device->bridges > 1 && device->device >= 0 ? switch_new(scene, false) : NULL;
    if (!box)
        return device;
    box_put(box, device);
    return box;
}

static struct gpsh_box *bridge_box(const struct gpsh_topo *topo, struct gpsh_scene *scene,
                                   hwloc_obj_t object);

// A bridge with one thing below it brings nothing nearer: no box.
static struct gpsh_box *inside_box(const struct gpsh_topo *topo, struct gpsh_scene *scene,
                                   hwloc_obj_t object)
{
    struct gpsh_box found = {.n = 0};
    bool host = object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST;
    for (hwloc_obj_t o = object->io_first_child; o; o = o->next_sibling)
        box_put(&found, bridge_box(topo, scene, o));
    if (found.n == 1)
        found.inside[0]->bridges++;
    if (found.n < 2)
        return found.n ? found.inside[0] : NULL;
    struct gpsh_box *box = switch_new(scene, host);
    for (int i = 0; box && i < found.n; i++)
        box_put(box, host ? found.inside[i] : farther_box(scene, found.inside[i]));
    return box;
}

static struct gpsh_box *bridge_box(const struct gpsh_topo *topo, struct gpsh_scene *scene,
                                   hwloc_obj_t object)
{
    if (object->type == HWLOC_OBJ_PCI_DEVICE)
        return pci_box(topo, scene, object);
    return object->type == HWLOC_OBJ_BRIDGE ? inside_box(topo, scene, object) : NULL;
}

// What hangs on an object, or on one inside it: NUMA nodes and groups of caches have bridges, too.
static void bridges_collect(const struct gpsh_topo *topo, struct gpsh_scene *scene,
                            hwloc_obj_t object, struct gpsh_box *box)
{
    for (hwloc_obj_t o = object->io_first_child; o; o = o->next_sibling)
        box_put(box, bridge_box(topo, scene, o));
    for (unsigned i = 0; i < object->arity; i++)
        if (object->children[i]->type != HWLOC_OBJ_PACKAGE)
            bridges_collect(topo, scene, object->children[i], box);
}

static void socket_add(const struct gpsh_topo *topo, struct gpsh_scene *scene, hwloc_obj_t object)
{
    struct gpsh_box *box = box_new(scene, GPSH_BOX_SOCKET);
    char cpus[96];
    if (!box)
        return;
    hwloc_bitmap_list_snprintf(cpus, sizeof cpus, object->cpuset);
    snprintf(box->title, sizeof box->title, "Socket %u", object->logical_index);
    snprintf(box->text, sizeof box->text, "CPUs %s", cpus);
    bridges_collect(topo, scene, object, box);
    box_put(&scene->boxes[0], box);
}

// ---- Places ----

enum {
    LEAF_WIDTH = 118,
    LEAF_HEIGHT = 58,
    GAP = 16,
    INNER = 14,  // between a box and what is in it
    BOTTOM = 22, // below it, where lines pass
    HEAD = 26,
    SOCKET_GAP = 54,
    WIDEST = 1300,
};

static bool is_leaf(const struct gpsh_box *box)
{
    return box->kind >= GPSH_BOX_GPU;
}

static void box_move(struct gpsh_box *box, double dx, double dy)
{
    box->x += dx;
    box->y += dy;
    for (int i = 0; i < box->n; i++)
        box_move(box->inside[i], dx, dy);
}

// In rows, as words in lines.
static void box_place(struct gpsh_box *box)
{
    bool machine = box->kind == GPSH_BOX_MACHINE;
    double gap = machine ? SOCKET_GAP : GAP, margin = machine ? 0 : INNER;
    double top = machine ? 0 : HEAD + 8, x = margin, y = top, right = margin, below = top;
    if (is_leaf(box)) {
        box->width = LEAF_WIDTH;
        box->height = LEAF_HEIGHT;
        return;
    }
    for (int i = 0; i < box->n; i++) {
        struct gpsh_box *inside = box->inside[i];
        box_place(inside);
        if (x > margin && x + inside->width > WIDEST) {
            x = margin;
            y = below + gap;
        }
        box_move(inside, x, y);
        x += inside->width + gap;
        right = x - gap > right ? x - gap : right;
        below = y + inside->height > below ? y + inside->height : below;
    }
    box->width = right + margin;
    box->height = below + (machine ? 0 : BOTTOM);
    if (box->kind == GPSH_BOX_SOCKET && box->width < 2 * LEAF_WIDTH)
        box->width = 2 * LEAF_WIDTH;
}

// Finds the boxes and gives each its place.
static void scene_make(const struct gpsh_topo *topo, struct gpsh_scene *scene)
{
    scene->n = 0;
    struct gpsh_box *machine = box_new(scene, GPSH_BOX_MACHINE);
    hwloc_topology_t hwloc = gpsh_topology_hwloc(topo->topology);
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_PACKAGE, o));)
        socket_add(topo, scene, o);
    bridges_collect(topo, scene, hwloc_get_root_obj(hwloc), machine);
    // Software devices hang on nothing.
    for (int i = 0; i < topo->n_ports; i++)
        if (!topo->ports[i].device.pci[0] && !gpsh_topo_port_repeats(topo, i))
            box_put(machine, device_box(topo, scene, topo->n_gpus + i));
    box_place(machine);
}

// ---- SVG ----

enum { MARGIN = 28, TITLE = 64, LEGEND = 78, LONGEST_TEXT = 18, NARROWEST = 560 };

static void text_put(FILE *out, double x, double y, const char *style, const char *text,
                     size_t most)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, style);
    gpsh_svg_text(out, text, most);
    fputs("</text>\n", out);
}

static void rectangle(FILE *out, const struct gpsh_box *box, const char *style, int radius)
{
    fprintf(out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%d\" class=\"%s\"/>\n",
            box->x, box->y, box->width, box->height, radius, style);
}

static void leaf_draw(FILE *out, const struct gpsh_topo *topo, const struct gpsh_box *box)
{
    bool gpu = box->kind == GPSH_BOX_GPU;
    bool off = !gpu && topo->ports[box->device - topo->n_gpus].why_not[0];
    rectangle(out, box, gpu ? "gpu" : off ? "off" : "nic", 6);
    double middle = box->x + box->width / 2;
    char style[32];
    snprintf(style, sizeof style, "name%s%s", off ? " dim" : "",
             strlen(box->title) > 10 ? " small" : "");
    text_put(out, middle, box->y + 25, style, box->title, LONGEST_TEXT);
    text_put(out, middle, box->y + 43, off ? "about dim" : "about", box->text, LONGEST_TEXT);
}

static void box_draw(FILE *out, const struct gpsh_topo *topo, const struct gpsh_box *box)
{
    static const char *const styles[] = {[GPSH_BOX_SOCKET] = "socket",
                                         [GPSH_BOX_HOST_BRIDGE] = "bridge",
                                         [GPSH_BOX_SWITCH] = "switch"};
    if (box->kind >= GPSH_BOX_GPU) {
        leaf_draw(out, topo, box);
        return;
    }
    if (box->kind != GPSH_BOX_MACHINE) {
        bool socket = box->kind == GPSH_BOX_SOCKET;
        rectangle(out, box, styles[box->kind], socket ? 10 : 8);
        text_put(out, box->x + 14, box->y + 20, socket ? "head" : "label", box->title, 40);
        if (socket)
            text_put(out, box->x + 94, box->y + 20, "label", box->text, 48);
    }
    for (int i = 0; i < box->n; i++)
        box_draw(out, topo, box->inside[i]);
}

static const struct gpsh_box *box_of(const struct gpsh_topo *topo, const struct gpsh_scene *scene,
                                     int device)
{
    const char *name = gpsh_topo_device(topo, device)->name;
    for (int i = 0; i < scene->n; i++) {
        const struct gpsh_box *box = &scene->boxes[i];
        bool port = device >= topo->n_gpus && box->kind == GPSH_BOX_NIC &&
                    !strcmp(gpsh_topo_device(topo, box->device)->name, name);
        if ((box->kind >= GPSH_BOX_GPU && box->device == device) || port)
            return box;
    }
    return NULL;
}

// Side by side: a short line. Else around below (down = 1) or above (-1) what is between.
static void line_draw(FILE *out, const struct gpsh_box *a, const struct gpsh_box *b,
                      const char *style, int down)
{
    const struct gpsh_box *left = a->x < b->x ? a : b, *right = left == a ? b : a;
    double gap = right->x - left->x - left->width;
    if (a->y == b->y && gap > 0 && gap < 24) {
        fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1f H%.1f\"/>\n", style, left->x + left->width,
                a->y + a->height * (down > 0 ? 0.7 : 0.3), right->x);
        return;
    }
    double ax = a->x + a->width * 0.5, bx = b->x + b->width * 0.5;
    double ay = a->y + (down > 0 ? a->height : 0), by = b->y + (down > 0 ? b->height : 0);
    double bend = down * (20 + 0.02 * (bx > ax ? bx - ax : ax - bx));
    fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f\"/>\n", style,
            ax, ay, ax, ay + bend, bx, by + bend, bx, by);
}

static void choices_draw(FILE *out, const struct gpsh_topo_view *view,
                         const struct gpsh_scene *scene)
{
    const struct gpsh_topo *topo = &view->machine;
    for (int gpu = 0; gpu < topo->n_gpus; gpu++)
        for (int i = 0; i < view->choices[gpu].n; i++) {
            const struct gpsh_box *a = box_of(topo, scene, gpu);
            const struct gpsh_box *b =
                box_of(topo, scene, topo->n_gpus + view->choices[gpu].ports[i]);
            if (a && b)
                line_draw(out, a, b, "uses", 1);
        }
}

// ---- NVLink ----

// The number of links of every pair, or 0 if pairs differ.
static int links_of_all(const struct gpsh_topo *topo)
{
    int all = topo->n_gpus > 1 ? topo->nvlinks[0][1] : 0;
    for (int a = 0; a < topo->n_gpus; a++)
        for (int b = 0; b < topo->n_gpus; b++)
            if (a != b && topo->nvlinks[a][b] != all)
                return 0;
    return all;
}

static void nvlinks_draw(FILE *out, const struct gpsh_topo *topo, const struct gpsh_scene *scene)
{
    if (links_of_all(topo) && topo->n_gpus > 3)
        return; // the title says it
    for (int a = 0; a < topo->n_gpus; a++)
        for (int b = a + 1; b < topo->n_gpus; b++) {
            const struct gpsh_box *x = box_of(topo, scene, a), *y = box_of(topo, scene, b);
            if (topo->nvlinks[a][b] && x && y)
                line_draw(out, x, y, "nvlink", -1);
        }
}

// ---- The whole ----

static void style_write(FILE *out)
{
    fputs("<style>\n"
          "text { font-family: 'DejaVu Sans', Helvetica, Arial, sans-serif; fill: #24292f; }\n"
          ".title { font-size: 19px; font-weight: bold; }\n"
          ".subtitle { font-size: 13px; fill: #57606a; }\n"
          ".head { font-size: 15px; font-weight: bold; }\n"
          ".label { font-size: 12px; fill: #57606a; }\n"
          ".name { font-size: 15px; font-weight: bold; text-anchor: middle; }\n"
          ".small { font-size: 12px; }\n"
          ".about { font-size: 11px; text-anchor: middle; }\n"
          ".dim { fill: #8c959f; }\n"
          ".link { font-size: 12px; fill: #57606a; text-anchor: middle; }\n"
          ".socket { fill: #f6f8fa; stroke: #57606a; stroke-width: 1.5; }\n"
          ".bridge { fill: #ffffff; stroke: #afb8c1; stroke-width: 1.2; }\n"
          ".switch { fill: #fff8e5; stroke: #d4a72c; stroke-width: 1.2; }\n"
          ".gpu { fill: #d8f0b8; stroke: #5a8f00; stroke-width: 1.4; }\n"
          ".nic { fill: #cfe6ff; stroke: #2f7fc8; stroke-width: 1.4; }\n"
          ".off { fill: #ffffff; stroke: #afb8c1; stroke-width: 1.2; stroke-dasharray: 4 3; }\n"
          ".uses { fill: none; stroke: #e0562b; stroke-width: 3; stroke-linecap: round; }\n"
          ".nvlink { fill: none; stroke: #5a8f00; stroke-width: 4; stroke-linecap: round; }\n"
          ".between { fill: none; stroke: #57606a; stroke-width: 2; stroke-dasharray: 2 4; }\n"
          "</style>\n",
          out);
}

static void title_write(FILE *out, const struct gpsh_topo *topo)
{
    char line[160];
    int links = links_of_all(topo), nics = 0;
    for (int i = 0; i < topo->n_ports; i++)
        nics += !gpsh_topo_port_repeats(topo, i);
    struct gpsh_text t = {line, sizeof line, 0};
    gpsh_text_add(&t, "%d GPU%s, %d NIC%s", topo->n_gpus, topo->n_gpus == 1 ? "" : "s", nics,
                  nics == 1 ? "" : "s");
    if (links)
        gpsh_text_add(&t, ", NV%d between %s GPUs", links, topo->n_gpus > 2 ? "all" : "the");
    text_put(out, MARGIN, MARGIN + 14, "title", "What is near what", 40);
    text_put(out, MARGIN, MARGIN + 34, "subtitle", line, 120);
}

// The link between sockets, from each to the next.
static void between_draw(FILE *out, const struct gpsh_box *machine)
{
    for (int i = 0; i + 1 < machine->n; i++) {
        const struct gpsh_box *a = machine->inside[i], *b = machine->inside[i + 1];
        if (a->kind != GPSH_BOX_SOCKET || b->kind != GPSH_BOX_SOCKET)
            continue;
        bool beside = a->y == b->y;
        double x = beside ? a->x + a->width : a->x + 60, y = beside ? a->y + 40 : a->y + a->height;
        double to_x = beside ? b->x : x, to_y = beside ? y : b->y;
        if (!beside && b->y < a->y + a->height)
            continue;
        fprintf(out, "<path class=\"between\" d=\"M%.1f %.1f L%.1f %.1f\"/>\n", x, y, to_x, to_y);
        text_put(out, beside ? (x + to_x) / 2 : x + 24, beside ? y - 8 : (y + to_y) / 2 + 4, "link",
                 "SYS", 8);
    }
}

static bool has_nvlinks(const struct gpsh_topo *topo)
{
    for (int a = 0; a < topo->n_gpus; a++)
        for (int b = 0; b < a; b++)
            if (topo->nvlinks[a][b])
                return true;
    return false;
}

static void legend_write(FILE *out, const struct gpsh_topo *topo, double y)
{
    fprintf(out, "<path class=\"uses\" d=\"M%d %.1f h28\"/>\n", MARGIN, y + 4);
    text_put(out, MARGIN + 38, y + 8, "label", "the NIC that the PE of a GPU uses", 80);
    if (has_nvlinks(topo) && !(links_of_all(topo) && topo->n_gpus > 3)) {
        fprintf(out, "<path class=\"nvlink\" d=\"M%d %.1f h28\"/>\n", MARGIN + 290, y + 4);
        text_put(out, MARGIN + 328, y + 8, "label", "NVLink", 80);
    }
    text_put(out, MARGIN, y + 32, "label",
             "The smaller the box that holds two devices, the nearer they are:", 120);
    text_put(out, MARGIN, y + 50, "label",
             "PCIe switch PIX or PXB, host bridge PHB, socket NODE, else SYS.", 120);
}

void gpsh_topo_draw(const struct gpsh_topo_view *view, FILE *out)
{
    static struct gpsh_scene scene;
    scene_make(&view->machine, &scene);
    const struct gpsh_box *machine = &scene.boxes[0];
    double width = machine->width > NARROWEST ? machine->width : NARROWEST;
    double full_width = width + 2 * MARGIN,
           full_height = machine->height + TITLE + LEGEND + 2 * MARGIN;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\">\n",
            full_width, full_height, full_width, full_height);
    style_write(out);
    fputs("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n", out);
    title_write(out, &view->machine);
    fprintf(out, "<g transform=\"translate(%d %d)\">\n", MARGIN, MARGIN + TITLE);
    between_draw(out, machine);
    box_draw(out, &view->machine, machine);
    nvlinks_draw(out, &view->machine, &scene);
    choices_draw(out, view, &scene);
    fputs("</g>\n", out);
    legend_write(out, &view->machine, MARGIN + TITLE + machine->height + 28);
    fputs("</svg>\n", out);
}
