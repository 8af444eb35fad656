// SPDX-License-Identifier: BSD-3-Clause
// `gpushmem topo`: which GPU, NIC and processor is near which.
#include "topo/topo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "gpushmem/gpushmem.h"
#include "options.h"
#include "say.h"

static int view_choose(struct gpsh_topo_view *view)
{
    struct gpsh_settings settings;
    struct gpsh_nic_filter filter;
    int status = gpsh_settings_read_process("GPUSHMEM_", &settings);
    if (status)
        return status;
    status = gpsh_nic_filter_parse(settings.verbs_devices, &filter);
    for (int i = 0; i < view->machine.n_gpus && !status; i++)
        gpsh_topo_choose(&view->machine, &settings, &filter, i, &view->choices[i]);
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
    if (view_choose(view)) {
        gpsh_cli_say("topo", "%s", gpushmem_last_error());
        return 1;
    }
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
    if (gpsh_topo_read(xml, &view.machine)) {
        gpsh_cli_say("topo", "%s", gpushmem_last_error());
        return 1;
    }
    status = view_show(&view, json, svg);
    gpsh_topo_clear(&view.machine);
    return status;
}
