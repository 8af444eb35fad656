// SPDX-License-Identifier: BSD-3-Clause
// What the ways over a launcher's key-value store (PMIx, PMI-1) have in common: how a blob is
// packed, who of the job is known to have died, and how one waits for the other PEs.
#ifndef GPSH_KVS_JOB_H
#define GPSH_KVS_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/bootstrap.h"

// Of a process, for all its inits: keys outlive a finalize, and a PE that died stays dead.
struct gpsh_kvs_job {
    uint32_t round; // of the last put
    struct gpsh_deaths deaths;
    struct gpsh_node_watch *nodes; // NULL: nobody watches other nodes
};

#define GPSH_KVS_JOB_INITIALIZER                                                                   \
    {                                                                                              \
        .deaths = GPSH_DEATHS_INITIALIZER                                                          \
    }

// Before each init; the number of PEs stays the same.
int gpsh_kvs_job_open(struct gpsh_kvs_job *job, int n_pes);
// What finalize undoes.
void gpsh_kvs_job_leave(struct gpsh_kvs_job *job);

// b->job_id from the launcher's name of the job.
void gpsh_kvs_job_id(struct gpsh_bootstrap *b, const char *name);

// A blob of a new round, with its header, malloc'ed.
int gpsh_kvs_pack(struct gpsh_kvs_job *job, int my_pe, const void *blob, size_t bytes,
                  void **packed, size_t *packed_bytes);
// Checks what claims to be the blob of `pe` of this round, and copies what it holds. Any bytes may
// be given.
int gpsh_kvs_unpack(struct gpsh_kvs_job *job, int pe, const void *packed, size_t packed_bytes,
                    void **blob, size_t *bytes);
// How many bytes a packed blob has that begins with these. 0: more of it has to be seen.
// GPUSHMEM_ERR_PEER_DATA: it is none.
int gpsh_kvs_packed_bytes(int pe, const void *begin, size_t bytes, size_t *packed_bytes);

// A PE has died; the program is told. Any thread.
void gpsh_kvs_note_death(struct gpsh_kvs_job *job, int pe, const char *reason);

// Waits for the other PEs until `arrived`, which waits up to `ms`, says so; until one of them is
// known to have died, or b->wait_timeout_ms is over: those are errors.
typedef bool gpsh_kvs_arrived_fn(void *arg, long ms);
bool gpsh_kvs_wait(struct gpsh_kvs_job *job, const struct gpsh_bootstrap *b, const char *what,
                   gpsh_kvs_arrived_fn *arrived, void *arg);
// The error of a wait for an exchange that returned false.
int gpsh_kvs_given_up(struct gpsh_kvs_job *job, const struct gpsh_bootstrap *b);

// Operations of a bootstrap whose `data` is a struct gpsh_kvs_job.
int gpsh_kvs_watch_nodes(struct gpsh_bootstrap *b, const char *interface);
struct gpsh_tcp_tree *gpsh_kvs_tree(const struct gpsh_bootstrap *b);

#endif
