// SPDX-License-Identifier: BSD-3-Clause
// Leaving a job in which PEs may be lost (GPUSHMEM_ON_PE_FAILURE=notify on all PEs).
#ifndef GPSH_DEPART_H
#define GPSH_DEPART_H

#include <stdbool.h>

// Tells every other PE that this one leaves, and waits until each of them has told the same or is
// lost: nobody's memory and queue pairs go away while another still works with them. Unlike a
// barrier it does not pass on what it hears, so no message is lost with a PE that dies in the
// middle. Everything that this PE issued must be complete, or lost.
//   GPUSHMEM_ERR_TIMEOUT    not all came within GPUSHMEM_WAIT_TIMEOUT_MS
//   GPUSHMEM_ERR_PE_FAILED  a PE was lost before it told; all others have
int gpsh_depart(const char *what);
// Waits until what this PE has sent is acknowledged, apart from what it has repeated. It may fail
// where a PE has got it and left: that does not matter.
int gpsh_depart_see_off(void);
// Whether `pe` has told this one that it leaves.
bool gpsh_depart_has_told(int pe);
// Tells the PEs that share memory with this one that it leaves in order, and waits for nobody: what
// they see of its end is no failure then.
void gpsh_depart_tell_node(void);

#endif
