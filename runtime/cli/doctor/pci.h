// SPDX-License-Identifier: BSD-3-Clause
// PCI devices as sysfs shows them.
#ifndef GPSH_DOCTOR_PCI_H
#define GPSH_DOCTOR_PCI_H

#include "doctor/host.h"

enum { GPSH_PCI_BYTES = 32, GPSH_PCI_MOST = 64, GPSH_PCI_PATH = 16 };

struct gpsh_pci {
    char address[GPSH_PCI_BYTES];
    unsigned vendor, class_code; // the class with its subclass: 0x0302
};

struct gpsh_pcis {
    int n;
    struct gpsh_pci device[GPSH_PCI_MOST];
};

// NVIDIA's GPUs; NICs that have a verbs device or could have one; bridges of NVLink. 0 or -errno.
int gpsh_pci_gpus(const struct gpsh_host *host, struct gpsh_pcis *found);
int gpsh_pci_nics(const struct gpsh_host *host, struct gpsh_pcis *found);
int gpsh_pci_nvswitches(const struct gpsh_host *host, struct gpsh_pcis *found);

// The bridges above a device, the outermost first, and its own address last; how many.
int gpsh_pci_path(const struct gpsh_host *host, const char *address,
                  char path[GPSH_PCI_PATH][GPSH_PCI_BYTES]);

// Its configuration space. A plain user gets the first 64 bytes. How many, or -errno.
enum { GPSH_PCI_CONFIG = 4096 };
int gpsh_pci_config(const struct gpsh_host *host, const char *address,
                    unsigned char config[GPSH_PCI_CONFIG]);
// The offset of a capability, or of an extended one; 0: none, -1: not to be read by this user.
int gpsh_pci_capability(const unsigned char *config, int bytes, unsigned id);
int gpsh_pci_extended(const unsigned char *config, int bytes, unsigned id);

#endif
