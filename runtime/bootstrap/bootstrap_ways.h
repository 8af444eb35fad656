// SPDX-License-Identifier: BSD-3-Clause
// The ways to join a job. What one that failed had begun is undone.
#ifndef GPSH_BOOTSTRAP_WAYS_H
#define GPSH_BOOTSTRAP_WAYS_H

#include "bootstrap/bootstrap.h"
#include "core/config.h"
#include "gpushmem/bootstrap.h"

// A job of one PE: no launcher, or none that matters. Check: GPUSHMEM_ERR_BOOTSTRAP if a launcher
// says in the environment that it started several processes: as many jobs of one PE would do their
// work side by side, and look like a success.
int gpsh_bootstrap_alone_check(void);
int gpsh_bootstrap_alone_init(struct gpsh_bootstrap *b);
// The job that PMIX_NAMESPACE names.
int gpsh_bootstrap_pmix_init(struct gpsh_bootstrap *b, const struct gpsh_settings *settings);
// That of the launcher at the other end of PMI_FD, which speaks PMI-1: Hydra of MPICH, Intel MPI
// and MVAPICH, and Slurm (srun --mpi=pmi2). GPUSHMEM_BOOTSTRAP_TIMEOUT_MS bounds each of its
// answers, other than to a barrier.
int gpsh_bootstrap_pmi_init(struct gpsh_bootstrap *b, const struct gpsh_settings *settings);
// That whose segment `gpushmem run` has handed down to this process (bootstrap/job_segment.h).
int gpsh_bootstrap_segment_init(struct gpsh_bootstrap *b);
// Without a launcher, over TCP: that of `id`, as PE `rank` of n_pes. Returns when all have come, or
// when it is known that not all will: then all that came are told the same.
//   GPUSHMEM_ERR_INVALID    no unique id; a rank or a number of PEs that does not fit the others'
//   GPUSHMEM_ERR_BOOTSTRAP  nobody is there, or another job
//   GPUSHMEM_ERR_TIMEOUT    not all came within settings->bootstrap_timeout_ms
//   GPUSHMEM_ERR_PE_FAILED  a PE ended meanwhile
int gpsh_bootstrap_tcp_init(struct gpsh_bootstrap *b, const struct gpushmem_uniqueid *id, int rank,
                            int n_pes, const struct gpsh_settings *settings);
// Where those of an id meet: chooses the secret, opens the sockets and starts the thread.
// `timeout_ms` counts from the first PE that comes. Any number of meetings may go on in a process.
//   GPUSHMEM_ERR_SETTING   `interface` (see tcp_address.h) does not exist
//   GPUSHMEM_ERR_SYSTEM    no socket, no thread, no random numbers
int gpsh_tcp_rendezvous_start(const char *interface, int64_t timeout_ms,
                              struct gpushmem_uniqueid *packed);

#endif
