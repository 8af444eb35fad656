// SPDX-License-Identifier: BSD-3-Clause
// A heap that grows: see extend, extended and retract of gpsh_transport_ops.
#ifndef GPSH_VERBS_GROWTH_H
#define GPSH_VERBS_GROWTH_H

#include "transport/transport.h"

int gpsh_verbs_heap_extend(struct gpsh_transport *self, const struct gpsh_region *chunk,
                           void *keys);
int gpsh_verbs_heap_extended(struct gpsh_transport *self, int pe, const void *keys);
void gpsh_verbs_heap_retract(struct gpsh_transport *self);

#endif
