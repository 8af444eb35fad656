// SPDX-License-Identifier: BSD-3-Clause
// One host context, the unit of ordering and completion: it holds one channel of every transport in
// use. contexts.h makes them.
#ifndef GPSH_CONTEXT_H
#define GPSH_CONTEXT_H

#include <pthread.h>

#include "connect/net.h"
#include "core/cpu.h"
#include "gpushmem/device_abi.h"
#include "gpushmem/gpushmem.h"
#include "job/job.h"
#include "memory/heap.h"

struct gpsh_context {
    // by transport index; NULL where the transport is not in use
    struct gpsh_channel *channels[GPSH_MAX_TRANSPORTS];
    uint8_t *reported[GPSH_MAX_TRANSPORTS]; // [n_pes] quiet has told about the flow's error
    struct gpsh_context *base; // contexts without channels of their own post through this one
    pthread_mutex_t lock;
    bool locked; // more than one thread may use it: take the lock around the channels
    // some peer is not reached by loads and stores: fence and quiet have channels to look at
    bool remote;
    bool stores; // fence and quiet are about stores of the calling thread, too
    bool mixed;  // default context: some PE is reached by more than one path
    unsigned options;
    pthread_t creator;
    gpushmem_team_t team; // its PE numbers are ranks of this team:
    int team_n;
    int *team_pes;                  // [team_n] NULL: PE numbers are those of the job
    bool on_device;                 // kernels may use it,
    struct gpushmem_dev_ctx device; // as this
    struct gpsh_context *next;      // list of all contexts, for finalize
};

extern struct gpsh_context gpsh_default_context __attribute__((visibility("hidden")));

// Not for GPUSHMEM_CTX_INVALID.
static inline struct gpsh_context *gpsh_context_of(gpushmem_ctx_t ctx)
{
    return ctx == GPUSHMEM_CTX_DEFAULT ? &gpsh_default_context : (struct gpsh_context *)(void *)ctx;
}

// Its number of ranks is 0, so that there is no such rank.
static inline bool gpsh_context_is_destroyed(const struct gpsh_context *ctx)
{
    return ctx->team_pes != NULL && ctx->team_n == 0;
}

enum gpsh_wait {
    GPSH_WAIT_NONE,     // non-blocking
    GPSH_WAIT_SOURCE,   // until the source may be reused
    GPSH_WAIT_COMPLETE, // until complete at the target, results delivered
    // the same, into the caller's own frame: nothing writes there after the call, even if it failed
    GPSH_WAIT_FETCH,
};

// Posts `op` (arguments already checked) through the transport that serves its PE and waits as
// asked.
int gpsh_context_submit(struct gpsh_context *ctx, const struct gpsh_op *op, enum gpsh_wait wait);
// Reads from the control region of a PE, from `at` on, into the caller's frame.
int gpsh_control_read(int pe, uint64_t at, void *to, size_t bytes);
// A source of up to this size is captured by the transport; for a larger one its completion is
// waited for instead.
enum { GPSH_CAPTURE_BYTES = 16384 };
// pe or GPSH_ALL_PES; GPUSHMEM_ERR_TIMEOUT: nothing is ordered
int gpsh_context_fence(struct gpsh_context *ctx, int pe);
int gpsh_context_quiet(struct gpsh_context *ctx, int pe); // pe or GPSH_ALL_PES
// Waits until what was posted before is complete, and tells of no failure: before the thread waits
// where nothing drives contexts.
void gpsh_context_send_off(struct gpsh_context *ctx);
// Drives its channels once if anything is pending; true if something still is.
bool gpsh_context_drive(struct gpsh_context *ctx);
// The same until nothing is pending, or the time has come: for a thread that ends the process.
void gpsh_context_drive_until(struct gpsh_context *ctx, uint64_t until_ns);
// Memory from malloc, or NULL, that operations under way may still use: it stays until
// gpsh_context_free_places.
void gpsh_context_keep(void *memory);
// Frees that, and result places of calls that gave up a wait. Call it once the transports that knew
// the places are closed.
void gpsh_context_free_places(void);

// Stores and atomics take different ways to the PE: nothing orders them but completion.
static inline bool gpsh_mixed_paths(int pe)
{
    return gpsh_direct_base(pe) != NULL ? !gpsh_net()->cpu_atomics
                                        : gpsh_job()->peers[pe].amo != gpsh_job()->peers[pe].data;
}

#endif
