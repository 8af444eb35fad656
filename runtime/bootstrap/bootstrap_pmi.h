// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_BOOTSTRAP_PMI_H
#define GPSH_BOOTSTRAP_PMI_H

#include "bootstrap/bootstrap.h"
#include "core/config.h"

// Joins the job of the launcher at the other end of PMI_FD, which speaks PMI-1: Hydra of MPICH,
// Intel MPI and MVAPICH, and Slurm (srun --mpi=pmi2). GPUSHMEM_BOOTSTRAP_TIMEOUT_MS bounds each of
// its answers, other than to a barrier.
int gpsh_bootstrap_pmi_init(struct gpsh_bootstrap *b, const struct gpsh_settings *settings);

#endif
