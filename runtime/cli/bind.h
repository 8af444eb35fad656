// SPDX-License-Identifier: BSD-3-Clause
// Which processor cores a PE is pinned to with --bind core.
#ifndef GPSH_BIND_H
#define GPSH_BIND_H

#include <sched.h>

// One set per PE, malloc'ed: a core (all its hardware threads) each, spread over the cores this
// process may use, and shared in turn if there are fewer cores than PEs. NULL after a message.
cpu_set_t *gpsh_bind_cores(int n_pes);

#endif
