// SPDX-License-Identifier: BSD-3-Clause
// A libnvidia-ml.so.1 that knows nothing but NVLinks: as many as FAKE_NVML_LINKS from each GPU, to
// switches, or with FAKE_NVML_DIRECT all of them to the GPU of that PCI address. The last one is
// inactive.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_FOUND = 6, LINK_SWITCH = 2 };

struct pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device);
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *active);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, struct pci *pci);
int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, int *type);

static unsigned links(void)
{
    const char *text = getenv("FAKE_NVML_LINKS");
    return text ? (unsigned)atoi(text) : 0;
}

int nvmlInit_v2(void)
{
    return getenv("FAKE_NVML_FAILS") ? NOT_FOUND : SUCCESS;
}

int nvmlShutdown(void)
{
    return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device)
{
    static char known[] = "gpu";
    *device = known;
    return strlen(pci) < 12 ? NOT_FOUND : SUCCESS;
}

int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *active)
{
    *active = link < links();
    return device && link <= links() ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, struct pci *pci)
{
    const char *to = getenv("FAKE_NVML_DIRECT");
    snprintf(pci->bus_id, sizeof pci->bus_id, "0000%.20s", to ? to : "");
    return device && link < links() ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, int *type)
{
    *type = getenv("FAKE_NVML_DIRECT") ? 0 : LINK_SWITCH;
    return device && link < links() ? SUCCESS : NOT_FOUND;
}
