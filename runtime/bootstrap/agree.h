// SPDX-License-Identifier: BSD-3-Clause
// The job agrees: on success of a step that each PE did by itself, and on what holds for every PE.
#ifndef GPSH_AGREE_H
#define GPSH_AGREE_H

#include <stdint.h>

#include "bootstrap/bootstrap.h"

// Collective; nobody returns before all have called. `my_status` negative: this PE failed with its
// last error, and is told so again; the others get the same code and a sentence that names this PE.
// Otherwise *all is the bits that are set in every PE's `mine`; NULL: not wanted.
int gpsh_agree(struct gpsh_bootstrap *boot, int my_status, uint32_t mine, uint32_t *all);

#endif
