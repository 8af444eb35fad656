// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_BOOTSTRAP_PMIX_H
#define GPSH_BOOTSTRAP_PMIX_H

#include "bootstrap/bootstrap.h"

// Joins the job that PMIX_NAMESPACE names.
int gpsh_bootstrap_pmix_init(struct gpsh_bootstrap *b);

#endif
