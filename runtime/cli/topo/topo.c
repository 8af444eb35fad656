// SPDX-License-Identifier: BSD-3-Clause
// `gpushmem topo`: which GPU, NIC and processor is near which.
#include "topo/topo.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "core/config.h"
#include "core/nic_choice.h"
#include "options.h"
#include "say.h"

// ---- Which ports the PE of a GPU uses: chosen by the function that the verbs transport calls ----

static int candidates_fill(const struct gpsh_topo *topo, const struct gpsh_nic_filter *filter,
                           int gpu, struct gpsh_nic_candidate *candidates)
{
    int n = 0;
    for (int i = 0; i < topo->n_ports; i++) {
        const struct gpsh_topo_port *port = &topo->ports[i];
        int rank = gpsh_nic_filter_rank(filter, port->device.name, port->number);
        if (rank < 0 || port->why_not[0])
            continue;
        candidates[n++] = (struct gpsh_nic_candidate){
            .rank = rank,
            .distance =
                gpsh_topology_between(topo->topology, topo->gpus[gpu].device.pci, port->device.pci),
            .index = i,
            .rate = port->rate,
            .ethernet = port->ethernet};
    }
    return n;
}

static bool is_chosen(const struct gpsh_topo_choice *choice, int port)
{
    for (int i = 0; i < choice->n; i++)
        if (choice->ports[i] == port)
            return true;
    return false;
}

static const struct gpsh_nic_candidate *candidate_of(const struct gpsh_nic_candidate *candidates,
                                                     int n, int port)
{
    for (int i = 0; i < n; i++)
        if (candidates[i].index == port)
            return &candidates[i];
    return NULL;
}

// Why the first chosen one, and not the best of those that were left.
static void reason_tell(const struct gpsh_topo *topo, const struct gpsh_nic_candidate *chosen,
                        const struct gpsh_nic_candidate *other, char *why, size_t bytes)
{
    char name[GPSH_TOPO_NAME_BYTES + 16];
    gpsh_topo_port_name(&topo->ports[other->index], name, sizeof name);
    switch (gpsh_nic_difference(chosen, other)) {
    case GPSH_NIC_BY_RANK:
        snprintf(why, bytes, "GPUSHMEM_VERBS_DEVICES lists it before %s", name);
        break;
    case GPSH_NIC_BY_SPEED:
        snprintf(why, bytes, "%s has less than half the best rate", name);
        break;
    case GPSH_NIC_BY_DISTANCE:
        snprintf(why, bytes, "nearest; %s, the next, is at %s", name,
                 gpsh_distance_name((enum gpsh_distance)other->distance));
        break;
    case GPSH_NIC_BY_NETWORK:
        snprintf(why, bytes, "InfiniBand goes before Ethernet, which %s is", name);
        break;
    case GPSH_NIC_BY_RATE: snprintf(why, bytes, "as near as %s, and faster", name); break;
    case GPSH_NIC_ALIKE:
        snprintf(why, bytes, "as good as %s: the PEs of a node take turns", name);
        break;
    }
}

static void choice_explain(const struct gpsh_topo *topo,
                           const struct gpsh_nic_candidate *candidates, int n,
                           struct gpsh_topo_choice *choice)
{
    if (!choice->n) {
        snprintf(choice->why, sizeof choice->why, "%s",
                 !topo->n_ports ? "this machine has no RDMA NIC"
                                : "no port is both usable and allowed by GPUSHMEM_VERBS_DEVICES");
        return;
    }
    for (int i = 0; i < n; i++)
        if (!is_chosen(choice, candidates[i].index)) {
            reason_tell(topo, candidate_of(candidates, n, choice->ports[0]), &candidates[i],
                        choice->why, sizeof choice->why);
            return;
        }
    snprintf(choice->why, sizeof choice->why, choice->n > 1 ? "all there are" : "the only one");
}

static void choose(const struct gpsh_topo *topo, const struct gpsh_settings *settings,
                   const struct gpsh_nic_filter *filter, int gpu, struct gpsh_topo_choice *choice)
{
    struct gpsh_nic_candidate candidates[GPSH_TOPO_PORTS];
    bool listed = filter->n && !filter->exclude;
    int n = candidates_fill(topo, filter, gpu, candidates);
    choice->n =
        gpsh_nic_choose(candidates, n, listed, (int)settings->verbs_rails, gpu, choice->ports);
    choice_explain(topo, candidates, n, choice);
}

// ---- The command ----

static int view_choose(struct gpsh_topo_view *view)
{
    struct gpsh_settings settings;
    struct gpsh_nic_filter filter;
    int status = gpsh_settings_read_process("GPUSHMEM_", &settings);
    if (status)
        return status;
    status = gpsh_nic_filter_parse(settings.verbs_devices, &filter);
    for (int i = 0; i < view->machine.n_gpus && !status; i++)
        choose(&view->machine, &settings, &filter, i, &view->choices[i]);
    gpsh_settings_clear(&settings);
    return status;
}

static int svg_write(const struct gpsh_topo_view *view, const char *name)
{
    FILE *out = fopen(name, "we");
    if (out)
        gpsh_topo_draw(view, out);
    bool failed = !out || ferror(out);
    if ((out && fclose(out)) || failed) {
        gpsh_cli_say("topo",
                     "cannot write the picture to %s: %s; name a file in a directory that "
                     "you may write",
                     name, strerror(errno));
        return 1;
    }
    return 0;
}

static int view_show(struct gpsh_topo_view *view, bool json, const char *svg)
{
    if (view_choose(view))
        return gpsh_cli_fail("topo");
    if (json)
        gpsh_topo_print_json(view);
    else if (!svg)
        gpsh_topo_print(view);
    return svg ? svg_write(view, svg) : 0;
}

int gpsh_cmd_topo(int argc, char **argv)
{
    static struct gpsh_topo_view view;
    const char *xml = NULL, *svg = NULL;
    bool json = false;
    const struct gpsh_option options[] = {
        {0, "xml", "FILE", "the machine that `lstopo FILE` has recorded, not this one",
         .text = &xml},
        {0, "svg", "FILE", "draw sockets, PCIe bridges, GPUs and NICs", .text = &svg},
        {0, "json", NULL, "the same for programs", .flag = &json},
        {0},
    };
    const struct gpsh_command_line line = {
        "gpushmem topo",
        "[--xml FILE] [--json] [--svg FILE]\n"
        "Prints how near GPUs, NICs and processors are to each other, and which NICs the PE of "
        "each GPU uses.",
        .options = options};
    int status, operand = gpsh_options_parse(&line, argc, argv, &status);
    if (operand < 0)
        return status;
    if (operand < argc) {
        gpsh_options_complain(&line, "'%s' is one argument too many; see gpushmem topo --help",
                              argv[operand]);
        return GPSH_OPTIONS_EXIT_USAGE;
    }
    if (gpsh_topo_read(xml, &view.machine))
        return gpsh_cli_fail("topo");
    gpsh_nvlinks_read(&view.machine);
    status = view_show(&view, json, svg);
    gpsh_topo_clear(&view.machine);
    return status;
}
