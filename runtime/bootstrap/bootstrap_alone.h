// SPDX-License-Identifier: BSD-3-Clause
// A job of one PE: no launcher, or none that matters.
#ifndef GPSH_BOOTSTRAP_ALONE_H
#define GPSH_BOOTSTRAP_ALONE_H

#include "bootstrap/bootstrap.h"

// GPUSHMEM_ERR_BOOTSTRAP if a launcher says in the environment that it started several processes:
// as many jobs of one PE would do their work side by side, and look like a success.
int gpsh_bootstrap_alone_check(void);
int gpsh_bootstrap_alone_init(struct gpsh_bootstrap *b);

#endif
