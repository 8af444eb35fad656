// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// What the transport ofi would use here, by which hosts without RDMA NICs reach each other.
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "core/config.h"
#include "core/error.h"
#include "doctor/check.h"
#include "probe.h"
#include "transport/transport.h"

enum { LONGEST_MS = 20000 };

// In a process of its own, as libfabric's providers start threads. The first character says whether
// there is one, '!' that it has a fault, the rest is the sentence.
static int survey(const void *arg)
{
    const struct gpsh_host *host = arg;
    struct gpsh_settings_given given;
    struct gpsh_settings settings;
    char line[512];
    int status = gpsh_settings_gather(gpsh_host_environment(host), host->root, false, &given);
    if (!status)
        status = gpsh_settings_parse(&given, GPSH_SETTING_PREFIX, &settings);
    if (!status)
        status = gpsh_transport_find("ofi")->survey(&settings, line, sizeof line);
    printf("%c%s\n", status < 0 ? '-' : status ? '!' : '+', status < 0 ? gpsh_last_error() : line);
    fflush(stdout);
    return 0;
}

// Where verbs does it, or nothing else was asked for, nobody needs libfabric.
static void found_none(const struct gpsh_host *host, struct gpsh_finding *finding, const char *why)
{
    char transports[64], provider[64], domain[64];
    gpsh_environment_setting(host, "GPUSHMEM_TRANSPORTS", transports, sizeof transports);
    gpsh_environment_setting(host, "GPUSHMEM_OFI_PROVIDER", provider, sizeof provider);
    gpsh_environment_setting(host, "GPUSHMEM_OFI_DOMAIN", domain, sizeof domain);
    bool wanted = !strcmp(transports, "ofi") || provider[0] || domain[0];
    gpsh_found(finding, wanted ? GPSH_PROBLEM : GPSH_NOT_APPLICABLE, "%s", why);
    if (wanted && (provider[0] || domain[0]))
        gpsh_mend(finding, "fi_info lists providers and domains; set GPUSHMEM_OFI_PROVIDER and "
                           "GPUSHMEM_OFI_DOMAIN to one of them, or unset both");
}

static void found_fault(struct gpsh_finding *finding, const char *line)
{
    gpsh_found(finding, GPSH_PROBLEM, "%s", line);
    gpsh_mend(finding, "mend what the row names, or take another provider: "
                       "GPUSHMEM_OFI_PROVIDER=tcp, or what gpushmem info --providers lists");
}

static void look_here(const struct gpsh_host *host, struct gpsh_finding *finding)
{
    struct gpsh_probe probe;
    int error = gpsh_probe_run(&probe, survey, host, LONGEST_MS);
    probe.words[strcspn(probe.words, "\n")] = '\0';
    if (error)
        gpsh_found(finding, GPSH_CANNOT_TELL, "libfabric cannot be tried (%s)", strerror(error));
    else if (probe.late)
        gpsh_found(finding, GPSH_PROBLEM, "libfabric did not list its providers within %d s",
                   LONGEST_MS / 1000);
    else if (WIFSIGNALED(probe.status))
        gpsh_found(finding, GPSH_PROBLEM,
                   "libfabric was killed by signal %d (%s) when it was to list its providers",
                   WTERMSIG(probe.status), strsignal(WTERMSIG(probe.status)));
    else if (probe.words[0] == '+')
        gpsh_found(finding, GPSH_OK, "%s", probe.words + 1);
    else if (probe.words[0] == '!')
        found_fault(finding, probe.words + 1);
    else
        found_none(host, finding, probe.words[0] ? probe.words + 1 : "it says nothing");
}

GPSH_CHECK_FUNCTION(libfabric)
{
    char target[256];
    const struct gpsh_transport_ops *ops = gpsh_transport_find("ofi");
    if (!ops || !ops->survey)
        found_none(host, finding, "this build has no transport ofi, which takes libfabric-dev");
    else if (host->live)
        look_here(host, finding);
    else if (gpsh_host_library(host, "libfabric.so.1", target, sizeof target))
        gpsh_found(finding, GPSH_OK, "%s is there", target[0] ? target : "libfabric.so.1");
    else
        found_none(host, finding,
                   "there is no libfabric.so.1, without which hosts need RDMA NICs to reach each "
                   "other");
}
