// SPDX-License-Identifier: BSD-3-Clause
// The host's side of device code: the handle that kernels use, and what went wrong in them.
#ifndef GPUSHMEM_DEVICE_HOST_H
#define GPUSHMEM_DEVICE_HOST_H

#include <stdint.h>

#include "gpushmem/device_abi.h"
#include "gpushmem/stream.h"

#if defined(__cplusplus)
extern "C" {
#endif

// Fills in the handle of this PE for passing to kernels by value; the same values until
// gpushmem_finalize. The header passes the number of the interface that it declares: a library that
// has another one refuses, and says which of the two to rebuild. The first call creates the command
// rings and starts the proxy threads, unless every PE is reached by loads, stores and the
// processor's atomics. Not collective. Any thread. GPUSHMEM_ERR_STATE: not initialised;
// GPUSHMEM_ERR_NO_MEMORY: no memory for rings; GPUSHMEM_ERR_TRANSPORT, GPUSHMEM_ERR_SYSTEM: no
// channel or thread for the proxy; GPUSHMEM_ERR_UNSUPPORTED: another interface. *out is untouched
// on failure.
GPUSHMEM_API int gpushmem_device_handle_abi(struct gpushmem_dev *out, uint32_t abi);
static inline int gpushmem_device_handle(struct gpushmem_dev *out)
{
    return gpushmem_device_handle_abi(out, GPUSHMEM_DEVICE_ABI);
}

// Returns and forgets the first failure of device-initiated operations since the last call: 0 if
// there was none, else its status, with a sentence (PE, block and thread, or ring and command) in
// gpushmem_last_error(). gpushmem_quiet, gpushmem_barrier_all and gpushmem_launch_wait report it as
// well. After a PE was lost, waits in kernels fail until one such failure has been returned here,
// or gpushmem_team_survivors has made a team, and a kernel has been launched after that (by
// GPUSHMEM_LAUNCH or an operation of a stream; for other launches, call gpushmem_device_handle).
GPUSHMEM_API int gpushmem_device_error(void);

// How the proxy threads of this PE have spent their time since they started, summed over them.
struct gpushmem_proxy_times {
    uint64_t total_ns;
    uint64_t parse_ns;    // looking for commands, reading and checking them
    uint64_t post_ns;     // handing operations to the transport, which makes work requests of them
    uint64_t doorbell_ns; // ringing doorbells for work requests that were held back
    uint64_t poll_ns;     // polling the transport for completions
    uint64_t retire_ns;   // publishing what is complete
    uint64_t idle_ns;     // all the rest: total_ns is the sum
};

// Needs GPUSHMEM_PROXY_TIMES=1. Any thread, at any time; the difference of two calls is the time
// spent between them. GPUSHMEM_ERR_UNSUPPORTED: the setting is off, or there are no proxy threads;
// GPUSHMEM_ERR_STATE: not initialised. *out is untouched on failure.
// (For _sized see the rule "Structs" of gpushmem.h.)
GPUSHMEM_API int gpushmem_proxy_times_read_sized(struct gpushmem_proxy_times *out, size_t size);
static inline int gpushmem_proxy_times_read(struct gpushmem_proxy_times *out)
{
    return gpushmem_proxy_times_read_sized(out, sizeof *out);
}

#if defined(__cplusplus)
}
#endif

#include "gpushmem/impl/launch_host.h"

#endif
