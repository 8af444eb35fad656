// SPDX-License-Identifier: BSD-3-Clause
// Ports of verbs devices as sysfs shows them.
#ifndef GPSH_DOCTOR_PORT_H
#define GPSH_DOCTOR_PORT_H

#include "doctor/host.h"

enum { GPSH_PORTS_MOST = 64 };

struct gpsh_port {
    char device[GPSH_HOST_NAME_BYTES];
    char interface[GPSH_HOST_NAME_BYTES]; // of the network; "" if there is none, or not here
    int number;
    char state[32]; // "ACTIVE"; "" if it cannot be read
    bool active, ethernet;
    double gbps; // 0: not known
    int lanes;   // 0: not known
};

struct gpsh_ports {
    int n, n_active, n_ethernet; // the last one counts active ports
    struct gpsh_port port[GPSH_PORTS_MOST];
};

// 0, or -errno if /sys/class/infiniband is not there or not to be read.
int gpsh_ports_read(const struct gpsh_host *host, struct gpsh_ports *ports);

#endif
