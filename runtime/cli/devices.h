// SPDX-License-Identifier: BSD-3-Clause
// What `gpushmem info` says of the machine: GPUs, ports of RDMA devices, and how far these are from
// those.
#ifndef GPSH_DEVICES_H
#define GPSH_DEVICES_H

void gpsh_cli_print_devices(void);

#endif
