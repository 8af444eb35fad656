// SPDX-License-Identifier: BSD-3-Clause
// The device side of this PE: its handle, rings, replies and proxy. Made at the first use of device
// code.
#ifndef GPSH_DEVICE_SIDE_H
#define GPSH_DEVICE_SIDE_H

#include "gpushmem/device_abi.h"
#include "proxy/handle.h"
#include "proxy/ring.h"
#include "state/state.h"

// Called each time the device side was made, before its first handle is given out. One at most.
void gpsh_device_side_on_make(void (*hook)(void));

// Where kernels (and copies of a stream) reach pe's heap by loads and stores, or NULL: through a
// ring.
char *gpsh_device_side_direct(int pe);

// Ends kernels' waits, stops the proxy, frees everything. Before the transports are closed.
void gpsh_device_side_finalize(void);

// Waits until every command from finished kernels is complete, and what running ones have reserved
// before the call, but for nothing later. 0 at once if no device code was ever used. Reports (and
// takes) what failed on the device side. Fails if GPUSHMEM_WAIT_TIMEOUT_MS runs out or the GPU
// died.
int gpsh_device_side_quiet(void);

// A kernel is about to be launched: it may wait again if the program took the loss of a PE
// (gpushmem_device_error).
void gpsh_device_side_launching(void);

#endif
