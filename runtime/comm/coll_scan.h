// SPDX-License-Identifier: BSD-3-Clause
// Large scans.
#ifndef GPSH_COLL_SCAN_H
#define GPSH_COLL_SCAN_H

#include "comm/coll_piece.h"

// Result i of the piece becomes the sum of the team's views 0 .. i, for `count` of them.
void gpsh_scan_sums(struct gpsh_piece *p, int count, size_t nelems);
// Each member scans a share of the elements for all of them.
int gpsh_scan_by_shares(const struct gpsh_coll *c, bool inclusive);

#endif
