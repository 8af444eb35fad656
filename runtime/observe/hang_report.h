// SPDX-License-Identifier: BSD-3-Clause
// One sentence of what all PEs of a job that hangs wait for.
#ifndef GPSH_HANG_REPORT_H
#define GPSH_HANG_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "observe/boards.h"

enum { GPSH_HANG_REPORT_BYTES = 640 };

enum gpsh_pe_state {
    GPSH_PE_UNSEEN, // on another host, or it cannot be looked at
    GPSH_PE_ABSENT, // it runs and has not called init
    GPSH_PE_ENDED,  // its process has ended
    GPSH_PE_BUSY,   // it is in no call that has waited for long
    GPSH_PE_KERNEL, // it waits for a kernel, which may compute
    GPSH_PE_WAITS,
};

struct gpsh_pe_view {
    enum gpsh_pe_state state;
    struct gpsh_wait_record wait; // of the last two
};

// Sets those of the n PEs that have a board; the others stay as they are.
void gpsh_views_set(struct gpsh_pe_view *views, int n, const struct gpsh_boards *boards);

// "PE 3 has not reached barrier 17 (gpushmem_barrier_all); PEs 0-2 wait for it". False, and an
// empty text, if no PE waits, or there is no memory.
bool gpsh_hang_report(const struct gpsh_pe_view *views, int n, char *text, size_t bytes);

// For a PE whose launcher does not ask: logs the report over the PEs of its job on this host, if
// it is the first PE of those that wait, and has not logged the same before. Any thread.
void gpsh_hang_report_log(const char *job, int pe, int n_pes);

#endif
