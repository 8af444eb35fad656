// SPDX-License-Identifier: BSD-3-Clause
// Blocking form of PMIx's asynchronous calls: pass the reply as the callback's argument, then wait
// for it. A thread that waits may give up; then the answer, if it ever comes, releases the reply.
#ifndef GPSH_PMIX_REPLY_H
#define GPSH_PMIX_REPLY_H

#include <pmix.h>
#include <stdbool.h>
#include <stddef.h>

struct gpsh_pmix_reply;

struct gpsh_pmix_reply *gpsh_pmix_reply_create(void); // NULL: no memory
void gpsh_pmix_reply_destroy(struct gpsh_pmix_reply *r);

// The callbacks, for calls that answer with a status, and with a status and a number. `arg` is the
// reply.
void gpsh_pmix_reply_status(pmix_status_t status, void *arg);
void gpsh_pmix_reply_number(pmix_status_t status, size_t number, void *arg);

// Waits `ms` at most, -1: for ever. True if the answer is there.
bool gpsh_pmix_reply_wait(struct gpsh_pmix_reply *r, long ms);
// Gives up: the reply must not be touched any more, unless the answer arrived just now, which is
// what true says.
bool gpsh_pmix_reply_abandon(struct gpsh_pmix_reply *r);

// What arrived, after a wait that returned true.
pmix_status_t gpsh_pmix_reply_get(const struct gpsh_pmix_reply *r, size_t *number);

#endif
