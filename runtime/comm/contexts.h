// SPDX-License-Identifier: BSD-3-Clause
// All host contexts of this PE: the default one, and those that the program created.
#ifndef GPSH_CONTEXTS_H
#define GPSH_CONTEXTS_H

#include "comm/context.h"

// Opens the default context, after the transports are connected; every wait drives the contexts
// from then on.
int gpsh_contexts_init(void);
// Once it is settled who executes atomics: what of the default context's operations is inline.
void gpsh_contexts_survey(void);
void gpsh_contexts_finalize(void); // closes every context
// The job's thread level has become MULTIPLE; until then no two threads were in a call at a time.
void gpsh_contexts_share_threads(void);

// `options`: enum gpushmem_ctx_option, checked. GPUSHMEM_ERR_NO_MEMORY.
int gpsh_contexts_create(long options, struct gpsh_context **out);
// Completes what was posted to it first; gone whatever the status is. GPUSHMEM_ERR_INVALID if there
// is no such context.
int gpsh_contexts_destroy(struct gpsh_context *ctx);

// With GPUSHMEM_CHECK=1, or out of a job: neither a context of this PE, nor one that was destroyed.
// Reads nothing of it.
bool gpsh_contexts_lack(const struct gpsh_context *ctx);

// As what kernels use it, from the first call on: gives its queues to the device, if it has any,
// and posts through those of the default context from then on.
int gpsh_contexts_device(struct gpsh_context *ctx, struct gpushmem_dev_ctx *out);

int gpsh_contexts_quiet(void); // of every context, kernels' included
// Drives the channels of the default context once, and of those that programs created, if anything
// is pending; for loops that wait on memory. True if something still is.
bool gpsh_contexts_progress(void);
// Whether that also carries out what peers ask for, because a transport has the host do it.
bool gpsh_contexts_serve(void);

#endif
