// SPDX-License-Identifier: BSD-3-Clause
// What the runtime needs to become a job: who am I, who else is there, exchange of one blob per PE,
// news of PEs that died. A launcher provides it (PMIx, or `gpushmem run`), or TCP between PEs that
// share a unique id.
#ifndef GPSH_BOOTSTRAP_H
#define GPSH_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/deaths.h"

#define GPSH_BOOTSTRAP_EXCHANGE "the exchange between the PEs"

struct gpsh_bootstrap {
    const struct gpsh_bootstrap_ops *ops;
    void *data;                 // of the implementation
    struct gpsh_deaths *deaths; // of this job; NULL: nobody else is in it
    int my_pe, n_pes;           // rank and job size
    int node_my_pe, node_n_pes; // position among the PEs of this node, and their number
    // [node_n_pes] ascending PE numbers on this node; owned by the struct
    int *node_pes;
    char job_id[64]; // the same on all PEs, unique per job; no secret: anybody may see it
    // session directory of the job on this node, mode 0700; "" if the launcher has none
    char dir[256];
    bool singleton;      // no launcher: a job of one PE
    bool launched_by_us; // started by `gpushmem run`
    int line;            // then: to the launcher, which hands descriptors on (core/launcher.h)
    uint32_t job_round;  // then: tells this job from those that the same PEs were in before
    int exchanges;       // how often all PEs have met by it
    // longest wait in an exchange; 0: unbounded. May be set after init
    int64_t wait_timeout_ms;
    // Called in an exchange, several times a second while it waits for other PEs, and with `over`
    // when that has ended. NULL: nobody wants to know. May be set after init
    void (*waits)(bool over);
};

// One way to be a job. The functions below call these, and say what they do. Abort: all PEs, or all
// but this one, where it can be spared.
struct gpsh_bootstrap_ops {
    int (*put)(struct gpsh_bootstrap *b, const void *blob, size_t bytes);
    int (*exchange)(struct gpsh_bootstrap *b);
    int (*get)(struct gpsh_bootstrap *b, int pe, void **blob, size_t *bytes); // pe < n_pes
    int (*abort)(struct gpsh_bootstrap *b, int status, const char *why, bool all);
    int (*watch_nodes)(struct gpsh_bootstrap *b, const char *interface); // NULL: no need
    struct gpsh_tcp_tree *(*tree)(const struct gpsh_bootstrap *b);       // NULL, or of NULL: none
    bool (*leave)(struct gpsh_bootstrap *b);            // NULL: PEs tell each other
    bool (*has_left)(struct gpsh_bootstrap *b, int pe); // the same
    int (*pid_of)(struct gpsh_bootstrap *b, int pe);    // NULL: not known
    // The launcher is told that this process ends in order, without finalize; NULL: no need
    void (*goodbye)(void);
    void (*finalize)(struct gpsh_bootstrap *b); // what the struct has not
};

// By what started this process, as GPUSHMEM_BOOTSTRAP says. A launcher that is advertised but
// cannot be reached, or one of several processes that offers no way to join them, is
// GPUSHMEM_ERR_BOOTSTRAP, never a singleton.
int gpsh_bootstrap_init(struct gpsh_bootstrap *b);
// Publishes this PE's blob of the current round; exchange makes everybody's available (collective);
// get fetches a malloc'ed copy that the caller frees. The next put starts a new round; without one
// an exchange is a barrier. It fails with GPUSHMEM_ERR_PE_FAILED, and names the PE, when it is
// known that one has died.
int gpsh_bootstrap_put(struct gpsh_bootstrap *b, const void *blob, size_t bytes);
int gpsh_bootstrap_exchange(struct gpsh_bootstrap *b);
int gpsh_bootstrap_get(struct gpsh_bootstrap *b, int pe, void **blob, size_t *bytes);
// For `get` and `put` of the ways: a malloc'ed copy of what PE `pe` published.
int gpsh_bootstrap_copy(int pe, const void *from, size_t bytes, void **copy);
// Before the first put, on all PEs: deaths on other nodes shall be heard of, by connections between
// the nodes through `interface` (GPUSHMEM_BOOTSTRAP_INTERFACE), where the launcher does not tell.
// They begin when this PE has got everybody's blob; the next exchange waits for that. It is no loss
// to the job if it fails.
int gpsh_bootstrap_watch_nodes(struct gpsh_bootstrap *b, const char *interface);
// This PE has found out that `pe`, of its node, has died: those of other nodes are told, if they
// would not hear of it otherwise.
void gpsh_bootstrap_tell_death(struct gpsh_bootstrap *b, int pe, const char *reason);
// This PE is about to leave, and others may leave as soon as they have heard so. `has_told`, which
// any thread may call, says whether a PE has told this one that it leaves, before it does; NULL:
// that is not known, or not any more.
void gpsh_bootstrap_expect_departures(struct gpsh_bootstrap *b, bool (*has_told)(int pe));
// Tells the PEs of other nodes, where there is a way to, and the launcher that this one leaves in
// order. For a process that ends without gpsh_bootstrap_finalize, which tells the PEs, too.
void gpsh_bootstrap_say_goodbye(struct gpsh_bootstrap *b);
// This PE leaves in order: what is seen of its end is no failure. False: it has to tell the others
// itself. Whether a PE has said so. The latter from any thread, until finalize.
bool gpsh_bootstrap_leave(struct gpsh_bootstrap *b);
bool gpsh_bootstrap_has_left(struct gpsh_bootstrap *b, int pe);
// From now on `fn` is told of each PE that is known to have died, once; first, in this call, of
// those that died since this process joined the job. Until finalize.
void gpsh_bootstrap_on_death(struct gpsh_bootstrap *b, gpsh_pe_death_fn fn);
// 0, or GPUSHMEM_ERR_PE_FAILED naming a PE that is known to be dead. For what depends on every PE:
// `wait_for_news`, after something went wrong, waits a moment, since the news of a death may come
// later than its consequences.
int gpsh_bootstrap_check(const char *what, bool wait_for_news);
// Ends the whole job with `status`, all PEs but this one: it returns, and the caller ends its own
// process. With end_job this process is ended too, as by a launcher: SIGTERM, and SIGKILL later.
int gpsh_bootstrap_abort(struct gpsh_bootstrap *b, int status, const char *why);
int gpsh_bootstrap_end_job(struct gpsh_bootstrap *b, int status, const char *why);
// The process number of a PE of this node, as seen from here; 0: not known. After an exchange.
int gpsh_bootstrap_pid_of(struct gpsh_bootstrap *b, int pe);
// Whether the process of a PE of another node lives and does not run, as far as it is known: it is
// asked over the connections between the nodes, and has not answered. The first call asks, so call
// again after two seconds; costs a message to each PE, so do that where something is awaited for
// long. Any thread. After an exchange.
bool gpsh_bootstrap_is_mute(struct gpsh_bootstrap *b, int pe);
// Whether the end of a PE would be told to this one within moments, and has not been. Any thread.
// After an exchange.
bool gpsh_bootstrap_would_tell(struct gpsh_bootstrap *b, int pe);
// init after finalize works.
void gpsh_bootstrap_finalize(struct gpsh_bootstrap *b);

#endif
