// SPDX-License-Identifier: BSD-3-Clause
// `gpushmem info --peers`: which GPU and NICs each PE of the job has, and how it reaches each other
// one.
#ifndef GPSH_INFO_PEERS_H
#define GPSH_INFO_PEERS_H

#include <stdbool.h>

// Joins the job as one of its PEs; PE 0 prints, for readers or as JSON. An exit status.
int gpsh_cli_print_peers(bool json);

#endif
