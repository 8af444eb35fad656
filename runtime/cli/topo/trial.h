// SPDX-License-Identifier: BSD-3-Clause
// A recorded machine that somebody edited, or that was cut and joined, can end the process that
// hwloc loads it in.
#ifndef GPSH_TOPO_TRIAL_H
#define GPSH_TOPO_TRIAL_H

// Loads the file in a process of its own first. Fails if that process died; what hwloc printed
// there about a file that it takes all the same becomes one warning. The caller has no threads.
int gpsh_topo_try(const char *xml_file);

#endif
