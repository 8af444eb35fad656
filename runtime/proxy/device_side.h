// SPDX-License-Identifier: BSD-3-Clause
// The device side of this PE: its handle, rings, replies and proxy. Made at the first use of device
// code.
#ifndef GPSH_DEVICE_SIDE_H
#define GPSH_DEVICE_SIDE_H

#include "connect/net.h"
#include "gpushmem/device_abi.h"
#include "proxy/handle.h"
#include "proxy/ring.h"

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
// `number`: whose commands, of the default context, of one of another number, or of all (ring.h).
int gpsh_device_side_quiet(int number);

// Contexts of kernels post through channels that are lent to them; `none_left` is told when there
// are none. Before the device side is made.
struct gpsh_channel_lender {
    bool (*take)(struct gpsh_channel **channels);
    void (*leave)(struct gpsh_channel **channels);
    void (*none_left)(void);
};
void gpsh_device_side_borrow(const struct gpsh_channel_lender *lender);

// A context for kernels with a ring of its own, where there is one left; else one that shares the
// default context's rings (number 0). Makes the device side if need be. 0 or a negative status.
int gpsh_device_side_context(long options, struct gpushmem_dev_ctx *out);
// Gives it back, once it is quiet.
int gpsh_device_side_context_free(const struct gpushmem_dev_ctx *ctx);

// The heap has grown to the heap's bytes: the proxy and the checks in kernels learn of it. Handles
// have known the limit all the time.
void gpsh_device_side_heap_grown(void);

// A kernel is about to be launched: it may wait again if the program took the loss of a PE
// (gpushmem_device_error).
void gpsh_device_side_launching(void);
// The program has heard of all losses so far by another call: kernels launched from now on may
// wait.
void gpsh_device_side_losses_known(void);

#endif
