// SPDX-License-Identifier: BSD-3-Clause
// The bootstrap without a launcher: processes that were given one unique id, over TCP.
#ifndef GPSH_BOOTSTRAP_TCP_H
#define GPSH_BOOTSTRAP_TCP_H

#include "bootstrap/bootstrap.h"
#include "core/config.h"
#include "gpushmem/bootstrap.h"

// Joins the job of `id` as PE `rank` of n_pes. Returns when all have come, or when it is known that
// not all will: then all that came are told the same.
//   GPUSHMEM_ERR_INVALID    no unique id; a rank or a number of PEs that does not fit the others'
//   GPUSHMEM_ERR_BOOTSTRAP  nobody is there, or another job
//   GPUSHMEM_ERR_TIMEOUT    not all came within settings->bootstrap_timeout_ms
//   GPUSHMEM_ERR_PE_FAILED  a PE ended meanwhile
int gpsh_bootstrap_tcp_init(struct gpsh_bootstrap *b, const struct gpushmem_uniqueid *id, int rank,
                            int n_pes, const struct gpsh_settings *settings);

#endif
