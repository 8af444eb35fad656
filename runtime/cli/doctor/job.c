// SPDX-License-Identifier: BSD-3-Clause
// Checks of the job: its launcher, its settings.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "doctor/check.h"
#include "gpushmem/gpushmem.h"

static void say_ignored(struct gpsh_finding *finding, const struct gpsh_settings_given *given)
{
    char more[48] = "";
    if (given->ignored > 1)
        snprintf(more, sizeof more, " And %d more like that", given->ignored - 1);
    gpsh_found(finding, GPSH_PROBLEM, "%s%s", given->first_ignored, more);
    gpsh_mend(finding, "correct the name, or remove it; gpushmem info --long lists all of them");
}

GPSH_CHECK_FUNCTION(settings)
{
    struct gpsh_settings_given files;
    struct gpsh_settings settings;
    char *const *environment = gpsh_host_environment(host);
    int given = 0, status = gpsh_settings_gather(environment, host->root, false, &files);
    if (!status)
        status = gpsh_settings_parse(&files, GPSH_SETTING_PREFIX, &settings);
    for (int i = 0; i < GPSH_SETTINGS_FILES; i++)
        given += files.file[i].settings;
    if (status)
        gpsh_found(finding, GPSH_PROBLEM, "%s", gpushmem_last_error());
    else
        gpsh_settings_clear(&settings);
    if (!status && files.ignored)
        say_ignored(finding, &files);
    gpsh_settings_given_clear(&files);
    if (finding->result == GPSH_PROBLEM)
        return;
    if (given)
        gpsh_found(finding, GPSH_OK,
                   "every GPUSHMEM_* variable and %d settings in files can be read", given);
    else
        gpsh_found(finding, GPSH_OK, "every GPUSHMEM_* variable can be read");
}

// ---- Who started this process ----

static bool is_set(const struct gpsh_host *host, const char *name)
{
    char value[8];
    return gpsh_host_variable(host, name, value, sizeof value);
}

GPSH_CHECK_FUNCTION(launcher)
{
    static const struct {
        const char *variable, *who, *mend;
    } others[] = {
        {"SLURM_PROCID", "srun started this process without PMIx", "srun --mpi=pmix PROGRAM"},
        {"OMPI_COMM_WORLD_RANK", "an mpirun without PMIx started this process",
         "mpirun of Open MPI 4 or newer, built with PMIx; or a unique id"},
        {"PMI_RANK", "a launcher without PMI-1 (PMI_FD is not set) started this process",
         "prterun PROGRAM, srun --mpi=pmix PROGRAM, or a unique id (docs/launchers.md)"},
    };
    if (is_set(host, "PMIX_NAMESPACE")) {
        gpsh_found(finding, GPSH_OK, "one that speaks PMIx");
        return;
    }
    if (is_set(host, "PMI_FD") || is_set(host, "GPUSHMEM_RUN_JOB")) {
        gpsh_found(finding, GPSH_OK,
                   is_set(host, "PMI_FD") ? "one that speaks PMI-1" : "gpushmem run");
        return;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is_set(host, others[i].variable)) {
            gpsh_found(finding, GPSH_PROBLEM, "%s: PEs do not find each other", others[i].who);
            gpsh_mend(finding, "%s", others[i].mend);
            return;
        }
    gpsh_found(finding, GPSH_OK, "none: a job of one PE");
}

// Whether somebody listens on the port: lines of /proc/net/tcp, the state 0A. -1: nobody can say.
static int port_listens(const struct gpsh_host *host, const char *table, unsigned port)
{
    static char text[1 << 20];
    if (gpsh_host_read(host, text, sizeof text, "%s", table) < 0)
        return -1;
    for (const char *line = text; (line = strchr(line, '\n')); line++) {
        char address[64];
        unsigned number, state;
        if (sscanf(line, " %*d: %63[0-9A-F]:%x %*[0-9A-F]:%*x %x", address, &number, &state) == 3 &&
            number == port && state == 0x0a)
            return 1;
    }
    return 0;
}

// "prterun.1;tcp4://127.0.0.1:40321"
static void server_check(const struct gpsh_host *host, struct gpsh_finding *finding,
                         const char *uri)
{
    const char *tcp = strstr(uri, "tcp"), *colon = tcp ? strrchr(tcp, ':') : NULL;
    unsigned port = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
    if (!port || port > 65535) {
        gpsh_found(finding, GPSH_CANNOT_TELL, "the address of the PMIx server is no TCP port");
        return;
    }
    int four = port_listens(host, "proc/net/tcp", port),
        six = port_listens(host, "proc/net/tcp6", port);
    if (four > 0 || six > 0)
        gpsh_found(finding, GPSH_OK, "the PMIx server listens on port %u", port);
    else if (four < 0)
        gpsh_found(finding, GPSH_CANNOT_TELL, "/proc/net/tcp cannot be read");
    else
        gpsh_found(finding, GPSH_PROBLEM,
                   "no PMIx server listens on port %u, which this process was told", port);
}

// Servers listen on TCP: with no address, not even that of lo, none starts. In a network namespace
// of its own a process sees all this in /proc/net, and that of others in /sys.
static bool addresses_are_none(const struct gpsh_host *host)
{
    static char text[1 << 16];
    int n = gpsh_host_read(host, text, sizeof text, "proc/net/fib_trie");
    if (n < 0 || n == (int)sizeof text - 1 || strstr(text, "LOCAL"))
        return false;
    return gpsh_host_read(host, text, sizeof text, "proc/net/if_inet6") <= 0;
}

static void no_server_check(const struct gpsh_host *host, struct gpsh_finding *finding)
{
    if (addresses_are_none(host)) {
        gpsh_found(finding, GPSH_PROBLEM,
                   "no network interface has an address, not even lo: no launcher with PMIx can "
                   "start a job here");
        gpsh_mend(finding, "sudo ip link set lo up; a container: start it with a network");
    } else
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "no launcher with PMIx started this process");
}

GPSH_CHECK_FUNCTION(pmix)
{
    static const char *const names[] = {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3",
                                        "PMIX_SERVER_URI21", "PMIX_SERVER_URI2", "PMIX_SERVER_URI"};
    char uri[512], rank[32];
    if (!is_set(host, "PMIX_NAMESPACE")) {
        no_server_check(host, finding);
        return;
    }
    gpsh_environment_setting(host, "PMIX_RANK", rank, sizeof rank);
    if (!rank[0] || rank[strspn(rank, "0123456789")]) {
        gpsh_found(finding, GPSH_PROBLEM, "PMIX_NAMESPACE is set, and PMIX_RANK is '%s'", rank);
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (gpsh_host_variable(host, names[i], uri, sizeof uri)) {
            server_check(host, finding, uri);
            return;
        }
    gpsh_found(finding, GPSH_PROBLEM,
               "PMIX_NAMESPACE is set, and no PMIX_SERVER_URI says where the server is");
}
