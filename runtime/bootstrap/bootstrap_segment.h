// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_BOOTSTRAP_SEGMENT_H
#define GPSH_BOOTSTRAP_SEGMENT_H

#include "bootstrap/bootstrap.h"

// Joins the job whose segment `gpushmem run` has handed down to this process
// (bootstrap/job_segment.h).
int gpsh_bootstrap_segment_init(struct gpsh_bootstrap *b);

#endif
