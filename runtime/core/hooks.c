// SPDX-License-Identifier: BSD-3-Clause
#include "core/hooks.h"

#include <stdatomic.h>
#include <stddef.h>

#include "core/log.h"

void gpsh_hooks_add(struct gpsh_hooks *hooks, gpsh_hook *function)
{
    for (int i = 0; i < GPSH_HOOKS; i++) {
        gpsh_hook *there = NULL;
        if (atomic_compare_exchange_strong(&hooks->list[i], &there, function) || there == function)
            return;
    }
    // All there are belong to the library itself.
    GPSH_LOG(ERROR, "hooks", "%d functions are registered already; raise GPSH_HOOKS", GPSH_HOOKS);
}
