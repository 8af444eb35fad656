// SPDX-License-Identifier: BSD-3-Clause
// What the launcher tells about the job: its size, its name, who is on this node. Needs an
// initialised PMIx client.
#ifndef GPSH_BOOTSTRAP_JOB_H
#define GPSH_BOOTSTRAP_JOB_H

#include <pmix.h>

#include "bootstrap/bootstrap.h"

// Fills `b`, which is all zero. On failure b->node_pes may be set all the same.
int gpsh_bootstrap_job_read(struct gpsh_bootstrap *b, const pmix_proc_t *me);

#endif
