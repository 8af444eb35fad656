// SPDX-License-Identifier: BSD-3-Clause
// What this PE shows to other processes of its user: who it is and what its threads wait for. The
// board is a memory file without a name, which they find and open below /proc/PID/fd. The kernel
// lets nobody else in, and nothing is left of it when the process ends. Its size is sealed.
#ifndef GPSH_BOARD_H
#define GPSH_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "observe/counters.h"

#define GPSH_BOARD_NAME  "gpushmem-board"
#define GPSH_BOARD_MAGIC UINT64_C(0x64726f6268737067)

enum { GPSH_BOARD_VERSION = 5, GPSH_BOARD_WAITS = 16 };

// What has to happen for a wait to end.
enum gpsh_awaited {
    GPSH_AWAITED_UNKNOWN, // some thread or PE changes a word
    GPSH_AWAITED_BARRIER, // all PEs reach barrier `number`
    GPSH_AWAITED_TEAM,    // `pe` reaches operation `number` of `team`
    GPSH_AWAITED_PE,      // `pe`, or the NIC on the way to it, answers
    GPSH_AWAITED_INIT,    // all PEs call init, or get on in it
    GPSH_AWAITED_KERNEL,  // a kernel ends, of which it is not known that it waits itself
};

// A wait that has lasted for a while, or for a kernel.
struct gpsh_wait_record {
    uint64_t since_ns; // gpsh_clock_ns, which is one clock for the processes of a host
    uint64_t number;
    int32_t awaited; // enum gpsh_awaited
    int32_t team;
    int32_t pe;
    char what[68];  // the call: "gpushmem_barrier_all"
    char text[160]; // follows "waiting": " for PE 3"
};

struct gpsh_wait_slot {
    _Atomic uint32_t taken;
    _Atomic uint32_t turn; // odd while it is written; 0: empty
    struct gpsh_wait_record record;
};

// Up to the job's name, versions are alike.
struct gpsh_board {
    uint64_t magic;
    uint32_t version;
    uint32_t head_bytes; // of this struct; after it come the counters
    int32_t pe, n_pes;
    int32_t pid;     // as the process itself sees it
    int32_t run_pid; // of `gpushmem run`, 0: another launcher
    uint64_t began_ns;
    char job[64]; // its public name
    struct gpsh_sheet sheet;
    struct gpsh_wait_slot waits[GPSH_BOARD_WAITS];
};

// Who this PE is. 0, or GPUSHMEM_ERR_SYSTEM: then there is no board, and the functions below do
// nothing. Once in each init.
struct gpsh_board_owner {
    int pe, n_pes;
    const char *job;
    int n_rings, n_contexts; // the last rings are for contexts
    int n_channels, n_proxies;
    bool counts_direct;
};
int gpsh_board_open(const struct gpsh_board_owner *owner);
void gpsh_board_close(void);

// Where on the board the named transport keeps the flows of its channels (see
// gpsh_transport_env.flows), and where the rings keep their counters. All zero at first, valid
// until the board is closed. NULL if there is no board: keep them anywhere.
char *gpsh_board_flows(int transport, const char *name, size_t *stride);
struct gpsh_ring_counters *gpsh_board_rings(void);
// This PE's board; NULL: it has none.
const struct gpsh_board *gpsh_board_own(void);

// Shows a wait in slot *slot, or in a free one if *slot is 0, whose number goes to *slot. Threads
// that find no free slot show nothing. Any thread.
void gpsh_board_show_wait(int *slot, const struct gpsh_wait_record *record);
void gpsh_board_end_wait(int slot);

#endif
