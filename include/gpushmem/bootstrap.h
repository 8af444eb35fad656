// SPDX-License-Identifier: BSD-3-Clause
// Joining a job without a launcher's help: by a unique id that the program hands over itself, or by
// functions with which its processes talk already. gpushmem.h includes this file; gpushmem/mpi.h
// has the functions for MPI.
//
//   gpushmem_uniqueid_t id;
//   if (rank == 0)
//       gpushmem_get_uniqueid(&id);
//   hand_over(&id, sizeof id); // yours: from rank 0 to all, by a file, a store, a message
//   gpushmem_init_with_uniqueid(&id, rank, n);
//
// Who joins this way
//   - needs no launcher; what one put into the environment (PMIX_*) is ignored;
//   - talks TCP, over the interface that GPUSHMEM_BOOTSTRAP_INTERFACE names or the library chooses;
//   - waits GPUSHMEM_BOOTSTRAP_TIMEOUT_MS at most for the others;
//   - is on one node with those that share its kernel, user namespace, root directory and /tmp;
//   - is told when a PE dies, within 2 s if the process ended. With GPUSHMEM_ON_PE_FAILURE=abort,
//     the default, the library then does what a launcher would do: it sends its own process
//     SIGTERM, and SIGKILL 2 s later. gpushmem_global_exit ends the processes of all PEs with its
//     status.
// After gpushmem_finalize the process may join again, with a new id.
#ifndef GPUSHMEM_BOOTSTRAP_H
#define GPUSHMEM_BOOTSTRAP_H

#include <stddef.h>

#include "gpushmem/types.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
// a struct and the function that takes it have one name, as with stat(2)
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#endif

// Names one start of one job: where its PEs meet, and a secret. Copy it as bytes. Who can read it
// can join the job, so treat it like a password. It is good for one init on each PE.
typedef struct gpushmem_uniqueid {
    unsigned char bytes[128];
} gpushmem_uniqueid_t;

// Makes an id. One process does, before any PE joins with it; mostly that of PE 0, but it need be
// no PE. It stays the place where the PEs meet until all have joined: if it ends earlier, their
// init fails. A thread waits for them there. Legal at any time, any thread, any number of times.
//   GPUSHMEM_ERR_INVALID    `id` is NULL
//   GPUSHMEM_ERR_SETTING    a GPUSHMEM_BOOTSTRAP_* variable is malformed, or names no interface
//   GPUSHMEM_ERR_SYSTEM     no network interface, socket or thread to be had
GPUSHMEM_API int gpushmem_get_uniqueid(gpushmem_uniqueid_t *id);

// How a program's processes talk already. Each returns 0, or anything else for a failure, which
// gpushmem_init_attr then reports.
struct gpushmem_bootstrap_functions {
    void *communicator; // passed to each of them
    int (*rank)(void *communicator, int *rank);
    int (*size)(void *communicator, int *n);
    // Collective: copies `bytes` bytes at `data` from rank 0 to all.
    int (*broadcast)(void *communicator, void *data, size_t bytes);
};

// How to join. All zero: by the launcher, as gpushmem_init does. Set `uniqueid`, rank and n_pes, or
// `functions`; nothing of it is used after the call.
struct gpushmem_init_attr {
    const gpushmem_uniqueid_t *uniqueid;
    int rank, n_pes; // this PE's number, and how many there are; used with `uniqueid` only
    const struct gpushmem_bootstrap_functions *functions;
    enum gpushmem_thread_level thread_level; // as in gpushmem_init_thread; zero is SINGLE
    // 1: the caller looks at what every call returns, and tells of failures by its own names, as
    // bindings that raise errors do. The library then logs none of those.
    int tells_failures;
};

// Joins the job; see gpushmem_init for what that means and for further errors. Collective. Whatever
// is wrong with the start is told to every PE that comes to the meeting. An init of a PE that has
// joined already is only counted, and must say the same rank and n_pes.
//   GPUSHMEM_ERR_INVALID    no id, a damaged one, or one of another version of the library; rank
//                           or n_pes impossible, taken twice, or not the same n_pes everywhere;
//                           both `uniqueid` and `functions`, or a function missing
//   GPUSHMEM_ERR_BOOTSTRAP  the process that made the id has ended, cannot be reached, or serves
//                           another job: the id was used before; a function failed
//   GPUSHMEM_ERR_TIMEOUT    not all PEs came in time; the sentence names those that did not
//   GPUSHMEM_ERR_PE_FAILED  a PE ended meanwhile
//   GPUSHMEM_ERR_STATE      this PE has joined already, as another PE or in a job of another size
GPUSHMEM_API int gpushmem_init_attr_sized(const struct gpushmem_init_attr *attr, size_t size);
static inline int gpushmem_init_attr(const struct gpushmem_init_attr *attr)
{
    return gpushmem_init_attr_sized(attr, sizeof *attr);
}

// The two ways, for short, with thread level SINGLE.
GPUSHMEM_API int gpushmem_init_with_uniqueid(const gpushmem_uniqueid_t *id, int rank, int n_pes);
// Rank 0 makes an id, and broadcasts it.
GPUSHMEM_API int gpushmem_init_with_functions(const struct gpushmem_bootstrap_functions *functions);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif

#endif
