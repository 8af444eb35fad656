// SPDX-License-Identifier: BSD-3-Clause
// `gpushmem doctor`: what stands between a GPU and the wire.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "core/spelling.h"
#include "doctor/check.h"
#include "options.h"
#include "say.h"

static bool wanted_mark(const struct gpsh_command_line *line, struct gpsh_report *report,
                        char **ids)
{
    int n = gpsh_checks_count();
    report->named = ids[0] != NULL;
    for (int i = 0; i < n; i++)
        report->wanted[i] = !report->named;
    for (; *ids; ids++) {
        char ask[GPSH_SPELLING_BYTES];
        struct gpsh_spelling spelling = {.typed = *ids, .length = strlen(*ids)};
        int row = 0;
        for (; row < n && strcmp(gpsh_checks[row].id, *ids) != 0; row++)
            gpsh_spelling_consider(&spelling, gpsh_checks[row].id, gpsh_checks[row].id);
        if (row == n)
            return gpsh_options_complain(
                line, "there is no check '%s'; %sgpushmem doctor --all names them all", *ids,
                gpsh_spelling_ask(&spelling, ask));
        report->wanted[row] = true;
    }
    return true;
}

static bool root_check(const struct gpsh_command_line *line, const char *root)
{
    struct stat st;
    if (!stat(root, &st) && S_ISDIR(st.st_mode))
        return true;
    return gpsh_options_complain(line,
                                 "--root '%s' is no directory with a machine's /sys and /proc: %s",
                                 root, strerror(errno ? errno : ENOTDIR));
}

static void pcis_look(const struct gpsh_check *check, const struct gpsh_host *host,
                      struct gpsh_finding *finding, const struct gpsh_pcis *pcis)
{
    for (int i = 0; i < pcis->n; i++) {
        const struct gpsh_item item = {.pci = pcis->device[i].address, .gpu = pcis == &host->gpus};
        check->look(host, finding, &item);
    }
}

static void ports_look(const struct gpsh_check *check, const struct gpsh_host *host,
                       struct gpsh_finding *finding)
{
    for (int i = 0; i < host->ports.n; i++) {
        const struct gpsh_port *port = &host->ports.port[i];
        if ((check->each == GPSH_EACH_PORT || port->active) &&
            (check->each != GPSH_EACH_ROCE_PORT || port->ethernet))
            check->look(host, finding, &(struct gpsh_item){.port = port});
    }
    if (check->each == GPSH_EACH_ACTIVE_PORT && !host->ports.n_active)
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "no active port");
}

static void check_run(const struct gpsh_check *check, const struct gpsh_host *host,
                      struct gpsh_finding *finding)
{
    enum gpsh_each each = check->each;
    if (!gpsh_has_need(host, check->need, finding))
        return;
    if (each == GPSH_EACH_MACHINE)
        check->look(host, finding, NULL);
    if (each == GPSH_EACH_GPU || each == GPSH_EACH_DEVICE)
        pcis_look(check, host, finding, &host->gpus);
    if (each == GPSH_EACH_NIC || each == GPSH_EACH_DEVICE)
        pcis_look(check, host, finding, &host->nics);
    if (each >= GPSH_EACH_PORT)
        ports_look(check, host, finding);
}

static void look_at_all(const struct gpsh_host *host, struct gpsh_report *report)
{
    for (int i = 0; gpsh_checks[i].id; i++)
        if (report->wanted[i])
            check_run(&gpsh_checks[i], host, &report->findings[i]);
}

static int tell(const struct gpsh_report *report, bool json, bool all)
{
    if (json)
        gpsh_report_json(report);
    else
        gpsh_report_print(report, all);
    return gpsh_report_exit(gpsh_report_worst(report));
}

int gpsh_cmd_doctor(int argc, char **argv)
{
    static struct gpsh_report report;
    const char *root = NULL;
    bool json = false, all = false, fabric = false, markdown = false;
    const struct gpsh_option options[] = {
        {0, "all", NULL, "everything in full, also what is well or does not apply", .flag = &all},
        {0, "json", NULL, "the same for programs", .flag = &json},
        {0, "fabric", NULL,
         "under a launcher: look at every PE and print what differs; for example\n"
         "gpushmem run -n 2 gpushmem doctor --fabric",
         .flag = &fabric},
        {0, "root", "DIR", "look at the /sys, /proc, /dev and /usr in DIR, not at this machine",
         .text = &root},
        {0, "markdown", NULL, "the checks as docs/doctor.md", .flag = &markdown},
        {0},
    };
    const struct gpsh_command_line line = {
        "gpushmem doctor",
        "[--all] [--json] [--fabric] [--root DIR] [CHECK...]\n"
        "Looks for what keeps GPUs, NICs and launchers from working together, and says what to "
        "do. "
        "A CHECK is a name that --all prints, as in gpushmem doctor gpudirect verbs; without any, "
        "all.\n"
        "Exit code: 0 all is well, 1 a problem, 3 something cannot be told.",
        .options = options};
    // Only the check of that name starts it so.
    if (argc == 2 && !strcmp(argv[1], "--self-test"))
        return gpsh_self_test_run();
    int status, operand = gpsh_options_parse(&line, argc, argv, &status);
    if (operand < 0)
        return status;
    if (markdown) {
        gpsh_checks_markdown();
        return 0;
    }
    errno = 0;
    if (!wanted_mark(&line, &report, argv + operand) || (root && !root_check(&line, root)))
        return GPSH_OPTIONS_EXIT_USAGE;
    static struct gpsh_host host;
    host.root = root ? root : "";
    host.live = !root;
    gpsh_host_devices(&host);
    look_at_all(&host, &report);
    return fabric ? gpsh_report_fabric(&report, json) : tell(&report, json, all);
}
