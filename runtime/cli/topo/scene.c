// SPDX-License-Identifier: BSD-3-Clause
#include "topo/scene.h"

#include <hwloc.h>
#include <stdio.h>
#include <string.h>

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

static struct gpsh_box *gpu_box(const struct gpsh_topo *topo, struct gpsh_scene *scene, int gpu)
{
    struct gpsh_box *box = box_new(scene, GPSH_BOX_GPU);
    if (!box)
        return NULL;
    box->device = gpu;
    snprintf(box->title, sizeof box->title, "GPU%d", gpu);
    const struct gpsh_topo_device *device = &topo->gpus[gpu].device;
    snprintf(box->text, sizeof box->text, "%s", device->name[0] ? device->name : device->pci);
    return box;
}

static struct gpsh_box *nic_box(const struct gpsh_topo *topo, struct gpsh_scene *scene, int port)
{
    const struct gpsh_topo_port *p = &topo->ports[port];
    struct gpsh_box *box = box_new(scene, GPSH_BOX_NIC);
    if (!box)
        return NULL;
    box->device = topo->n_gpus + port;
    snprintf(box->title, sizeof box->title, "%s", p->device.name);
    if (p->why_not[0])
        snprintf(box->text, sizeof box->text, "%s", p->why_not);
    else if (p->rate)
        snprintf(box->text, sizeof box->text, "%g Gb/s %s", p->rate / 1000.0,
                 p->ethernet ? "RoCE" : "IB");
    else
        snprintf(box->text, sizeof box->text, "%s", p->ethernet ? "RoCE" : "InfiniBand");
    return box;
}

static struct gpsh_box *device_box(const struct gpsh_topo *topo, struct gpsh_scene *scene,
                                   hwloc_obj_t object)
{
    char pci[GPSH_TOPO_PCI_BYTES];
    const struct hwloc_pcidev_attr_s *at = &object->attr->pcidev;
    snprintf(pci, sizeof pci, "%04x:%02x:%02x.%x", at->domain, at->bus, at->dev, at->func);
    for (int i = 0; i < topo->n_gpus; i++)
        if (!strcmp(topo->gpus[i].device.pci, pci))
            return gpu_box(topo, scene, i);
    for (int i = 0; i < topo->n_ports; i++)
        if (!strcmp(topo->ports[i].device.pci, pci))
            return nic_box(topo, scene, i);
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
        return device_box(topo, scene, object);
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

void gpsh_scene_make(const struct gpsh_topo *topo, struct gpsh_scene *scene)
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
            box_put(machine, nic_box(topo, scene, i));
    box_place(machine);
}
