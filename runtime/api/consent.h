// SPDX-License-Identifier: BSD-3-Clause
// Collective calls in which a PE may fail by itself: all PEs learn of it, and then none goes on.
#ifndef GPSH_CONSENT_H
#define GPSH_CONSENT_H

#include "comm/collective.h"

// Collective, a barrier: every PE is in this call with these arguments. `here`: 0, or the failure
// of this PE's part, whose sentence is the thread's last one. 0 if no PE has failed; else this PE's
// own failure, or that of another with its sentence.
int gpsh_consent(const char *function, enum gpsh_collective_kind kind, uint64_t a, uint64_t b,
                 int here);

void gpsh_consent_init(void);

#endif
