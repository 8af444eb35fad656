// SPDX-License-Identifier: BSD-3-Clause
#include "doctor/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/printable.h"

static void sentence_add(char *text, size_t bytes, const char *separator, const char *format,
                         va_list args)
{
    size_t used = strlen(text);
    if (used)
        used += (size_t)snprintf(text + used, bytes - used, "%s", separator);
    if (used < bytes)
        vsnprintf(text + used, bytes - used, format, args);
    gpsh_printable(text, bytes); // a file says it, perhaps of another machine
}

void gpsh_found(struct gpsh_finding *finding, enum gpsh_check_result result, const char *format,
                ...)
{
    va_list args;
    // What was well matters no more.
    finding->dropped = result < finding->result;
    if (finding->dropped)
        return;
    if (result > finding->result)
        finding->saw[0] = finding->mend[0] = '\0';
    finding->result = result;
    va_start(args, format);
    sentence_add(finding->saw, sizeof finding->saw, "; ", format, args);
    va_end(args);
}

void gpsh_mend(struct gpsh_finding *finding, const char *format, ...)
{
    va_list args;
    if (finding->mend[0] || finding->dropped)
        return;
    va_start(args, format);
    sentence_add(finding->mend, sizeof finding->mend, "", format, args);
    va_end(args);
}

bool gpsh_has_need(const struct gpsh_host *host, enum gpsh_need need, struct gpsh_finding *finding)
{
    const int gpus = host->gpus.n, nics = host->nics.n, no_ports = host->ports.status;
    const struct {
        bool on_bus, there;
        const char *without;
    } rows[] = {
        [GPSH_NEEDS_NOTHING] = {false, true, ""},
        [GPSH_NEEDS_GPU] = {true, gpus, "no NVIDIA GPU on the PCI bus"},
        [GPSH_NEEDS_NIC] = {true, nics, "no RDMA NIC on the PCI bus"},
        [GPSH_NEEDS_BOTH] = {true, gpus && nics,
                             gpus ? "no RDMA NIC" : "no NVIDIA GPU on the PCI bus"},
        [GPSH_NEEDS_DEVICE] = {true, gpus || nics, "no NVIDIA GPU and no RDMA NIC on the PCI bus"},
        [GPSH_NEEDS_SWITCH] = {true, host->switches.n, "no NVSwitch on the PCI bus"},
        [GPSH_NEEDS_PORT] = {false, host->ports.n, "no verbs device"},
        [GPSH_NEEDS_SEEN_PORT] = {false, host->ports.n, "no verbs device"},
        [GPSH_NEEDS_ACTIVE_PORT] = {false, host->ports.n_active, "no active port"},
        [GPSH_NEEDS_ROCE_PORT] = {false, host->ports.n_ethernet, "no active RoCE port"},
    };
    if (need == GPSH_NEEDS_SEEN_PORT && no_ports && no_ports != -ENOENT)
        gpsh_found(finding, GPSH_CANNOT_TELL, "/sys/class/infiniband cannot be read (%s)",
                   strerror(-no_ports));
    if (rows[need].on_bus && host->bus_status) {
        gpsh_found(finding, GPSH_CANNOT_TELL, "/sys/bus/pci/devices cannot be read (%s)",
                   strerror(-host->bus_status));
        return false;
    }
    if (!rows[need].there)
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "%s", rows[need].without);
    return rows[need].there;
}
