// SPDX-License-Identifier: BSD-3-Clause
#include "doctor/pci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NVIDIA = 0x10de,
    MELLANOX = 0x15b3,
    BRIDGE_OTHER = 0x0680, // what NVSwitches are
    NETWORK = 0x02,
    ETHERNET = 0x0200,
    INFINIBAND = 0x0207,
    DISPLAY = 0x03,
};

static bool is_gpu(const struct gpsh_host *host, const struct gpsh_pci *pci)
{
    (void)host;
    return pci->vendor == NVIDIA && pci->class_code >> 8 == DISPLAY;
}

static bool is_nvswitch(const struct gpsh_host *host, const struct gpsh_pci *pci)
{
    (void)host;
    return pci->vendor == NVIDIA && pci->class_code == BRIDGE_OTHER;
}

static bool is_nic(const struct gpsh_host *host, const struct gpsh_pci *pci)
{
    return pci->class_code == INFINIBAND ||
           (pci->class_code == ETHERNET && pci->vendor == MELLANOX) ||
           (pci->class_code >> 8 == NETWORK &&
            !gpsh_host_access(host, 0, "sys/bus/pci/devices/%s/infiniband", pci->address));
}

static int pcis_find(const struct gpsh_host *host, struct gpsh_pcis *found,
                     bool (*wanted)(const struct gpsh_host *host, const struct gpsh_pci *pci))
{
    static struct gpsh_names names;
    found->n = 0;
    int status = gpsh_host_list(host, &names, "sys/bus/pci/devices");
    for (int i = 0; i < names.n && found->n < GPSH_PCI_MOST; i++) {
        struct gpsh_pci pci = {.vendor = 0};
        int64_t vendor, class_code;
        if (strlen(names.name[i]) >= sizeof pci.address ||
            gpsh_host_number(host, &vendor, "sys/bus/pci/devices/%s/vendor", names.name[i]) ||
            gpsh_host_number(host, &class_code, "sys/bus/pci/devices/%s/class", names.name[i]))
            continue;
        memcpy(pci.address, names.name[i], strlen(names.name[i]) + 1);
        pci.vendor = (unsigned)vendor;
        pci.class_code = (unsigned)(class_code >> 8);
        if (wanted(host, &pci))
            found->device[found->n++] = pci;
    }
    return status;
}

int gpsh_pci_gpus(const struct gpsh_host *host, struct gpsh_pcis *found)
{
    return pcis_find(host, found, is_gpu);
}

int gpsh_pci_nics(const struct gpsh_host *host, struct gpsh_pcis *found)
{
    return pcis_find(host, found, is_nic);
}

int gpsh_pci_nvswitches(const struct gpsh_host *host, struct gpsh_pcis *found)
{
    return pcis_find(host, found, is_nvswitch);
}

// "0000:3b:00.0"
static bool is_address(const char *text, size_t length)
{
    return length >= 12 && length < GPSH_PCI_BYTES && text[length - 2] == '.' &&
           text[length - 5] == ':' && text[length - 8] == ':';
}

int gpsh_pci_path(const struct gpsh_host *host, const char *address,
                  char path[GPSH_PCI_PATH][GPSH_PCI_BYTES])
{
    char target[1024];
    int n = 0;
    if (gpsh_host_link(host, target, sizeof target, "sys/bus/pci/devices/%s", address))
        return 0;
    for (const char *at = target; *at && n < GPSH_PCI_PATH;) {
        size_t length = strcspn(at, "/");
        if (is_address(at, length)) {
            memcpy(path[n], at, length);
            path[n++][length] = '\0';
        }
        at += length + (at[length] == '/');
    }
    return n;
}

int gpsh_pci_config(const struct gpsh_host *host, const char *address,
                    unsigned char config[GPSH_PCI_CONFIG])
{
    memset(config, 0, GPSH_PCI_CONFIG);
    return gpsh_host_read_raw(host, config, GPSH_PCI_CONFIG, "sys/bus/pci/devices/%s/config",
                              address);
}

// PCI Local Bus Specification 3.0, 6.7: a list that starts at 0x34. A circle ends after 48 steps,
// which is all that fits.
int gpsh_pci_capability(const unsigned char *config, int bytes, unsigned id)
{
    if (bytes <= 64)
        return -1;
    int at = config[0x34] & ~3;
    for (int steps = 0; steps < 48 && at >= 0x40 && at + 1 < bytes; steps++) {
        if (config[at] == id)
            return at;
        at = config[at + 1] & ~3;
    }
    return 0;
}

// PCI Express Base Specification, 7.6.3: a list that starts at 0x100. Callers read registers up to
// the eighth byte.
int gpsh_pci_extended(const unsigned char *config, int bytes, unsigned id)
{
    if (bytes <= 256)
        return -1;
    int at = 0x100;
    for (int steps = 0; steps < 960 && at >= 0x100 && at + 8 <= bytes; steps++) {
        unsigned head = config[at] | (unsigned)config[at + 1] << 8 |
                        (unsigned)config[at + 2] << 16 | (unsigned)config[at + 3] << 24;
        if ((head & 0xffff) == id)
            return at;
        at = (int)(head >> 20) & ~3;
    }
    return 0;
}
