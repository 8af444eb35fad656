// SPDX-License-Identifier: BSD-3-Clause
// What the handle of kernels refers to.
#ifndef GPSH_HANDLE_H
#define GPSH_HANDLE_H

#include "gpushmem/device_abi.h"
#include "memory/team_scratch.h"
#include "transport/transport.h"

_Static_assert(sizeof(struct gpushmem_dev_sync) <= GPSH_DEVICE_SYNC_BYTES, "the words fit");

// What a handle refers to beside rings and heap: a piece of host memory, and one of device memory.
enum { GPSH_REPLIES_LOG2 = 12 };
_Static_assert(GPSH_KERNEL_ANSWERS == 1 << GPSH_REPLIES_LOG2, "each reply has its word");
struct gpsh_handle_host {
    struct gpushmem_device_control control;
    struct gpushmem_device_fault faults[GPUSHMEM_FAULTS];
    struct gpushmem_reply replies[1 << GPSH_REPLIES_LOG2];
    uint64_t scrap[8];       // for answers to kernels' atomics that nobody wants
    uint64_t nic_failure[8]; // [0]: not 0: a kernel has found an error completion
};
struct gpsh_handle_device {
    uint64_t sync_sequence;
    uint32_t fault_claims[GPUSHMEM_FAULTS];
    uint32_t pad[12];
    uint32_t reply_owners[1 << GPSH_REPLIES_LOG2];
    struct gpushmem_dev handle;
    uint64_t away[]; // [n_pes]
};

#endif
